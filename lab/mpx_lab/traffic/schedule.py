"""When a generator sends, how much is due, and which short flows come; no clock, no I/O."""

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Phase:
    """One period of sending; seconds since the generator began. `off_s` is infinite if it never stops."""

    on_s: float
    off_s: float


def phases(on_s: float, period_s: float, after_s: float = 0.0) -> Iterator[Phase]:
    """Yield the stretches of a pattern that sends for the first `on_s` seconds of every `period_s`.

    The first period begins after `after_s`.
    """
    number = 0
    while True:  # from the number, as rounding errors of a sum would grow
        begin_s = after_s + number * period_s
        yield Phase(begin_s, begin_s + on_s)
        number += 1


ALWAYS = Phase(0.0, math.inf)


@dataclass(slots=True)
class Pacer:
    """How many datagrams of one size are due, at an even rate.

    A late caller catches up for at most `catch_up_s`, so that a pause of the machine does not become a
    burst; datagrams beyond that are skipped and counted.
    """

    rate_bps: float
    datagram_bytes: int
    catch_up_s: float = 0.01
    given_up: int = 0  # datagrams
    _began_s: float = 0.0
    _settled: int = 0  # datagrams of this period that were sent or skipped

    def begin(self, now_s: float) -> None:
        """Start a period: the first datagram is due at once."""
        self._began_s = now_s
        self._settled = 0

    def due(self, now_s: float) -> int:
        """Return how many datagrams to send now, and count them as sent."""
        spacing_s = self.datagram_bytes * 8 / self.rate_bps
        due = math.floor((now_s - self._began_s) / spacing_s) + 1 - self._settled
        most = max(1, math.ceil(self.catch_up_s / spacing_s))
        if due <= 0:
            return 0
        self._settled += due
        self.given_up += max(0, due - most)
        return min(due, most)

    def next_s(self, batch_s: float) -> float:
        """Return when to call `due` again: with the next datagram, or after `batch_s` where it is later."""
        spacing_s = self.datagram_bytes * 8 / self.rate_bps
        ahead = max(1, math.floor(batch_s / spacing_s))
        return self._began_s + (self._settled - 1 + ahead) * spacing_s


@dataclass(frozen=True, slots=True)
class Arrival:
    """One short flow: when it begins (seconds since the generator began) and its size."""

    at_s: float
    size_bytes: int


def arrivals(
    offered_bps: float, smallest_bytes: int, largest_bytes: int, shape: float, seed: int
) -> Iterator[Arrival]:
    """Yield short flows that offer `offered_bps` on average: Poisson arrivals, bounded Pareto sizes."""
    chance = random.Random(seed)
    per_s = offered_bps / 8 / mean_size(smallest_bytes, largest_bytes, shape)
    at_s = 0.0
    while True:
        at_s += chance.expovariate(per_s)
        yield Arrival(at_s, pareto(chance.random(), smallest_bytes, largest_bytes, shape))


def pareto(uniform: float, smallest_bytes: int, largest_bytes: int, shape: float) -> int:
    """Return the size at a quantile (0 smallest, 1 largest) of the bounded Pareto distribution."""
    least = math.pow(smallest_bytes / largest_bytes, shape)
    rest = max(least, 1 - uniform * (1 - least))  # 1 less nearly 1 may be 0
    size = smallest_bytes / math.pow(rest, 1 / shape)
    return min(max(round(size), smallest_bytes), largest_bytes)


def mean_size(smallest_bytes: int, largest_bytes: int, shape: float) -> float:
    """Return the mean of the bounded Pareto distribution, bytes."""
    ratio = smallest_bytes / largest_bytes
    if math.isclose(shape, 1):
        return smallest_bytes * -math.log(ratio) / (1 - ratio)
    return (
        smallest_bytes * shape / (shape - 1) * (1 - math.pow(ratio, shape - 1)) / (1 - math.pow(ratio, shape))
    )
