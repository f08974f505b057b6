"""When a copy on BBR makes no dips: others on BBR take what a dip leaves them, and keep some of it.

Each rest lasts longer than the one before, while readings between them are sure and ask for nothing. In a
rest nobody reads the background, but our goodput is there for nothing: where it has become another, so has
the background, or we, and the rest is over. Pure.
"""

from collections.abc import Iterable

AFTER = 6  # readings that ask for nothing
LATELY = 30  # readings, among which there has to be a sure one
FIRST_S, MORE, LONGEST_S = 30.0, 2.0, 120.0
USUAL_S = 10.0  # of goodput before a rest is what is usual
LATEST_S = 5.0  # of goodput in it tells, as in less BBR's own probing shows
CHANGED = 1.25  # times as much as usual, or as little
AFTER_CHANGE = 20  # readings without a sure one, if a change has ended the rest before

Goodput = Iterable[tuple[float, float]]  # monotonic clock, seconds; bit/s since the one before


class DipRests:
    """Those of one copy, on the clock of whoever asks (seconds)."""

    def __init__(self) -> None:
        self.until_s = 0.0  # nothing is read before
        self._lasts_s = 0.0  # the last rest, or the one under way; 0: there was none, or it was cut short
        self._was_cut = False
        self._readings = 0
        self._began_s = 0.0
        self._usual_bps = 0.0

    def read(self, now_s: float, unsure: int | None, goodput: Goodput) -> bool:
        """Note a reading; return whether a rest begins.

        `unsure` is how many readings there were since a sure one for what we use; None where something asks
        for a change.
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
        """Say that our streams are others now: what was read tells nothing of them, and no rest goes on."""
        self._readings, self.until_s, self._lasts_s, self._was_cut = 0, 0.0, 0.0, False


def _mean_bps(goodput: Goodput, since_s: float) -> float:
    rates = [bps for t_s, bps in goodput if t_s > since_s]
    return sum(rates) / len(rates) if rates else 0.0
