"""The rivals of the tuner race behind the same contract: Falcon, a Gaussian process, azcopy's rule.

Each is our own small rendering of a published idea, not the authors' program. They see one mean goodput
per window; the window is what the idea's authors use, or the shortest that the RTT allows.
"""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from mpx.engine.tuner import START, Decision, Sample


class Windowed:
    """Changes the streams of one path once per window, after the streams have come up to speed."""

    def __init__(self, max_streams: int, settle_rtt: float, measure_s: float):
        self.streams, self.max_streams = START, max_streams
        self._settle_rtt, self._measure_s = settle_rtt, measure_s
        self._changed_s: float | None = None
        self._began: tuple[float, Sample] | None = None

    def observe(self, now_s: float, samples: Mapping[str, Sample]) -> Sequence[Decision]:
        """See `mpx.engine.tuner.Tuner`."""
        (name, sample), *_ = samples.items()
        if self._changed_s is None:
            self._changed_s = now_s
            return [Decision(name, self.streams, "start")]
        if now_s - self._changed_s < self._settle_rtt * (sample.rtt_s or 0.05):
            return []
        if self._began is None:
            self._began = (now_s, sample)
            return []
        began_s, first = self._began
        if now_s - began_s < self._measure_s:
            return []
        bps = (sample.arrived_bytes - first.arrived_bytes) * 8 / (now_s - began_s)
        self.streams = max(1, min(self.max_streams, self.next_streams(bps)))
        self._changed_s, self._began = now_s, None
        return [Decision(name, self.streams, "next")]

    def next_streams(self, goodput_bps: float) -> int:
        """Streams of the next window, given the goodput of the last one."""
        raise NotImplementedError


class Falcon(Windowed):
    """Online gradient descent on the utility goodput / K^n of Arifuzzaman and Arslan (SC 2021), K = 1.02.

    Each probe compares with the one before; steps in the same direction grow. Probes last 3 s, 1 s of it
    settling, as in the authors' settings (3 to 5 s). Their loss term is left out: our paths have no loss
    that a stream count could mend.
    """

    def __init__(self, max_streams: int):
        super().__init__(max_streams, settle_rtt=0.0, measure_s=3.0)
        self._last: tuple[int, float] | None = None
        self._run = 0

    def next_streams(self, goodput_bps: float) -> int:
        """One step along the slope of the utility."""
        n, utility = self.streams, goodput_bps / 1.02**self.streams
        if self._last is None:
            self._last = (n, utility)
            return n + 1
        n0, u0 = self._last
        self._last = (n, utility)
        slope = (utility - u0) / ((n - n0) or 1) / max(u0, 1.0)
        up = slope > 0
        self._run = (max(self._run, 0) + 1) if up else (min(self._run, 0) - 1)
        step = self._run * math.ceil(n * abs(slope))
        return n + (step or (1 if up else -1))


class AzCopy(Windowed):
    """Azure's azcopy: times 4, then times 2, while the gain is at least three quarters of proportional.

    Otherwise a step back, and on with a fifth of the growth; below 1.19 it stays for good. Its authors start
    from 16 and measure for several seconds; here from the race's start, 10 RTT of settling and 1 s.
    """

    def __init__(self, max_streams: int):
        super().__init__(max_streams, settle_rtt=10.0, measure_s=1.0)
        self._factor, self._base = 4.0, 0.0
        self._trying = False
        self._exact = float(START)

    def next_streams(self, goodput_bps: float) -> int:
        """Grow, keep, or step back."""
        if self._factor < 1.19:
            return round(self._exact)
        if not self._trying:
            return self._try(goodput_bps)
        if goodput_bps > self._base * (1 + 0.75 * (self._factor - 1)):
            if self._exact >= 255:
                self._factor = min(self._factor, 2.0)
            return self._try(goodput_bps)
        self._exact = max(1.0, self._exact / self._factor)
        self._factor = 1 + (self._factor - 1) / 5
        self._trying = False
        return round(self._exact)

    def _try(self, goodput_bps: float) -> int:
        self._base, self._trying = goodput_bps, True
        self._exact = min(float(self.max_streams), self._exact * self._factor)
        return round(self._exact)


class GaussianProcess(Windowed):
    """Upper-confidence search with a Gaussian process over log2 n, on goodput / 1.002^n, last 30 windows."""

    def __init__(self, max_streams: int):
        super().__init__(max_streams, settle_rtt=10.0, measure_s=1.0)
        self._x: list[float] = []
        self._y: list[float] = []
        self._grid = sorted({round(2 ** (i / 4)) for i in range(4 * 8 + 1)})

    def next_streams(self, goodput_bps: float) -> int:
        """The count whose goodput may plausibly be the highest; 4 and 16 times as many come first."""
        self._x.append(math.log2(self.streams))
        self._y.append(goodput_bps / 1.002**self.streams)
        if len(self._x) < 3:
            return self.streams * 4
        x, y = np.array(self._x[-30:]), np.array(self._y[-30:])
        mean, scale = float(y.mean()), float(y.std()) or 1.0
        grid = np.log2(np.array(self._grid, dtype=float))
        age = np.arange(len(x))[::-1]
        noise = 0.02 + 0.01 * age  # older windows count less
        within = np.exp(-0.5 * ((x[:, None] - x[None, :]) / 1.5) ** 2) + np.diag(noise)
        across = np.exp(-0.5 * ((grid[:, None] - x[None, :]) / 1.5) ** 2)
        guess = across @ np.linalg.solve(within, (y - mean) / scale)
        variance = 1 - np.einsum("ij,ji->i", across, np.linalg.solve(within, across.T))
        return self._grid[int(np.argmax(guess + 0.7 * np.sqrt(np.maximum(variance, 0.0))))]
