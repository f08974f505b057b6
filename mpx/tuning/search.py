"""The search for the number of streams: more while they carry more, fewer where as much arrives with them.

Goodput over the number of streams is taken for two straight pieces: up to the bend each stream adds as much
as the ones before, beyond it the path is full. The search knows the height of the second piece when it has
seen the path full, or more streams that brought hardly more; then it only has to stay near that height.
"""

import math
from dataclasses import dataclass

from mpx.engine.tuner import START
from mpx.tuning.constants import (
    AS_MUCH,
    COST,
    FELL,
    GAIN,
    HALF_THE_TIME,
    LONGEST_S,
    LOSSY,
    LOST,
    MANY,
    MUCH,
    NEARLY_ALL,
    QUICK,
    RAMP,
    RAREST_S,
    REST,
    SHORT,
    SLOW,
    SPARE,
    STEP,
    STEP_SHOWS_S,
    UP,
    WAIT_S,
)
from mpx.tuning.losses import response_bps
from mpx.tuning.measurement import Meter, Reading
from mpx.units import counted


@dataclass(frozen=True, slots=True)
class Step:
    """Another number of streams; `back`: the one before the trial that ends."""

    streams: int
    reason: str
    back: bool = False


@dataclass(frozen=True, slots=True)
class LossLimits:
    """How many streams there should be where losses show that more fill the path."""

    too_many: bool  # there are more: down to `least`
    least: int
    most: int


@dataclass(frozen=True, slots=True)
class _Before:
    streams: int
    goodput_bps: float
    is_quick: bool = False  # what follows is judged as soon as it can be
    was_taken: bool = False  # losses had shown that they were too many
    was_short: bool = False  # far less was carried than the path had carried


class Search:
    """The search on one group of paths.

    `rate_bps`: more than that is not sent, however many streams. `share`: as many streams may always stay.
    `yields`: where a long queue stands, or losses are due to a full path, streams beyond the share are closed
    even if they carry more. `least`: no trial of fewer. `expected`: where the first
    step goes, if the path has room.
    """

    def __init__(
        self,
        rate_bps: float | None = None,
        share: int = START,
        *,
        yields: bool = True,
        least: int = 1,
        expected: int | None = None,
    ) -> None:
        self._expected = expected
        self._rate_bps, self._share, self._least = math.inf if rate_bps is None else rate_bps, share, least
        self._yields = yields
        self._is_taken = False  # what more streams carry others lose, as losses show
        self._is_first = True  # no step was made yet
        self._is_slow = False  # what streams carry soon after a step is more than they can keep
        self._path_bps: float | None = None  # what the path carries; None: more than was measured so far
        self._is_flat = False  # more streams than these carried hardly more
        self._wait_s = WAIT_S
        self.reopen()

    def reopen(self) -> None:
        """Expect that another number may be better now: trials may begin at once."""
        self.drop()
        self._more_s = -math.inf  # no trial of more streams before
        self._too_few: tuple[float, int] | None = None  # when so many streams were found to be too few
        self._cured_s = -math.inf  # when more streams were found to be enough
        self._last: tuple[float, int] | None = None  # trial of fewer: when it began, and what had arrived

    def drop(self) -> None:
        """Drop the comparison under way, as other streams than asked for are open."""
        self._rise: _Before | None = None  # before a step up that is to be judged
        self._trial: _Before | None = None  # before a trial of fewer streams

    def next(
        self,
        now_s: float,
        age_s: float,
        n: int,
        meter: Meter,
        least: int,
        most: int,
        *,
        limits: LossLimits | None = None,
    ) -> Step | None:
        """Return the next step from `n` streams that have carried data for `age_s`; None: stay.

        `least`, `most`: how many there can be. `limits`: losses show that the path is full with more, though
        no long queue may stand: routers that keep one for each stream give each its part of the path.
        """
        if limits and self._yields:
            most = min(most, max(n, limits.most))
            least = max(least, min(n, limits.least))
        rtt_s = meter.rtt_s
        quick = meter.reading(QUICK.at(rtt_s))
        if quick is None or age_s < RAMP.at(rtt_s):
            return None
        slow = meter.reading(SLOW.at(rtt_s))
        are_too_many = bool(limits and limits.too_many and self._yields)
        self._is_taken = are_too_many and not _windows_limit(slow or quick)  # these keep within their windows
        rest_s = REST.at(rtt_s)
        if self._trial is not None:
            return self._judge_fewer(now_s, age_s, n, quick, slow, rest_s, self._trial)
        if self._rise is not None:
            if self._rise.is_quick and not _is_full(quick) and _gained(n, quick, self._rise, GAIN):
                return self._judge_more(now_s, n, quick, self._rise)
            if slow is None or (_rises(quick, slow) and age_s < rest_s):
                return None
            return self._judge_more(now_s, n, slow, self._rise)
        if n < self._share and _is_full(quick):  # it began with fewer
            why = "the path is full, and the share is more"
            return self._more(n, quick, self._share / n, most, why, is_quick=True)
        if self._is_taken:
            return self._try(now_s, n, slow, meter, least, most) if slow else None
        if slow is not None and _is_full(slow) and _is_full(quick):  # else it was, and now they carry less
            self._path_bps = slow.goodput_bps
        if self._path_bps is None:
            return self._climb(n, quick, slow, most, rtt_s)
        if slow is None:
            return None
        is_at_rest, is_far_below = age_s >= rest_s, slow.goodput_bps < LOST * self._path_bps
        if slow.goodput_bps < SHORT * self._path_bps and not _rises(quick, slow):
            if not (is_at_rest or is_far_below):
                return None
            # Far below it may fall still: losses come late, and then hold each stream.
            missing = STEP if is_far_below else SPARE * self._path_bps / slow.goodput_bps
            factor = max(UP, min(STEP, missing))
            why = f"less than the {_mbps(self._path_bps)} that the path carries"
            return self._more(n, slow, factor, most, why, is_short=is_far_below)
        if not (is_at_rest or self._is_crowded(slow)):
            return None
        return self._try(now_s, n, slow, meter, least, most)

    def _climb(self, n: int, quick: Reading, slow: Reading | None, most: int, rtt_s: float) -> Step | None:
        measured = slow if self._is_slow else quick
        if measured is None or _is_full(measured) or (self._is_slow and _rises(quick, measured)):
            return None
        windows = _windows_limit(measured)
        factor = UP if n >= MANY and windows else STEP
        # Who carries less than losses as large would leave has little room, though no queue may show.
        is_tight = measured.goodput_bps < n * response_bps(LOSSY, rtt_s)
        if self._is_first and factor == STEP and not is_tight:
            # Two steps at once; three where they take long, but from no more streams than the share.
            third = min(STEP, RAMP.at(rtt_s) / STEP_SHOWS_S) * min(1.0, self._share / n)
            factor = max(STEP**2 * max(1.0, third), (self._expected or 0) / n)
        why = "windows limit the streams" if windows else "the path has room"
        return self._more(n, measured, factor, most, why, is_quick=not self._is_slow)

    def _more(
        self,
        n: int,
        measured: Reading,
        factor: float,
        most: int,
        why: str,
        *,
        is_quick: bool = False,
        is_short: bool = False,
    ) -> Step | None:
        target = min(most, math.ceil(n * factor - 1e-9))
        is_enough = measured.goodput_bps >= SHORT * self._rate_bps
        if target <= n or is_enough or measured.resent > LOSSY:
            return None
        self._is_first = False
        self._rise = _Before(n, measured.goodput_bps, is_quick, was_short=is_short)
        return Step(target, _reason(n, measured, f"{why}: {_streams(target)}"))

    def _judge_more(self, now_s: float, n: int, measured: Reading, before: _Before) -> Step | None:
        """Stay with more streams, or go back to the bend, which the two measurements show."""
        self._rise = None
        gained, is_full = _gained(n, measured, before, GAIN), _is_full(measured) and self._yields
        self._is_flat = not (gained or is_full)
        is_cured = before.was_short and (gained or measured.goodput_bps >= SHORT * (self._path_bps or 0.0))
        if is_cured:
            self._too_few, self._cured_s = (now_s, before.streams), now_s
        if gained and not is_full:
            self._path_bps = None if _gained(n, measured, before, MUCH) else measured.goodput_bps
            self._wait_s = WAIT_S
            return None
        rise = measured.goodput_bps / before.goodput_bps
        if before.is_quick and rise >= SPARE and not is_full:
            self._is_slow, self._path_bps = True, None
            return None
        carries_bps = measured.goodput_bps if rise > 1 else (measured.goodput_bps + before.goodput_bps) / 2
        # New streams carry more than their share for a while, so one step does not show that it is much less.
        self._path_bps = max(carries_bps, (carries_bps + (self._path_bps or 0.0)) / 2)
        if not gained:  # a path that is full of our own stays so, and each trial costs
            fills_it = _is_full(measured) and not self._yields
            self._wait_s = RAREST_S if fills_it else min(RAREST_S, UP * self._wait_s)
        self._more_s = now_s + self._wait_s
        bend = before.streams if AS_MUCH * rise < 1 else math.ceil(SPARE * before.streams * rise)
        if (before.was_short and rise > 1) or (before.is_quick and rise > FELL) or bend > NEARLY_ALL * n:
            return None  # soon after a step streams may carry more than they can keep
        why = f"{_streams(bend)} carry {'more' if rise < AS_MUCH else 'as much'}"
        return Step(bend, _reason(n, measured, why))

    def _try(
        self, now_s: float, n: int, measured: Reading, meter: Meter, least: int, most: int
    ) -> Step | None:
        """Try fewer streams where they may carry as much, or more where the path may carry more by now."""
        least = max(least, min(max(self._share, self._least), n))
        if measured.window_bps:  # fewer windows cannot carry as much
            least = max(least, math.ceil(measured.goodput_bps / measured.window_bps - 0.01))
        target = max(least, self._fewer(now_s, n))
        may_be_too_many = self._is_taken or measured.full is None or _is_full(measured) or self._is_flat
        is_paid = self._is_taken or self._is_paid(now_s, measured, meter.arrived_bytes)
        # New streams overshoot, so a queue soon after there were too few is theirs.
        is_soon = now_s < self._cured_s + 2 * REST.at(meter.rtt_s)
        if target < n and may_be_too_many and is_paid and (self._is_taken or not is_soon):
            self._trial = _Before(n, measured.goodput_bps, was_taken=self._is_taken)
            self._last = (now_s, meter.arrived_bytes)
            return Step(target, _reason(n, measured, f"trial of {_streams(target)}"))
        if now_s < self._more_s or (_is_full(measured) and self._yields):
            return None
        if _is_full(measured):
            return self._more(n, measured, STEP, most, "trial of more, as others may fill the path")
        return self._more(n, measured, UP, most, "trial of more, as the path may have changed")

    def _fewer(self, now_s: float, n: int) -> int:
        """Return how many streams to try instead of `n`: as many less as usual, or half-way to too few."""
        if self._is_taken:
            return round(n / STEP)
        usual = round(n / UP)
        found_s, too_few = self._too_few or (-math.inf, 0)
        is_known = now_s <= found_s + LONGEST_S and usual <= too_few < n
        return math.ceil(math.sqrt(too_few * n)) if is_known else usual

    def _is_paid(self, now_s: float, measured: Reading, arrived_bytes: int) -> bool:
        """Whether the mean goodput since the last trial of fewer streams began is nearly that of now."""
        if self._last is None:
            return True
        began_s, then_bytes = self._last
        mean_bps = (arrived_bytes - then_bytes) * 8 / (now_s - began_s)
        return mean_bps >= (1 - COST) * measured.goodput_bps or now_s > began_s + LONGEST_S

    def _judge_fewer(
        self,
        now_s: float,
        age_s: float,
        n: int,
        quick: Reading,
        slow: Reading | None,
        longest_s: float,
        before: _Before,
    ) -> Step | None:
        """Stay with fewer streams, wait for them to take over from those that were closed, or go back.

        As long as the path is crowded with them they stay: more would only take from others.
        """
        # Of what the path carries, too: else one trial after the other takes a little.
        enough_bps = AS_MUCH * max(before.goodput_bps, self._path_bps or 0.0)
        if slow is not None and (
            slow.goodput_bps >= enough_bps or before.was_taken or self._is_crowded(slow)
        ):
            self._trial = self._too_few = None
            if before.was_taken or self._is_crowded(slow):
                self._last = None  # what it cost others have
            return None
        keeps_up = quick.goodput_bps > LOST * before.goodput_bps
        may_be_enough = keeps_up or before.was_taken or self._is_crowded(quick)
        if age_s < longest_s and may_be_enough:
            return None
        self._trial = None
        self._too_few = (now_s, n)
        than = "before"
        if self._path_bps and quick.goodput_bps >= AS_MUCH * before.goodput_bps:
            than = f"the {_mbps(self._path_bps)} that the path carries"
        return Step(before.streams, _reason(n, quick, f"less than {than}: returning"), back=True)

    def _is_crowded(self, measured: Reading) -> bool:
        """Whether others wait in a queue with us, and streams beyond the share are to leave it to them."""
        is_long = measured.crowded is not None and measured.crowded >= HALF_THE_TIME
        return self._is_taken or (self._yields and is_long and not _windows_limit(measured))


def _gained(n: int, measured: Reading, before: _Before, power: float) -> bool:
    return measured.goodput_bps >= before.goodput_bps * math.pow(n / before.streams, power)


def _rises(quick: Reading, slow: Reading) -> bool:
    """Whether streams are recovering still, so that more will arrive without another step."""
    return AS_MUCH * quick.goodput_bps > slow.goodput_bps


def _windows_limit(measured: Reading) -> bool:
    return measured.held_back is not None and measured.held_back > HALF_THE_TIME


def _is_full(measured: Reading) -> bool:
    """Whether a queue stands that is not of others alone: where windows limit us, it may be."""
    return measured.full is not None and measured.full >= HALF_THE_TIME and not _windows_limit(measured)


def _reason(n: int, measured: Reading, why: str) -> str:
    full = "" if measured.full is None else f" and a queue for {100 * measured.full:.0f}% of the time"
    return f"{_mbps(measured.goodput_bps)} with {_streams(n)}{full}; {why}"


def _mbps(goodput_bps: float) -> str:
    return f"{goodput_bps / 1e6:.1f} Mbit/s"


def _streams(count: int) -> str:
    return counted(count, "stream")
