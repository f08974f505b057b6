"""Settling after streams came or went: when goodput has reached what it will stay at.

Streams that remain when others are closed grow slowly into the rate of those: congestion control gives back
in seconds what it took in one round trip. New streams overshoot, and where losses limit them they come down
as slowly. Until then goodput shows nothing about their number.
"""

import math

AT_LEAST_RTT = 4.0  # what was in flight when the streams were closed has arrived
FLAT_RTT = 8.0  # goodput that neither rose nor fell for that long stays
AT_MOST_RTT = 100.0
RISE = 1.05  # a rise is more than the highest goodput so far by this factor, a fall less than the lowest
MISSING = 0.05  # a shortfall of so little, as a share of the rate before, is none ...
OF_THE_NOISE = 0.7  # ... nor is one of that share of the noise
AT_THE_WINDOWS = 0.6  # streams that windows limit for that share of the time cannot grow ...
FREE = 0.3  # ... and new ones that they limit less than that overshoot


class Settling:
    """Waits until goodput is back at what it was, rises no more, or cannot rise."""

    def __init__(self) -> None:
        self._before_bps: float | None = None  # None: settled
        self._grew = False
        self._since_s = self._moved_s = 0.0
        self._most_bps, self._least_bps = 0.0, math.inf

    @property
    def pending(self) -> bool:
        """Whether goodput has not settled yet."""
        return self._before_bps is not None

    def begin(self, now_s: float, before_bps: float, grew: bool) -> None:
        """Streams came (`grew`) or went just now; before that, goodput was `before_bps` (bit/s)."""
        self._before_bps, self._grew = before_bps, grew
        self._most_bps, self._least_bps = 0.0, math.inf
        self._since_s = self._moved_s = now_s

    def over(
        self, at_s: float, goodput_bps: float, held_back: float | None, noise: float, rtt_s: float
    ) -> bool:
        """Whether the goodput measured at `at_s` is what these streams will carry.

        `held_back` is the share of the time in which windows limited them, None if not known;
        `noise` the standard deviation of the logarithm of goodput.
        """
        if self._before_bps is None:
            return True
        if at_s < self._since_s + AT_LEAST_RTT * rtt_s:
            return False
        if goodput_bps > RISE * self._most_bps:
            self._most_bps, self._moved_s = goodput_bps, at_s
        if goodput_bps < self._least_bps / RISE:
            self._least_bps, self._moved_s = goodput_bps, at_s
        enough_bps = (1 - max(MISSING, OF_THE_NOISE * noise)) * self._before_bps
        may_overshoot = self._grew and held_back is not None and held_back < FREE
        if (
            (goodput_bps >= enough_bps and not may_overshoot)
            or (held_back is not None and held_back > AT_THE_WINDOWS)
            or at_s > self._moved_s + FLAT_RTT * rtt_s
            or at_s > self._since_s + AT_MOST_RTT * rtt_s
        ):
            self._before_bps = None
        return self._before_bps is None
