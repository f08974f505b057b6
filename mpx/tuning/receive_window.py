"""What receive windows let the streams carry: whether more carry more, and how few could carry as much.

Where receive windows limit the rate, each stream carries a window per round trip, however many there are, so
goodput rises in proportion to their number until the path is full. A queue, or a receiver that reads slowly,
reduces the windows, too, but then more streams carry hardly more.
"""

import math

from mpx.tuning.settling import AT_THE_WINDOWS

IN_PROPORTION = 0.5  # share of the logarithmic rise that there would be if only windows limited the rate
NEARLY = 0.98  # goodput that is equal within the error of a bin
STEADY = 0.3  # weight of a bin in the mean goodput of so many streams


class Windows:
    """Learns from the bins of a group of paths."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Forget everything, as the network has changed."""
        self.room = False  # whether the last bin showed that more streams carry more, in proportion
        self._means_bps: dict[int, float] = {}  # what so many streams carried, whatever limited them
        self._window_bps = 0.0  # what windows let a stream carry; 0 while not known

    def learn(
        self, streams: int, goodput_bps: float, held_back: float | None, window_bps: float | None
    ) -> None:
        """Take a bin; `held_back` and `window_bps` as in `mpx.tuning.measurement.Bin`."""
        before_bps = self._means_bps.get(streams, goodput_bps)
        self._means_bps[streams] = before_bps + STEADY * (goodput_bps - before_bps)
        binds = held_back is not None and held_back > AT_THE_WINDOWS
        self.room = binds and self._rose_to(streams) and self._would_rise_from(streams)
        if window_bps is not None:  # the largest counts: a slow reader reduces it for a moment
            self._window_bps = max(self._window_bps, window_bps)

    def needed(self, goodput_bps: float) -> int:
        """Return the fewest streams that windows let carry nearly as much; 0 where that is not known.

        A receiver that reads slowly announces small windows, whatever it could take: so fewer streams that
        did carry as much are enough, too.
        """
        if not self._window_bps:
            return 0
        nearly_bps = NEARLY * goodput_bps
        proven = (count for count, bps in self._means_bps.items() if bps >= nearly_bps)
        return min((math.ceil(nearly_bps / self._window_bps), *proven))

    def _rose_to(self, streams: int) -> bool:
        fewer = max((count for count in self._means_bps if count < streams), default=None)
        return fewer is not None and self._in_proportion(fewer, streams)

    def _would_rise_from(self, streams: int) -> bool:
        more = min((count for count in self._means_bps if count > streams), default=None)
        return more is None or self._in_proportion(streams, more)

    def _in_proportion(self, fewer: int, more: int) -> bool:
        rise = math.log(self._means_bps[more] / self._means_bps[fewer])
        return rise > IN_PROPORTION * math.log(more / fewer)
