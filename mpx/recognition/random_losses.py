"""Losses that no queue causes, and streams that cannot become more: then BBR takes the place of CUBIC. Pure.

Where a file is one stream (PUT of HTTP), or its last parts are under way (S3), the answer to random losses
that the tuner has, more streams, is not to be had: CUBIC takes each loss for a full path, and carries a small
part of it (RFC 9438, section 5). BBR goes by what is delivered (Cardwell et al., ACM Queue 14(5), 2016). It
stays as long as no queue stands: where one does the path is shared, and CUBIC leaves others their part.
Several BBR streams fill a queue by themselves, and lose a tenth of what they send there; so it is for no more
of them than the share, but where hardly anything is left to be sent.
"""

import math

from mpx.choices import BBR
from mpx.engine.round_trips import Span
from mpx.engine.tuner import START, Sample
from mpx.recognition.policy import Switch

STARTS = Span(0.5, 8.0)  # before that nothing is decided: a start that overshoots shows a queue by then
FEW_LOSSES = 3  # are enough
FILLED = 0.1  # of the time, at most, in which round trips show a queue ...
SHORT_QUEUE = Span(0.002, 0.1)  # ... longer than this
STANDS = Span(2.0, 20.0)  # a queue that stands so long is one of others, or fills with ours
LONG_QUEUE = 0.25  # of the round trip: BBR has a short queue of its own now and then
FEWER = 0.85  # of the streams that were asked for are open, or less: there is no work for more, or no room
SOON_S = 2.0  # at the best rate so far all is sent within that time, so that ...
MOST_EACH = 4  # ... for each stream of the share so many may have BBR, as in a short copy
BEST_S = 1.0  # over which the best rate is a mean
PATIENCE_S = 120.0  # until it is tried again where a queue stood, or others have switched


class RandomLosses:
    """Decides for one path. Times are of any monotonic clock, in seconds."""

    def __init__(self, congestion: str, share: int = START, most_streams: int = 1) -> None:
        """`congestion`: what streams begin with, to which they go back where a queue stands.

        `share`: streams that stay on a full path; `most_streams`: more can never be had.
        """
        self._first = self._now = congestion
        self._share, self._is_short_of_streams = share, most_streams < share
        self._grew_s = -math.inf  # when as many streams as were asked for were last open
        self._best_bps, self._best_from = 0.0, (0.0, 0)
        self._began_s: float | None = None
        self._counted: Sample | None = None  # since when losses count
        self._looks = self._filled = 0  # samples since then, and those with a queue
        self._queue_since_s: float | None = None
        self._not_before_s = 0.0
        self._asked: str | None = None  # what was returned, until the caller says what came of it
        self._is_ours = False  # what is used now was asked for here

    def observe(self, now_s: float, sample: Sample, wanted: int) -> Switch | None:
        """Take what has moved up to now; return a switch if one is due. The caller then calls `switched`.

        `wanted`: how many streams there would be if all came that were asked for.
        """
        self._note_best(now_s, sample)
        counted = self._counted or self._count_from(sample)
        if self._began_s is None:
            self._began_s = now_s if sample.arrived_bytes else None
            return None
        rtt_s = sample.rtt_s or 0.0
        self._looks += 1
        self._filled += (sample.queue_s or 0.0) > SHORT_QUEUE.at(rtt_s)
        if sample.changing or not (self._is_short_of_streams or sample.streams < FEWER * wanted):
            self._grew_s = now_s
        if now_s < self._began_s + STARTS.at(rtt_s):
            return None
        if self._now == BBR:
            return self._back(now_s, sample, rtt_s) if self._is_ours else None
        queued = sample.queued_lost - counted.queued_lost
        lost = sample.retransmits - counted.retransmits - queued
        if queued > max(lost, FEW_LOSSES) or self._filled > FILLED * self._looks:
            self._count_from(sample)
            return None
        if lost < FEW_LOSSES or queued > lost or now_s < self._not_before_s:
            return None
        if now_s < self._grew_s + STARTS.at(rtt_s) or sample.streams > self._most(sample):
            return None
        return self._ask(
            BBR, f"{lost} segments were lost without a queue, and the number of streams cannot grow"
        )

    def _note_best(self, now_s: float, sample: Sample) -> None:
        since_s, then_bytes = self._best_from
        if now_s >= since_s + BEST_S:
            self._best_bps = max(self._best_bps, 8 * (sample.arrived_bytes - then_bytes) / (now_s - since_s))
            self._best_from = now_s, sample.arrived_bytes

    def _most(self, sample: Sample) -> int:
        """Return how many streams may have BBR."""
        is_ending = 8 * sample.bytes_left < SOON_S * self._best_bps
        return MOST_EACH * self._share if is_ending else self._share

    def _ask(self, congestion: str, reason: str) -> Switch:
        self._asked = congestion
        return Switch(congestion, reason)

    def _count_from(self, sample: Sample) -> Sample:
        self._counted, self._looks, self._filled = sample, 0, 0
        return sample

    def _back(self, now_s: float, sample: Sample, rtt_s: float) -> Switch | None:
        if sample.streams > self._most(sample):
            return self._ask(self._first, "there is work for more streams again")
        if sample.queue_s is None or sample.queue_s <= LONG_QUEUE * rtt_s:
            self._queue_since_s = None
            return None
        self._queue_since_s = self._queue_since_s or now_s
        if now_s < self._queue_since_s + STANDS.at(rtt_s):
            return None
        self._not_before_s = now_s + PATIENCE_S
        return self._ask(self._first, "a queue stands, so that others share the path")

    def switched(self, now_s: float, congestion: str) -> None:
        """Note that the streams were switched, by whomever: what they lose at first says nothing.

        Who recognises other traffic knows more: that is not undone, nor at once done again.
        """
        self._is_ours, self._asked = congestion == self._asked, None
        if not self._is_ours:
            self._not_before_s = max(self._not_before_s, now_s + PATIENCE_S)
        self._now, self._began_s = congestion, now_s
        self._counted = self._queue_since_s = None  # what follows is another stream's

    def refused(self) -> None:
        """Note that a switch is not possible."""
        self._asked = None
        self._not_before_s = float("inf")
