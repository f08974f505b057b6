"""The adaptive tuner of parallel streams, the default: it weighs candidate curves G(n) while bytes flow.

The transfer never pauses, there are no fixed windows, and few streams are opened where more do not help. How
it decides and why its constants are what they are: docs/tuner.md.
"""

import math
from collections.abc import Mapping, Sequence

from mpx.engine.tuner import START, Decision, Sample
from mpx.tuning import saturation
from mpx.tuning.curve_belief import CurveBelief
from mpx.tuning.exploration import Exploration
from mpx.tuning.measurement import Bin, Meter
from mpx.tuning.receive_window import Windows
from mpx.tuning.settling import AT_LEAST_RTT, AT_THE_WINDOWS, FREE
from mpx.units import counted

START_RTT_S = 0.04  # START streams up to that RTT; beyond it in proportion, ...
MOST_AT_START = 16  # ... but no more
FIRST_STEP = 4.0  # the first trial is a large step: it shows the slope, and often the plateau too
MOST_UP, MOST_DOWN = 4.0, 4.0  # no single change by more than that ...
MOST_UP_KNOWN, FEW = 1.5, 16  # ... and with at least FEW streams, where the kernel reports what limits them
MOVE_FIT = 0.05  # change only if that fits so much better (1: inside the good range, 0: far from it)
TRIAL_COST = 0.25  # exponent of the streams that a trial opens, against what it shows
TRIALS = (0.35, 0.5, 0.7, 1.4, 2.0, 2.8, 4.0)  # streams of a trial, as multiples of the present number
LOSSY = 0.05  # no trial of more streams while more than that share is retransmitted
LEVEL_BINS = 5.0  # a change of the network shows in the mean of about that many bins
LEVEL_SIGMA, LEVEL_LEAST = 2.5, 0.2  # how far goodput must leave the prediction (of its logarithm)
JUMP_BINS, JUMP_SIGMA = 3, 5.0  # or in the errors of that many bins in a row, each from the one before
PATIENCE_S, PATIENCE_RTT = 3.5, 20.0  # two lost SYNs, then streams that are not open are given up ...
RETRY_S = 30.0  # ... for that long
ALL_UP = 0.9  # a bin worth more has its streams up to speed
OVER = 1.1  # where that many are enough, a knee above them by that factor is unlikely
A_LITTLE = 0.1  # where windows limit streams that often, as many as leave no queue are enough
HELD_KNEE = 0.7  # where windows limit streams mostly, the knee is at least this share of their number
ROOM, MORE = -3.0, 1.25  # where more streams would carry more: log-odds for knees below MORE times n
HINT = -1.0  # log-odds of a hint, for the candidates that it contradicts
ALIKE = 0.95  # paths whose streams carry that share of what the best carry are as good: the smallest grows
ENDING = 3.0  # no trial when less is left than that many times what a change needs to pay


class AutoTuner:
    """Decides on the streams of one group of paths, `initial` (one number, or one per path) to start with.

    Without it a path starts with 4, or more where its RTT is long, as each step takes longer there.
    `max_streams` bounds the sum over the group, but every path keeps at least one stream. The goodput of the
    whole group counts; one path is changed at a time.
    """

    def __init__(self, initial: int | Mapping[str, int] | None = None, max_streams: int = 256):
        if max_streams < 1:
            raise ValueError("max_streams must be at least 1")
        self._initial, self._max = initial, max_streams
        self._meter = Meter()
        self._belief = CurveBelief(max_streams, 1)
        self._asked: dict[str, int] = {}  # streams decided on, by path
        self._changed_s = 0.0
        self._complete_s = 0.0  # when as many streams as asked for were last open
        self._bins = 0  # since the last change
        self._level = 0.0  # how far goodput is from the prediction (logarithm, smoothed)
        self._errors: list[float] = []  # of the last bins, each from the one before
        self._first = True  # no two numbers of streams were compared yet
        self._home: dict[str, int] | None = None  # streams before the trial under way, by path
        self._exploration = Exploration()
        self._held_at = math.inf  # fewest streams that windows limited
        self._windows = Windows()
        self._ceiling, self._ceiling_until_s = max_streams, -math.inf
        self._floor, self._floor_until_s = 1, -math.inf

    def observe(self, now_s: float, samples: Mapping[str, Sample]) -> Sequence[Decision]:
        """See `mpx.engine.tuner.Tuner`. There is never a chunk or a barrier."""
        starts = self._start(now_s, samples)
        measured = self._meter.add(now_s, samples, self._belief.noise)
        if starts or not samples:
            return starts
        settled, decisions = self._settle(now_s, samples)
        if not settled:
            return decisions
        if measured is None:
            return self._without_answer(now_s, samples)
        if measured.worth > ALL_UP:
            self._exploration.rest(now_s, _arrived(samples))
        self._learn(measured)
        if self._ending(samples, measured):
            if self._home is None:
                return []
            why = f"returning from a trial of {_streams(measured.streams)}, as the copy ends"
            return self._back(now_s, self._home, self._reason(measured, why))
        return self._decide(now_s, measured, samples)

    def disturbed(self, now_s: float) -> None:
        """See `Tuner`. As when the network has changed, and streams have to come up to speed again."""
        if self._asked:
            self._belief.reopen(sum(self._asked.values()))
            self._forget()
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
                wanted = (wanted or {}).get(path, _start_with(samples[path].rtt_s))
            self._asked[path] = max(1, min(wanted, room))
        total = max(1, sum(self._asked.values()))
        self._belief = CurveBelief(max(self._max, total), total)
        self._forget()
        self._first, self._changed_s = True, now_s
        self._ceiling_until_s = self._floor_until_s = -math.inf
        self._meter.ask(total)
        return [Decision(p, self._asked[p], f"start with {_streams(self._asked[p])}") for p in fresh]

    def _settle(self, now_s: float, samples: Mapping[str, Sample]) -> tuple[bool, list[Decision]]:
        """Whether as many streams as asked for are open; after some time what is open counts as asked for."""
        if all(sample.streams == self._asked[path] for path, sample in samples.items()):
            self._complete_s = now_s
            return True, []
        if any(sample.changing for sample in samples.values()):
            self._complete_s = now_s  # they will open, however slow the server is
        patience_s = max(PATIENCE_S, PATIENCE_RTT * self._meter.rtt_s)
        waited_s = now_s - max(self._changed_s, self._complete_s)  # some may only pause between two files
        if waited_s < patience_s or any(s.streams == 0 for s in samples.values()):
            return False, []
        self._home = None
        self._exploration.end(now_s)
        self._meter.ask(None)
        decisions = []
        for path, sample in samples.items():
            if sample.streams > self._asked[path]:  # each file under way keeps one
                self._asked[path] = sample.streams
                self._floor, self._floor_until_s = sum(s.streams for s in samples.values()), now_s + RETRY_S
            elif sample.streams < self._asked[path]:
                reason = (
                    f"only {sample.streams} of {_streams(self._asked[path])} open after {patience_s:.1f} s"
                )
                decisions.append(Decision(path, sample.streams, reason))
                self._asked[path] = sample.streams
        if decisions:
            self._ceiling = sum(s.streams for s in samples.values())
            self._ceiling_until_s = now_s + RETRY_S
        return not decisions, decisions

    def _learn(self, measured: Bin) -> None:
        """Weigh one bin; search again from the start if goodput is far from what was predicted."""
        belief, n = self._belief, measured.streams
        if measured.worth > ALL_UP and self._has_changed(measured):
            belief.reopen(n)
            self._forget()
        belief.add(measured.at_s, measured.up, measured.goodput_bps, measured.worth)
        self._bins += 1
        self._windows.learn(n, measured.goodput_bps, measured.held_back, measured.window_bps)
        if self._windows.room:
            belief.hint(lambda knee, _fewest: ROOM if knee < MORE * n else 0.0)
        if measured.worth < ALL_UP:
            return
        if measured.held_back is None:
            return
        if measured.excess is not None and measured.held_back > A_LITTLE:
            enough = max(saturation.SHARING, OVER * n * (1 - measured.excess))
            belief.hint(lambda _knee, fewest: HINT if fewest > enough else 0.0)
        if measured.held_back > AT_THE_WINDOWS:
            self._held_at = min(n, self._held_at)
            belief.hint(lambda knee, _fewest: HINT if knee < HELD_KNEE * n else 0.0)
        elif measured.held_back < FREE and self._held_at < n:
            belief.hint(lambda knee, _fewest: HINT if knee > OVER * n else 0.0)

    def _forget(self) -> None:
        """Forget what depends on paths and network, as they have changed."""
        self._bins, self._level, self._home = 0, 0.0, None
        self._errors, self._held_at = [], math.inf
        self._windows.forget()
        self._exploration.forget()

    def _has_changed(self, measured: Bin) -> bool:
        """Whether goodput is far from what was predicted: suddenly, or for a while."""
        noise = self._belief.noise
        off, error = self._belief.surprise(measured.at_s, measured.up, measured.goodput_bps)
        self._level += (off - self._level) / LEVEL_BINS
        if self._bins > LEVEL_BINS and abs(self._level) > max(LEVEL_LEAST, LEVEL_SIGMA * noise):
            return True
        self._errors = [*self._errors, error][-JUMP_BINS:]
        if self._home is not None or len(self._errors) < JUMP_BINS:
            return False
        usual = self._belief.fresh_noise(self._meter.bin_s) * math.sqrt(JUMP_BINS)
        return abs(sum(self._errors)) > max(LEVEL_LEAST, JUMP_SIGMA * usual)

    def _ending(self, samples: Mapping[str, Sample], measured: Bin) -> bool:
        """Whether too little is left for a change to pay: it costs a ramp, and half a second to be seen."""
        left_bits = 8 * sum(s.bytes_left for s in samples.values())
        return left_bits < ENDING * measured.goodput_bps * (self._meter.ramp_s + 0.5)

    def _decide(self, now_s: float, measured: Bin, samples: Mapping[str, Sample]) -> list[Decision]:
        belief, n = self._belief, measured.streams
        home, self._home = self._home, None
        least, most = self._limits(now_s, samples)
        least = min(n, max(least, self._windows.needed(measured.goodput_bps)))
        stay = n if home is None else sum(home.values())
        up = MOST_UP if measured.held_back is None or n < FEW else MOST_UP_KNOWN
        highest = max(least, min(most, round(n * up)))
        target = max(least, math.ceil(n / MOST_DOWN), min(highest, belief.target()))
        why = "moving to the best range"
        if measured.full:
            return self._when_full(now_s, measured, samples, least, home)
        if self._first and n < most:
            self._first = False
            target = max(target, min(most, round(FIRST_STEP * n)))
            why = f"first trial, of {_streams(target)}"
        elif self._windows.room and n >= stay:
            target = max(target, highest)
            why = "receive windows limit each stream, so more streams carry more"
        elif belief.fit(target) - belief.fit(stay) <= MOVE_FIT:
            if home is not None:
                return self._back(
                    now_s, home, self._reason(measured, f"returning from a trial of {_streams(n)}")
                )
            target = self._next_trial(now_s, measured, samples, least, highest)
            why = f"trial of {_streams(target)}"
        return self._go(now_s, samples, target - n, self._reason(measured, why))

    def _limits(self, now_s: float, samples: Mapping[str, Sample]) -> tuple[int, int]:
        """Return the fewest and the most streams that there can be now."""
        least = max(len(samples), self._floor if now_s < self._floor_until_s else 1)
        return least, max(least, self._ceiling if now_s < self._ceiling_until_s else self._max)

    def _when_full(
        self,
        now_s: float,
        measured: Bin,
        samples: Mapping[str, Sample],
        least: int,
        home: dict[str, int] | None,
    ) -> list[Decision]:
        """Decide while a queue stands at the bottleneck: `mpx.tuning.saturation`."""
        n = measured.streams
        if home is not None:
            before, noise = sum(home.values()), self._belief.fresh_noise(self._meter.bin_s)
            gained = saturation.gained(before, self._exploration.home_bps, n, measured.goodput_bps, noise)
            if before < n and not gained:
                why = f"returning from a trial of {_streams(n)}: the path is full, and they carry hardly more"
                return self._back(now_s, home, self._reason(measured, why))
            self._exploration.end(now_s)  # it is full with fewer, too, or it was not full before
        if measured.excess is None:
            return []
        self._first = False
        target = saturation.fewer(n, least)
        if target >= n or not self._begin_trial(now_s, measured, samples):
            return []
        why = f"the path is full: trial of {_streams(target)}"
        return self._go(now_s, samples, target - n, self._reason(measured, why))

    def _without_answer(self, now_s: float, samples: Mapping[str, Sample]) -> list[Decision]:
        """No bin was measured just now. A trial for which that lasts too long ends without a result."""
        meter, home = self._meter, self._home
        if home is None or meter.settled:
            return []
        if not self._exploration.too_long(now_s, _arrived(samples), meter.rtt_s, meter.bin_s):
            return []
        n = sum(sample.streams for sample in samples.values())
        waited_s = now_s - self._changed_s
        self._exploration.without_result(n - sum(home.values()))
        return self._back(
            now_s, home, f"returning from a trial of {_streams(n)}: not up to speed within {waited_s:.1f} s"
        )

    def _next_trial(
        self, now_s: float, measured: Bin, samples: Mapping[str, Sample], least: int, most: int
    ) -> int:
        """Return how many streams to try, to learn or to notice a change of the network; or the present."""
        belief, n, rtt_s = self._belief, measured.streams, self._meter.rtt_s
        factors = [factor for factor in TRIALS if factor < 1 or measured.resent <= LOSSY]
        places = {max(least, min(most, round(n * factor))) for factor in factors} - {n}
        places = self._exploration.sides(n, places)
        if not places or not self._begin_trial(now_s, measured, samples):
            return n
        noise = belief.fresh_noise(2 * self._meter.bin_s + AT_LEAST_RTT * rtt_s)
        return max(sorted(places), key=lambda p: belief.value(n, p, noise) / abs(p - n) ** TRIAL_COST)

    def _begin_trial(self, now_s: float, measured: Bin, samples: Mapping[str, Sample]) -> bool:
        """Begin a trial if one is due and the last is paid for; return whether it did."""
        good, arrived = self._belief.good(measured.streams), _arrived(samples)
        if not self._exploration.due(now_s, self._changed_s, good, self._meter.rtt_s):
            return False
        if not self._exploration.paid(now_s, arrived, good):
            return False
        self._first = False
        self._home = dict(self._asked)
        self._exploration.begin(now_s, arrived)
        return True

    def _back(self, now_s: float, home: dict[str, int], reason: str) -> list[Decision]:
        """End a trial; goodput counts again when it is what it was before."""
        self._home = None
        self._exploration.end(now_s)
        changes = [Decision(path, n, reason) for path, n in home.items() if self._asked[path] != n]
        self._asked = dict(home)
        if changes:
            self._moved(now_s, self._exploration.home_bps)
        return changes

    def _go(self, now_s: float, samples: Mapping[str, Sample], change: int, reason: str) -> list[Decision]:
        """Add streams to the path whose streams carry most, or close some where they carry least."""

        def per_stream(path: str) -> float:
            return self._meter.goodput_bps(path) / samples[path].streams

        if change == 0:
            return []
        if change > 0:
            most = max(map(per_stream, samples))
            alike = [p for p in samples if per_stream(p) >= ALIKE * most]
            path = min(alike, key=lambda p: samples[p].streams)
        else:
            path = min((p for p in samples if samples[p].streams > 1), key=per_stream)
        self._asked[path] = max(1, samples[path].streams + change)
        self._moved(now_s)
        return [Decision(path, self._asked[path], reason)]

    def _moved(self, now_s: float, expected_bps: float | None = None) -> None:
        """Note that another number of streams was asked for."""
        self._changed_s, self._bins, self._level, self._errors = now_s, 0, 0.0, []
        self._exploration.stir()
        self._meter.ask(sum(self._asked.values()), expected_bps)

    def _reason(self, measured: Bin, why: str) -> str:
        belief = self._belief
        return (
            f"{measured.goodput_bps / 1e6:.1f} Mbit/s with {_streams(measured.streams)}; {why}; best range "
            f"{belief.quantile(0.2):.0f}-{belief.quantile(0.8):.0f} (noise {100 * belief.noise:.0f} %)"
        )


def _start_with(rtt_s: float | None) -> int:
    return min(MOST_AT_START, max(START, round(START * (rtt_s or 0.0) / START_RTT_S)))


def _arrived(samples: Mapping[str, Sample]) -> int:
    return sum(sample.arrived_bytes for sample in samples.values())


def _streams(count: int) -> str:
    return counted(count, "stream")
