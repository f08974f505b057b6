"""Why segments are lost: at random, or because a queue or a policer is full. Pure.

Losses while a queue stands are compared with those while none does, as TCP Veno does (Fu and Liew, IEEE JSAC
21(2), 2003): a queue drops only while it is full. And those with different numbers of streams: where losses
are random their share stays the same, where a policer drops it grows with the streams.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

from mpx.engine.round_trips import SEGMENT_BYTES
from mpx.tuning.constants import ALIKE, LONGEST_S, LOSSES, POLICED, SLOW, UP
from mpx.tuning.measurement import Losses

RANDOM, QUEUE, POLICER = "random", "queue", "policer"
RULE_OF_THREE = 3  # where none was seen there may be that many, with 95 %


def response_bps(loss: float, rtt_s: float) -> float:
    """Return what one CUBIC stream carries where that share of its segments is lost at random, bit/s.

    RFC 9438, section 5: the larger of the response functions of CUBIC (C = 0.4, beta = 0.7) and of Reno.
    """
    cubic = 1.054 * math.pow(rtt_s / loss, 0.75)
    reno = math.sqrt(1.5 / loss)
    return max(cubic, reno) * SEGMENT_BYTES * 8 / rtt_s


@dataclass(slots=True)
class Counted:
    """What was carried and lost."""

    segments: float = 0.0
    lost: int = 0

    def less(self, other: "Counted") -> "Counted":
        """Return what is left of it without the other."""
        return Counted(max(0.0, self.segments - other.segments), max(0, self.lost - other.lost))

    def add(self, other: "Counted") -> None:
        """Add what another holds."""
        self.segments += other.segments
        self.lost += other.lost

    @property
    def share(self) -> float:
        """The share of segments that was lost."""
        return self.lost / self.segments if self.segments else 0.0

    @property
    def most_share(self) -> float:
        """The share that may be lost, where few were."""
        return (self.lost + RULE_OF_THREE) / self.segments if self.segments else math.inf


@dataclass(slots=True)
class _Dose:
    """What so many streams carried and lost, without a queue and while one stood."""

    streams: int
    clear: Counted = field(default_factory=Counted)
    queued: Counted = field(default_factory=Counted)
    untold: Counted = field(default_factory=Counted)
    seconds: float = 0.0

    def add(self, seconds: float, clear: Counted, queued: Counted, untold: Counted) -> None:
        """Count some time, and what was carried and lost in it."""
        self.seconds += seconds
        self.clear.add(clear)
        self.queued.add(queued)
        self.untold.add(untold)

    def forget(self) -> None:
        """Let what is new count more than what is old."""
        self.seconds /= 2
        for each in (self.clear, self.queued, self.untold):
            each.segments, each.lost = each.segments / 2, each.lost // 2

    @property
    def not_queued(self) -> Counted:
        """What no queue showed for."""
        return _sum((self.clear, self.untold))

    @property
    def whole(self) -> Counted:
        """All of it."""
        return _sum((self.clear, self.queued, self.untold))


class LossJudge:
    """Tells why segments are lost on one group of paths; `kind` is None until it is known."""

    def __init__(self) -> None:
        self.kind: str | None = None
        self.too_many = 0  # streams that were found to lose more than what is random, where that is policed
        self._doses: dict[int, _Dose] = {}
        self._before: tuple[float, Losses] | None = None  # when, and what was known then
        self._known_share, self._known_s = 0.0, 0.0  # of segments that was lost when that came to be known

    def observe(self, now_s: float, age_s: float, streams: int, now: Losses | None, *, rtt_s: float) -> str:
        """Take what has arrived and was lost so far; return in words what has come to be known, once.

        `age_s`: for how long there are so many streams; `now`: None where nobody knows of queues.
        """
        if now is None:
            return ""
        (before_s, before), self._before = self._before or (now_s, None), (now_s, now)
        if before is None or age_s < SLOW.at(rtt_s):  # new streams overshoot: what they lose says nothing
            return ""
        queued = Counted(
            (now.queued_bytes - before.queued_bytes) / SEGMENT_BYTES, now.queued_lost - before.queued_lost
        )
        untold = Counted(
            (now.untold_bytes - before.untold_bytes) / SEGMENT_BYTES, now.untold_lost - before.untold_lost
        )
        both = Counted((now.arrived_bytes - before.arrived_bytes) / SEGMENT_BYTES, now.lost - before.lost)
        dose = self._doses.setdefault(streams, _Dose(streams))
        dose.add(now_s - before_s, both.less(queued).less(untold), queued, untold)
        if dose.seconds > LONGEST_S:
            dose.forget()
        if self.kind in (QUEUE, POLICER) and now_s > self._known_s + LONGEST_S:
            self.kind = None  # fewer streams lose less, so only more of them can tell
            self._doses.clear()
            return ""
        kind, why = self._judged(dose, rtt_s)
        if not why or kind == self.kind:
            return ""
        self.kind, self._known_share, self._known_s = kind, dose.whole.share, now_s
        return why

    def counted(self, streams: int) -> Counted:
        """Return what so many streams have carried and lost so far."""
        return self._doses[streams].whole if streams in self._doses else Counted()

    def restart(self) -> None:
        """Forget what was measured, as the streams are others now; what is known stays so."""
        self._doses.clear()
        self._before = None

    def _judged(self, dose: _Dose, rtt_s: float) -> tuple[str | None, str]:
        """Return why segments are lost, and how that shows; no words where it does not."""
        whole = dose.whole
        expected = self._known_share * whole.segments
        if self.kind == RANDOM and expected >= RULE_OF_THREE * LOSSES and whole.lost < LOSSES:
            self._doses.clear()
            return None, f"losses have ended: {_lost(whole, dose.streams)}"
        # With all numbers of streams, as where more of them fill the path a queue stands:
        doses = list(self._doses.values())
        clear, queued = _sum(each.clear for each in doses), _sum(each.queued for each in doses)
        both = _sum(each.whole for each in doses)
        if both.lost < LOSSES or whole.segments <= whole.lost:  # else it is an outage: each is sent in vain
            return self.kind, ""
        one_bps = response_bps(both.share, rtt_s)
        matters = one_bps < whole.segments * SEGMENT_BYTES * 8 / dose.seconds
        one = f"one CUBIC stream would carry {one_bps / 1e6:.1f} Mbit/s"
        if compared := _compared(doses):
            power, error, many, why = compared
            if power - error > POLICED:
                self.too_many = many
                return POLICER, f"the path is full, or something drops what is above a rate: {why}"
            if power + error < POLICED and matters:
                return RANDOM, f"losses are random: {why}; {one}"
        if self.kind == RANDOM and whole.share <= ALIKE * self._known_share:
            return self.kind, ""
        if min(clear.lost, queued.lost) >= LOSSES and ALIKE * clear.share >= queued.share:
            why = f"{_lost(queued)} while a queue stands, and {clear.share:.2%} without one; {one}"
            return (RANDOM, f"losses are random: {why}") if matters else (self.kind, "")
        if queued.lost >= LOSSES and ALIKE**2 * clear.most_share <= queued.share:
            return QUEUE, f"the path is full: {_lost(queued)} while a queue stands, else hardly any"
        return self.kind, ""


def _sum(some: Iterable[Counted]) -> Counted:
    total = Counted()
    for each in some:
        total.add(each)
    return total


def _compared(doses: list[_Dose]) -> tuple[float, float, int, str] | None:
    """Return by which power of the streams the share of losses grows without a queue, and its error.

    And with how many most are lost, and in words what was compared: few and many streams, as far apart as
    there are losses enough. None where there are not.
    """
    doses = sorted((each for each in doses if each.not_queued.segments), key=lambda each: each.streams)
    best, found = UP, None
    for edge in range(1, len(doses)):
        parts = doses[:edge], doses[edge:]
        fewer, more = (_sum(each.not_queued for each in part) for part in parts)
        if min(fewer.lost, more.lost) < LOSSES:
            continue
        few, many = (
            sum(each.streams * each.not_queued.segments for each in part) / counted.segments
            for part, counted in zip(parts, (fewer, more), strict=True)
        )
        if many / few >= best:
            best = many / few
            power = math.log(more.share / fewer.share) / math.log(best)
            error = math.sqrt(1 / fewer.lost + 1 / more.lost) / math.log(best)  # counts are Poisson's
            why = f"{_lost(more, round(many))} and {fewer.share:.2%} with {round(few)}, without a queue"
            found = power, error, round(many), why
    return found


def _lost(counted: Counted, streams: int | None = None) -> str:
    with_so_many = "" if streams is None else f" with {streams} streams"
    return f"{counted.share:.2%} of the segments are lost{with_so_many}"
