"""The adaptive tuner of parallel streams, the default: it searches for their number while bytes flow.

The transfer never pauses. How it decides and why its constants are what they are: docs/tuner.md.
"""

import functools
import math
from collections.abc import Mapping, Sequence

from mpx.engine.tuner import START, Decision, Sample
from mpx.tuning.bearable import Bearable
from mpx.tuning.constants import AS_MUCH, NEARLY_ALL, PATIENCE, QUICK, RAREST_S, REST, STEP_SHOWS_S
from mpx.tuning.losses import POLICER, QUEUE, LossJudge
from mpx.tuning.measurement import Meter
from mpx.tuning.search import LossLimits, Search, Step
from mpx.units import counted


class AutoTuner:
    """Decides on the streams of one group of paths, `initial` (one number, or one per path) to start with.

    Without it a path starts with `share`.
    `max_streams` bounds the sum over the group, but every path keeps at least one stream. The goodput of the
    whole group counts; one path is changed at a time. `rate_bps`: more than that the copy does not send.
    `share`: where the path is full the streams go down to so many, and no further; with `yields` also where
    more would carry more, as they would take it from others. `least`: no trial of fewer in any case.
    `expected`: as many streams as earlier copies settled on; where there is room the first step goes there.
    """

    def __init__(
        self,
        initial: int | Mapping[str, int] | None = None,
        max_streams: int = 256,
        rate_bps: float | None = None,
        share: int = START,
        *,
        yields: bool = True,
        least: int = 1,
        expected: int | None = None,
    ):
        if max_streams < 1:
            raise ValueError("max_streams must be at least 1")
        self._initial, self._max, self._share = initial, max_streams, share
        self._new_search = functools.partial(
            Search, rate_bps, share, yields=yields, least=least, expected=expected
        )
        self._meter, self._search, self._losses = Meter(), self._new_search(), LossJudge()
        self._bearable: Bearable | None = None  # while something drops what is above a rate
        self._asked: dict[str, int] = {}  # streams decided on, by path
        self._home: dict[str, int] = {}  # the same before the last step
        self._changed_s = 0.0
        self._complete_s = 0.0  # when as many streams as asked for were last open
        self._since_s: float | None = None  # since when the present streams carry data
        self._ceiling, self._ceiling_until_s = 0, -math.inf  # what was open when streams were given up
        self._floor, self._floor_until_s = 1, -math.inf

    def observe(self, now_s: float, samples: Mapping[str, Sample]) -> Sequence[Decision]:
        """See `mpx.engine.tuner.Tuner`. There is never a chunk or a barrier."""
        starts = self._start(now_s, samples)
        self._meter.add(now_s, samples)
        if starts or not samples:
            return starts
        settled, decisions = self._settle(now_s, samples)
        if not settled:
            return decisions
        if self._since_s is None:
            if not any(sample.arrived_bytes for sample in samples.values()):
                return []  # streams are open for some round trips before they are given anything to carry
            self._since_s = now_s
            self._meter.restart()
        if self._is_ending(samples):
            return []
        n, age_s = sum(self._asked.values()), now_s - self._since_s
        known = self._judge_losses(now_s, age_s, n)
        least, most = self._limits(now_s, samples)
        step = self._search.next(now_s, age_s, n, self._meter, least, most, limits=self._by_losses(n))
        return known + (self._go(now_s, samples, n, step) if step else [])

    def _judge_losses(self, now_s: float, age_s: float, n: int) -> list[Decision]:
        """Say why segments are lost, once it is known: a decision that changes no number."""
        meter = self._meter
        why = self._losses.observe(
            now_s,
            age_s,
            n,
            meter.losses,
            rtt_s=meter.rtt_s,
        )
        path = max(self._asked, key=lambda each: self._asked[each])
        return [Decision(path, self._asked[path], why)] if why else []

    def _by_losses(self, n: int) -> LossLimits | None:
        """Return how many streams there should be where losses show that the path is full; else None."""
        kind, share = self._losses.kind, self._share
        if kind != POLICER:
            self._bearable = None
            return LossLimits(n > share, share, share) if kind == QUEUE else None
        bearable = self._bearable = self._bearable or Bearable(share, self._losses.too_many)
        bearable.judge(n, self._losses.counted(n))
        return LossLimits(bearable.are_too_many(n), bearable.least, bearable.most)

    def disturbed(self, now_s: float) -> None:
        """See `Tuner`. Streams have to come up to speed again, and another number may be better."""
        if self._asked:
            self._search.reopen()
            self._losses.restart()
            self._moved(now_s)

    def _start(self, now_s: float, samples: Mapping[str, Sample]) -> list[Decision]:
        """Start on paths not seen before; with other paths, what was learnt is void."""
        if self._asked.keys() == samples.keys():
            return []
        fresh = [path for path in samples if path not in self._asked]
        self._asked = {path: n for path, n in self._asked.items() if path in samples}
        room = self._max // max(1, len(samples))
        for path in fresh:
            wanted = self._initial
            if not isinstance(wanted, int):
                wanted = (wanted or {}).get(path, self._share)
            self._asked[path] = max(1, min(wanted, room))
        self._search, self._losses = self._new_search(), LossJudge()
        self._ceiling_until_s = self._floor_until_s = -math.inf
        self._moved(now_s)
        return [Decision(p, self._asked[p], f"start with {_streams(self._asked[p])}") for p in fresh]

    def _settle(self, now_s: float, samples: Mapping[str, Sample]) -> tuple[bool, list[Decision]]:
        """Whether as many streams as asked for are open; after some time what is open counts as asked for."""
        if all(
            NEARLY_ALL * self._asked[p] <= s.streams <= self._asked[p] / NEARLY_ALL
            for p, s in samples.items()
        ):
            self._complete_s = now_s
            return True, []
        if any(sample.changing for sample in samples.values()):
            self._complete_s = now_s  # they will open, however slow the server is
        patience_s = PATIENCE.at(self._meter.rtt_s)
        waited_s = now_s - max(self._changed_s, self._complete_s)
        if waited_s < patience_s or any(s.streams == 0 for s in samples.values()):
            return False, []
        self._search.drop()
        decisions = []
        for path, sample in samples.items():
            if sample.streams > self._asked[path]:  # each file under way keeps one
                self._asked[path] = sample.streams
                self._floor, self._floor_until_s = sum(s.streams for s in samples.values()), now_s + RAREST_S
            elif sample.streams < self._asked[path]:
                reason = (
                    f"only {sample.streams} of {_streams(self._asked[path])} open after {patience_s:.1f} s"
                )
                decisions.append(Decision(path, sample.streams, reason))
                self._asked[path] = sample.streams
        if decisions:
            before, self._ceiling = self._ceiling, sum(s.streams for s in samples.values())
            if self._ceiling <= before:  # where some have come meanwhile, more may
                self._ceiling_until_s = now_s + RAREST_S
        return not decisions, decisions

    def _is_ending(self, samples: Mapping[str, Sample]) -> bool:
        """Whether too little is left for a step to pay."""
        rtt_s = self._meter.rtt_s
        measured = self._meter.reading(QUICK.at(rtt_s))
        left_bits = 8 * sum(s.bytes_left for s in samples.values())
        return measured is not None and left_bits < measured.goodput_bps * REST.at(rtt_s)

    def _limits(self, now_s: float, samples: Mapping[str, Sample]) -> tuple[int, int]:
        """Return the fewest and the most streams that there can be now."""
        least = max(len(samples), self._floor if now_s < self._floor_until_s else 1)
        return least, max(least, self._ceiling if now_s < self._ceiling_until_s else self._max)

    def _go(self, now_s: float, samples: Mapping[str, Sample], n: int, step: Step) -> list[Decision]:
        """Add streams to the path whose streams carry most, close some where they carry least, or go back."""

        def per_stream(path: str) -> float:
            return self._meter.path_bps(path, STEP_SHOWS_S) / max(1, samples[path].streams)

        wanted = dict(self._asked)
        if step.back:
            wanted = dict(self._home)
        elif step.streams > n:
            best = max(map(per_stream, samples))
            alike = [path for path in samples if per_stream(path) >= AS_MUCH * best]
            wanted[min(alike, key=lambda path: samples[path].streams)] += step.streams - n
        elif more_than_one := [path for path in samples if self._asked[path] > 1]:
            path = min(more_than_one, key=per_stream)
            wanted[path] = max(1, wanted[path] + step.streams - n)
        changes = [Decision(path, m, step.reason) for path, m in wanted.items() if m != self._asked[path]]
        self._home, self._asked = self._asked, wanted
        self._moved(now_s)
        return changes

    def _moved(self, now_s: float) -> None:
        """Note that another number of streams was asked for."""
        self._changed_s, self._since_s = now_s, None


def _streams(count: int) -> str:
    return counted(count, "stream")
