"""Why segments are lost: at random, or because a queue or a policer is full. Pure.

Where losses are random their share stays the same with more streams, and goodput grows with them. Where a
queue drops, it stands when it does (TCP Veno tells them apart so: Fu and Liew, IEEE JSAC 21(2), 2003). Where
a policer drops no queue stands, but with more streams more is lost and hardly more arrives.
"""

import math
from dataclasses import dataclass

from mpx.tuning.measurement import SEGMENT_BYTES, Span

LOSSES = 20  # so many are needed for an answer
SETTLES = Span(0.3, 7.0)  # new streams overshoot at first: what they lose then says nothing
LINGERS = Span(0.3, 3.0)  # a loss is seen after a round trip or two: a queue that stood so long ago counts
DOSE = 1.4  # factor between two numbers of streams that can be compared
GROWS = 0.5  # of that factor: goodput has grown with the streams by that power, ...
STAYS = 0.25  # ... and hardly by that one
ALIKE = 2.0  # shares of losses that differ by less are alike
MOSTLY = 0.75  # of the losses
FEW = 3  # losses more or less say nothing

RANDOM, QUEUE, POLICER = "random", "queue", "policer"


def response_bps(loss: float, rtt_s: float) -> float:
    """Return what one CUBIC stream carries where that share of its segments is lost at random, bit/s.

    RFC 9438, section 5: the larger of the response functions of CUBIC (C = 0.4, beta = 0.7) and of Reno.
    """
    cubic = 1.054 * math.pow(rtt_s / loss, 0.75)
    reno = math.sqrt(1.5 / loss)
    return max(cubic, reno) * SEGMENT_BYTES * 8 / rtt_s


@dataclass(slots=True)
class _Dose:
    """What so many streams carried and lost, once they were up to speed."""

    streams: int
    seconds: float = 0.0
    bits: float = 0.0
    lost: int = 0
    lost_at_queue: int = 0

    @property
    def goodput_bps(self) -> float:
        return self.bits / self.seconds if self.seconds else 0.0

    @property
    def share(self) -> float:
        """Of the segments that was lost."""
        return self.lost * SEGMENT_BYTES * 8 / self.bits if self.bits else 0.0

    @property
    def most_share(self) -> float:
        """Of the segments that may be lost, where few were."""
        return (self.lost + FEW) * SEGMENT_BYTES * 8 / self.bits if self.bits else math.inf


class LossJudge:
    """Tells why segments are lost on one group of paths; `kind` is None until it is known."""

    def __init__(self) -> None:
        self.kind: str | None = None
        self._doses: dict[int, _Dose] = {}
        self._before: tuple[float, int, int] | None = (
            None  # time, bytes that had arrived, segments sent again
        )
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
        if before is None or has_queue is None or age_s < SETTLES.at(rtt_s):
            return ""
        dose = self._doses.setdefault(streams, _Dose(streams))
        lost = retransmits - before[2]
        dose.seconds += now_s - before[0]
        dose.bits += 8 * (arrived_bytes - before[1])
        dose.lost += lost
        if now_s - self._queued_s <= LINGERS.at(rtt_s):
            dose.lost_at_queue += lost
        if not lost or dose.lost < LOSSES:
            return ""
        known = self._judged(dose, rtt_s)
        if known is None or known[0] == self.kind:
            return ""
        self.kind, why = known
        return why

    def restart(self) -> None:
        """Forget what was measured, as the streams are others now; what is known stays so."""
        self._doses.clear()
        self._before = None

    def _judged(self, dose: _Dose, rtt_s: float) -> tuple[str, str] | None:
        if self.kind == RANDOM and dose.share <= ALIKE * self._random_share:
            return None  # a queue that stands since does not make them others
        if dose.lost_at_queue >= MOSTLY * dose.lost:
            return QUEUE, f"{_lost(dose)}, nearly all while a queue stood: the path is full"
        if dose.lost_at_queue > (1 - MOSTLY) * dose.lost:
            return None
        others = (
            each
            for each in self._doses.values()
            if each.seconds >= SETTLES.at(rtt_s) and DOSE * each.streams <= dose.streams and each.bits
        )
        fewer = min(others, key=lambda each: each.streams, default=None)
        if fewer is None:
            return None
        factor = dose.streams / fewer.streams
        growth = dose.goodput_bps / fewer.goodput_bps
        is_alike = dose.share <= ALIKE * fewer.most_share
        said = f"{_lost(dose)} and {fewer.share:.2%} with {fewer.streams}, without a queue"
        one_bps = response_bps(dose.share, rtt_s)
        if growth >= math.pow(factor, GROWS) and is_alike and one_bps < dose.goodput_bps:
            self._random_share = dose.share
            return RANDOM, (
                f"losses are random: {said}, and more streams carry more (one CUBIC stream would carry "
                f"{one_bps / 1e6:.1f} Mbit/s)"
            )
        if growth <= math.pow(factor, STAYS) and not is_alike:
            return POLICER, f"something drops what is above a rate: {said}, and more streams carry no more"
        return None


def _lost(dose: _Dose) -> str:
    return f"{dose.share:.2%} of the segments are lost with {dose.streams} streams"
