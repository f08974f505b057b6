"""Why segments are lost: at random, or because a queue or a policer is full. Pure.

Losses while a queue stands are compared with those while none does, as TCP Veno does (Fu and Liew, IEEE JSAC
21(2), 2003): a queue drops only while it is full. And those with different numbers of streams: where losses
are random their share stays the same, where a policer drops it grows with the streams.
"""

import math
from dataclasses import dataclass, field

from mpx.tuning.constants import ALIKE, FEW, LOSSES, MUCH, QUICK, REST, SEGMENT_BYTES, UP

RANDOM, QUEUE, POLICER = "random", "queue", "policer"


def response_bps(loss: float, rtt_s: float) -> float:
    """Return what one CUBIC stream carries where that share of its segments is lost at random, bit/s.

    RFC 9438, section 5: the larger of the response functions of CUBIC (C = 0.4, beta = 0.7) and of Reno.
    """
    cubic = 1.054 * math.pow(rtt_s / loss, 0.75)
    reno = math.sqrt(1.5 / loss)
    return max(cubic, reno) * SEGMENT_BYTES * 8 / rtt_s


@dataclass(slots=True)
class _Counted:
    """What was carried and lost."""

    segments: float = 0.0
    lost: int = 0

    @property
    def share(self) -> float:
        """The share of segments that was lost."""
        return self.lost / self.segments if self.segments else 0.0

    @property
    def most_share(self) -> float:
        """The share that may be lost, where few were."""
        return (self.lost + FEW) / self.segments if self.segments else math.inf


@dataclass(slots=True)
class _Dose:
    """What so many streams carried and lost, without a queue and while one stood."""

    streams: int
    clear: _Counted = field(default_factory=_Counted)
    queued: _Counted = field(default_factory=_Counted)
    seconds: float = 0.0

    @property
    def whole(self) -> _Counted:
        return _Counted(self.clear.segments + self.queued.segments, self.clear.lost + self.queued.lost)


class LossJudge:
    """Tells why segments are lost on one group of paths; `kind` is None until it is known."""

    def __init__(self) -> None:
        self.kind: str | None = None
        self._doses: dict[int, _Dose] = {}
        # Time, bytes that had arrived, segments sent again:
        self._before: tuple[float, int, int] | None = None
        self._queued_s = -math.inf  # when a queue stood last
        self._random_share = 0.0  # of the segments, while losses were found to be random

    def observe(
        self,
        now_s: float,
        age_s: float,
        streams: int,
        *,
        arrived_bytes: int,
        retransmits: int,
        has_queue: bool | None,
        rtt_s: float,
    ) -> str:
        """Take what has arrived and was sent again so far; return in words what has come to be known, once.

        `age_s`: for how long there are so many streams; `has_queue`: None where nobody knows.
        """
        before, self._before = self._before, (now_s, arrived_bytes, retransmits)
        if has_queue:
            self._queued_s = now_s
        if before is None or has_queue is None or age_s < REST.at(rtt_s):
            return ""
        dose = self._doses.setdefault(streams, _Dose(streams))
        counted = dose.queued if now_s - self._queued_s <= QUICK.at(rtt_s) else dose.clear
        counted.segments += (arrived_bytes - before[1]) / SEGMENT_BYTES
        counted.lost += retransmits - before[2]
        dose.seconds += now_s - before[0]
        kind, why = self._judged(dose, rtt_s)
        if not why or kind == self.kind:
            return ""
        self.kind = kind
        if kind == RANDOM:
            self._random_share = dose.whole.share
        return why

    def restart(self) -> None:
        """Forget what was measured, as the streams are others now; what is known stays so."""
        self._doses.clear()
        self._before = None

    def _judged(self, dose: _Dose, rtt_s: float) -> tuple[str | None, str]:
        """Return why segments are lost, and how that shows; no words where it does not."""
        whole = dose.whole
        if self.kind == RANDOM and whole.share <= ALIKE * self._random_share:
            expected = self._random_share * whole.segments
            if expected >= FEW * LOSSES and whole.lost < LOSSES:
                return None, f"losses have ended: {_lost(dose, whole)}"
            return self.kind, ""
        if whole.lost < LOSSES or whole.segments <= whole.lost:  # else it is an outage: each is sent in vain
            return self.kind, ""
        queued = dose.queued
        clear = _Counted()  # with other numbers of streams, too, as where they fill the path a queue stands
        for each in self._doses.values():
            clear.segments += each.clear.segments
            clear.lost += each.clear.lost
        one_bps = response_bps(whole.share, rtt_s)
        matters = one_bps < whole.segments * SEGMENT_BYTES * 8 / dose.seconds
        one = f"one CUBIC stream would carry {one_bps / 1e6:.1f} Mbit/s"
        if min(clear.lost, queued.lost) >= LOSSES and ALIKE * clear.share >= queued.share:
            why = f"{_lost(dose, queued)} while a queue stands, and {clear.share:.2%} without one; {one}"
            return (RANDOM, f"losses are random: {why}") if matters else (self.kind, "")
        if queued.lost >= LOSSES and ALIKE**2 * clear.most_share <= queued.share:
            return QUEUE, f"the path is full: {_lost(dose, queued)} while a queue stands, else hardly any"
        other = self._other(dose)
        if dose.clear.lost < LOSSES or other is None:
            return self.kind, ""
        fewer, more = sorted((dose, other), key=lambda each: each.streams)
        growth = math.pow(more.streams / fewer.streams, MUCH)
        why = f"{_lost(more, more.clear)} and {fewer.clear.share:.2%} with {fewer.streams}, without a queue"
        if more.clear.share > growth * fewer.clear.share:
            return POLICER, f"something drops what is above a rate: {why}"
        return (RANDOM, f"losses are random: {why}; {one}") if matters else (self.kind, "")

    def _other(self, dose: _Dose) -> _Dose | None:
        """Return the number of streams to compare with: the one that differs most, with enough losses."""

        def factor(other: _Dose) -> float:
            return max(other.streams / dose.streams, dose.streams / other.streams)

        known = [each for each in self._doses.values() if each.clear.lost >= LOSSES]
        most = max(known, key=factor, default=dose)
        return most if factor(most) >= UP else None


def _lost(dose: _Dose, counted: _Counted) -> str:
    return f"{counted.share:.2%} of the segments are lost with {dose.streams} streams"
