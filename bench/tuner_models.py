"""The networks of the tuner race: goodput over the number of streams, and a transfer simulated on it.

A curve G(n) says what n streams give for ever, without noise. A `Transfer` adds what a tuner meets in
reality: round-trip time (RTT), streams that need 10 RTT to come up to speed, survivors that need 3 RTT
to take over what retired streams carried, noise, and the kernel's hints (TCP_INFO). Units: bit/s, seconds.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from random import Random

from mpx.engine.tuner import Sample

STEP_S = 0.1  # one simulated step, and one call of `observe`
MAX_STREAMS = 256  # what every tuner of the race may open
GOOD = 0.9  # share of the curve's best goodput that counts as reached
RAMP_RTT = 10.0  # a new stream comes up to speed in that many round-trip times
TAKEOVER_RTT = 3.0  # survivors take over the share of retired streams in that many
NOISE_CORRELATION_S = 1.0


@dataclass(frozen=True)
class Curve:
    """Goodput over streams, as a share of `capacity_bps`; `held_back` is the honest TCP_INFO hint."""

    capacity_bps: float
    share: Callable[[float], float]
    held_back: Callable[[float], float] = lambda _n: 0.02
    best_bps: float = field(init=False)
    fewest: int = field(init=False)  # fewest streams that give 90 % of the best

    def __post_init__(self) -> None:
        all_bps = [self.goodput_bps(n) for n in range(1, MAX_STREAMS + 1)]
        object.__setattr__(self, "best_bps", max(all_bps))
        fewest = next(n for n, bps in enumerate(all_bps, 1) if bps >= GOOD * max(all_bps))
        object.__setattr__(self, "fewest", fewest)

    def goodput_bps(self, streams: float) -> float:
        """Steady goodput of `streams` streams (a fraction while one of them ramps), without noise."""
        return self.capacity_bps * self.share(streams)

    def good(self, streams: int) -> bool:
        """At least 90 % of the best goodput with at most twice the fewest streams that give it."""
        return streams <= 2 * self.fewest and self.goodput_bps(streams) >= GOOD * self.best_bps


@dataclass(frozen=True)
class Network:
    """A curve, its RTT and, if the network changes in mid-transfer, when and into which curve."""

    curve: Curve
    rtt_s: float
    later: Curve | None = None
    shift_s: float = math.inf

    def at(self, now_s: float) -> Curve:
        """The curve that holds at `now_s`."""
        return self.later if self.later is not None and now_s >= self.shift_s else self.curve


def knee(random: Random) -> float:
    """An optimum between 1 and 128 streams, log-uniform."""
    return float(2 ** random.uniform(0, 7))


def capacity(random: Random) -> float:
    """A bottleneck between 100 Mbit/s and 10 Gbit/s, log-uniform."""
    return float(10 ** random.uniform(8, 10))


def saturating(random: Random) -> Curve:
    """Rises ever more slowly: x / (1 + x^p)^(1/p), from the hyperbola (p = 1) to nearly a knee (p = 4).

    90 % of the capacity, which the brief calls the optimum, stands at a log-uniform number of streams.
    """
    p = random.uniform(1.0, 4.0)
    at_90 = (0.9**p / (1 - 0.9**p)) ** (1 / p)
    k = knee(random) / at_90
    return Curve(capacity(random), lambda n: (n / k) / (1 + (n / k) ** p) ** (1 / p))


def peaked(random: Random) -> Curve:
    """Rises to a peak and loses 5 to 30 % with each doubling beyond it (queues overflow, hosts thrash)."""
    k, loss = knee(random), random.uniform(0.05, 0.3)
    return Curve(capacity(random), lambda n: min(n / k, 1.0) * (1 - loss) ** max(0.0, math.log2(n / k)))


def flat(random: Random) -> Curve:
    """One stream fills the path (or the disk is the limit): more bring nothing."""
    return Curve(capacity(random), lambda n: min(n, 1.0))


def loss_limited(random: Random) -> Curve:
    """Random loss holds each stream to the same rate until together they fill the path."""
    k = knee(random)
    return Curve(capacity(random), lambda n: min(n / k, 1.0))


def window_limited(random: Random) -> Curve:
    """A fixed window holds each stream to W/RTT; the kernel sees it until the path is full."""
    k = knee(random)
    return Curve(
        capacity(random),
        lambda n: min(n / k, 1.0),
        lambda n: 0.95 if n <= k else max(0.02, 0.95 * (2 * k / n - 1)),
    )


def shifting(random: Random) -> tuple[Curve, Curve]:
    """The same kind of curve before and after, its optimum moved by a factor of 2.5 to 8.

    Either the rate of one stream changes (loss or RTT: what fills the path moves, the best stays) or the
    capacity does (traffic comes or goes: both move).
    """
    kind = random.choice([loss_limited, saturating, peaked])
    while True:
        first, second = kind(random), kind(random)
        if 2.5 <= max(first.fewest, second.fewest) / min(first.fewest, second.fewest) <= 8:
            break
    grows = second.fewest / first.fewest if random.random() < 0.5 else 1.0
    return first, replace(second, capacity_bps=first.capacity_bps * grows)


def fair_share(random: Random) -> Curve:
    """The smaller of n / (n + m) against m standing flows, and n / (2 m w), w in 0.5 to 2: two bends."""
    standing, windows = knee(random) / 9, random.uniform(0.5, 2.0)
    return Curve(capacity(random), lambda n: min(n / (n + standing), n / (2 * standing * windows)))


def stairs(random: Random) -> Curve:
    """Steps of s streams, s in 2 to 6, smoothed by a third, up to a knee; then 2 to 8 % less per doubling."""
    k, size, loss = knee(random), random.randint(2, 6), random.uniform(0.02, 0.08)

    def share(n: float) -> float:
        whole = size * math.floor(n / size)
        climbed = (n + 2 * max(whole, 1.0 if n >= 1 else 0.0)) / 3
        return min(1.0, climbed / k) * (1 - loss) ** max(0.0, math.log2(max(n, 1e-9) / k))

    return Curve(capacity(random), share)


def striped(random: Random) -> Curve:
    """Streams dealt out evenly to 2 to 6 servers, each with its own bottleneck: many small bends."""
    k, count = knee(random), random.randint(2, 6)
    knees = [k * 2 ** random.uniform(-1.5, 1.5) / count for _ in range(count)]
    total = sum(knees)
    return Curve(capacity(random), lambda n: sum(min(n / count, each) for each in knees) / total)


def cliff(random: Random) -> Curve:
    """A knee, a plateau, and 15 to 50 % less once a limit at 1.2 to 4 times the knee is exceeded."""
    k, loss = knee(random), random.uniform(0.15, 0.5)
    limit = k * 2 ** random.uniform(math.log2(1.2), 2)
    return Curve(capacity(random), lambda n: min(n / k, 1.0) * (1.0 if n <= max(limit, 1.0) else 1 - loss))


def idling(random: Random) -> Curve:
    """Streams that wait by turns, 1 - exp(-n / k), less an overhead of 0.05 to 0.3 % for each."""
    k, overhead = knee(random) / math.log(10), random.uniform(0.0005, 0.003)
    return Curve(capacity(random), lambda n: (1 - math.exp(-n / k)) * max(0.2, 1 - overhead * n))


def mixed(random: Random) -> Curve:
    """Servers of unequal speed, a cliff beyond a limit of connections, or streams idle by turns, evenly."""
    return random.choice([striped, cliff, idling])(random)


FAMILIES: dict[str, Callable[[Random], Curve | tuple[Curve, Curve]]] = {
    "saturating": saturating,
    "peaked": peaked,
    "flat": flat,
    "loss-limited": loss_limited,
    "window-limited": window_limited,
    "fair-share": fair_share,
    "stairs": stairs,
    "mixed": mixed,
    "shifting": shifting,
}


def draw(family: Callable[[Random], Curve | tuple[Curve, Curve]], random: Random) -> Network:
    """One network of a family: RTT 1 to 200 ms log-uniform; a shift comes 20 to 25 s into the transfer."""
    rtt_s = float(10 ** random.uniform(-3, math.log10(0.2)))
    drawn = family(random)
    if isinstance(drawn, Curve):
        return Network(drawn, rtt_s)
    return Network(drawn[0], rtt_s, drawn[1], round(random.uniform(20, 25), 1))


class SimulatedTransfer:
    """One path carrying bytes, step by step; `set_streams` may be called between any two steps."""

    def __init__(
        self, network: Network, cv: float, random: Random, hints: bool, size_bytes: float = math.inf
    ):
        self.network, self.hints, self.size_bytes = network, hints, size_bytes
        self.now_s = 0.0
        self.arrived_bytes = 0.0
        self._random = random
        self._cohorts: list[tuple[int, float]] = []  # (streams, opened at), oldest first
        self._takeover: tuple[float, float] | None = None  # (share that survived, since when)
        # `cv` is that of a mean over 1 s; for exp(-t/1 s) correlation its variance is 2/e of one instant's.
        self._sigma = math.sqrt(math.log(1 + cv * cv)) / math.sqrt(2 / math.e)
        self._noise = random.gauss(0, self._sigma)

    @property
    def streams(self) -> int:
        """Streams asked for (those still connecting included)."""
        return sum(count for count, _ in self._cohorts)

    def set_streams(self, wanted: int, reopen: bool = False) -> None:
        """Open new streams or retire the youngest; `reopen` closes all of them first."""
        if reopen:
            self._cohorts, self._takeover = [], None
        before = self.streams
        if wanted > before:
            self._cohorts.append((wanted - before, self.now_s))
        excess = before - wanted
        if excess > 0:
            self._takeover = (wanted / before, self.now_s)
        while excess > 0:
            count, opened = self._cohorts.pop()
            if count > excess:
                self._cohorts.append((count - excess, opened))
            excess -= count

    def step(self, limit_bytes: float = math.inf) -> float:
        """Let one step pass and return the bytes that arrived in it, `limit_bytes` at most."""
        middle, rtt = self.now_s + STEP_S / 2, self.network.rtt_s
        up = sum(c * min(1.0, max(0.0, middle - t) / (RAMP_RTT * rtt)) for c, t in self._cohorts)
        bps = self.network.at(middle).goodput_bps(up) if up > 0 else 0.0
        if self._takeover is not None:
            share, since = self._takeover
            bps *= min(1.0, share + (1 - share) * (middle - since) / (TAKEOVER_RTT * rtt))
        keep = math.exp(-STEP_S / NOISE_CORRELATION_S)
        self._noise = keep * self._noise + self._random.gauss(0, self._sigma * math.sqrt(1 - keep * keep))
        bps *= math.exp(self._noise - self._sigma**2 / 2)
        self.now_s = round(self.now_s + STEP_S, 6)
        moved = min(bps * STEP_S / 8, limit_bytes, self.size_bytes - self.arrived_bytes)
        self.arrived_bytes += moved
        return moved

    def sample(self, still: bool = False) -> Sample:
        """What the carrier would report now; without hints it is a download from a stock server."""
        rtt = self.network.rtt_s
        carrying = sum(count for count, opened in self._cohorts if self.now_s >= opened + rtt)
        curve = self.network.at(self.now_s)
        left = min(self.size_bytes, 1e15) - self.arrived_bytes
        return Sample(
            streams=carrying,
            arrived_bytes=int(self.arrived_bytes),
            bytes_left=max(0, int(left)),
            rtt_s=rtt,
            limited_by_receiver=curve.held_back(max(carrying, 1)) if self.hints else None,
            limited_by_sender=0.0 if self.hints else None,
            still=still,
        )
