"""What windows let the streams carry: whether more carry in proportion, and how few could carry as much.

Where the receivers' windows bind, each stream carries a window in a round trip, however many there are. So
goodput rises in proportion to their number until the path is full. A queue, or a receiver that reads slowly,
closes the windows, too, but then each stream carries less than each of fewer did.
"""

import math

from mpx.apt_takeover import AT_THE_WINDOWS

EACH = 0.93  # each stream carries as much as each of fewer, but for noise
GROWN = 1.05  # streams that carry so much more than windows let each carry: those windows have grown
NEARLY = 0.9  # so much of what arrives, or of the most that ever did, is nearly all of it
STEADY = 0.3  # a bin counts for so much in the mean of what so many streams carry


class Windows:
    """Learns from the bins of a group of paths."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """The network has changed."""
        self.room = False  # whether the last bin showed that more streams carry in proportion
        self._each_bps: dict[int, float] = {}  # what each of so many streams carried where windows bound
        self._window_bps = math.inf  # what windows let a stream carry, as far as that is known
        self._means_bps: dict[int, float] = {}  # what so many streams carried, whatever bound them

    def learn(self, streams: int, up: float, goodput_bps: float, held_back: float | None) -> None:
        """Take a bin; `up` and `held_back` as in `mpx.apt_meter.Bin`."""
        each_bps = goodput_bps / streams
        binds = held_back is not None and held_back > AT_THE_WINDOWS
        self._remember(streams, goodput_bps)
        self.room = binds and self._in_proportion(streams, each_bps) and self._is_short(streams)
        if each_bps > GROWN * self._window_bps:
            self._window_bps = math.inf
        if binds:
            self._each_bps[streams] = each_bps
            known_bps = 0.0 if math.isinf(self._window_bps) else self._window_bps
            self._window_bps = max(known_bps, goodput_bps / up)  # those on their way up carry less

    def needed(self, goodput_bps: float) -> int:
        """Return the fewest streams that could carry nearly as much, as far as windows are known to bind."""
        return math.ceil(NEARLY * goodput_bps / self._window_bps)

    def _remember(self, streams: int, goodput_bps: float) -> None:
        before_bps = self._means_bps.get(streams, goodput_bps)
        self._means_bps[streams] = before_bps + STEADY * (goodput_bps - before_bps)

    def _in_proportion(self, streams: int, each_bps: float) -> bool:
        fewer = max((count for count in self._each_bps if count < streams), default=None)
        return fewer is not None and each_bps > EACH * self._each_bps[fewer]

    def _is_short(self, streams: int) -> bool:
        """Whether no larger number was tried, or one that carried clearly more."""
        more = [bps for count, bps in self._means_bps.items() if count > streams]
        return not more or self._means_bps[streams] < NEARLY * max(more)
