"""When a copy on BBR makes no pulses: other BBR streams take the rate that a pulse leaves, and keep some.

Each rest is longer than the one before, while readings between them are sure and require no switch. During a
rest the background is not read; but when goodput changes, the background or our own streams have changed, and
the rest ends. Pure.
"""

from collections.abc import Iterable

AFTER = 6  # readings that require no switch
LATELY = 30  # readings, one of which has to be sure
FIRST_S, MORE, LONGEST_S = 30.0, 2.0, 120.0
USUAL_S = 10.0  # the usual goodput is the mean of so long before a rest
LATEST_S = 5.0  # it is compared with the mean of so long: in less, BBR's own probing shows
CHANGED = 1.25  # factor, up or down, of a change
AFTER_CHANGE = 20  # readings without a sure one, if a change has ended the rest before

Goodput = Iterable[tuple[float, float]]  # monotonic clock, seconds; bit/s since the one before


class PulseRests:
    """The rests of one copy; times are on the clock of the caller (seconds)."""

    def __init__(self) -> None:
        self.until_s = 0.0  # nothing is read before
        self._lasts_s = 0.0  # length of the last rest, or of this one; 0: there was none, or it was cut short
        self._was_cut = False
        self._readings = 0
        self._began_s = 0.0
        self._usual_bps = 0.0

    def read(self, now_s: float, unsure: int | None, goodput: Goodput) -> bool:
        """Note a reading; return whether a rest begins.

        `unsure` is the number of readings since a sure one for what we use; None where one requires a switch.
        """
        self._readings += 1
        is_sure = unsure is not None and unsure < self._readings
        enough = AFTER_CHANGE if self._was_cut and not is_sure else AFTER
        if unsure is None or unsure >= LATELY or self._readings < enough:
            return False
        self._lasts_s = min(LONGEST_S, MORE * self._lasts_s) if is_sure and self._lasts_s else FIRST_S
        self._readings, self._was_cut = 0, False
        self._began_s, self.until_s = now_s, now_s + self._lasts_s
        self._usual_bps = _mean_bps(goodput, now_s - USUAL_S)
        return True

    def cut_short(self, now_s: float, goodput: Goodput) -> bool:
        """Return whether a rest is over before its time, as goodput has changed; the next is short again."""
        if not self._began_s + LATEST_S <= now_s < self.until_s or not self._usual_bps:
            return False
        times = _mean_bps(goodput, now_s - LATEST_S) / self._usual_bps
        if 1 / CHANGED < times < CHANGED:
            return False
        self.until_s, self._lasts_s, self._was_cut = now_s, 0.0, True
        return True

    def begin_anew(self) -> None:
        """End the rest, and forget readings, as our streams are new ones."""
        self._readings, self.until_s, self._lasts_s, self._was_cut = 0, 0.0, 0.0, False


def _mean_bps(goodput: Goodput, since_s: float) -> float:
    rates = [bps for t_s, bps in goodput if t_s > since_s]
    return sum(rates) / len(rates) if rates else 0.0
