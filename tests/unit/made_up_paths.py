"""Small made-up networks for the default tuner, and how it is driven through them."""

from collections.abc import Callable, Mapping
from random import Random

from mpx.engine.tuner import Decision, Sample
from mpx.tuning.adaptive import AutoTuner

Curve = Callable[[float], float]  # streams up to speed -> bit/s


class Path:
    """One path in a world where streams come at once and need 10 RTT to come up to speed.

    It has at most `most` streams; `kept` of them are those of files, which do not go.
    """

    def __init__(self, curve: Curve, rtt_s: float | None = 0.02, most: int = 10**6, kept: int = 0):
        self.curve, self.rtt_s, self.most, self.kept = curve, rtt_s, most, kept
        self.opened: list[float] = []
        self.arrived = 0.0
        self.left = 1e15
        self.extra: dict[str, float] = {}

    def obey(self, streams: int, now_s: float) -> None:
        streams = max(self.kept, streams)
        self.opened = self.opened[:streams] + [now_s] * (min(streams, self.most) - len(self.opened))

    def step(self, now_s: float, dt: float) -> None:
        ramp = 10 * (self.rtt_s or 0.02)
        up = sum(min(1.0, max(0.0, now_s - t) / ramp) for t in self.opened)
        self.arrived += self.curve(up) * dt / 8 if up > 0 else 0.0

    def sample(self) -> Sample:
        return Sample(
            len(self.opened),
            int(self.arrived),
            int(max(0.0, self.left - self.arrived)),
            self.rtt_s,
            **self.extra,  # type: ignore[arg-type]
        )


def drive(
    tuner: AutoTuner, paths: Mapping[str, Path], seconds: float, start_s: float = 0.0, dt: float = 0.1
) -> list[tuple[float, Decision]]:
    log = []
    for i in range(round(seconds / dt)):
        now = start_s + i * dt
        for decision in tuner.observe(now, {name: path.sample() for name, path in paths.items()}):
            assert decision.path in paths and not decision.barrier and decision.chunk_bytes is None
            assert decision.reason
            log.append((now, decision))
            paths[decision.path].obey(decision.streams, now)
        for path in paths.values():
            path.step(now, dt)
    return log


def scaled(curve: Curve, factor: float) -> Curve:
    return lambda n: factor * curve(n)


def noisy(curve: Curve, seed: int, sigma: float) -> Curve:
    """With log-normal noise, new for each look."""
    chance = Random(seed)
    return lambda n: curve(n) * chance.lognormvariate(0, sigma)


def knee(k: float, bps: float = 1e9) -> Curve:
    return lambda n: bps * min(1.0, n / k)


class CurveOfShares:
    """1 Gbit/s shared fairly with `standing` other streams."""

    def __init__(self, standing: int):
        self.standing = standing

    def __call__(self, n: float) -> float:
        return 1e9 * n / (n + self.standing)


def settled(log: list[tuple[float, Decision]], until_s: float, from_s: float) -> int:
    """The count that stood for most of the time between the two moments."""
    share: dict[int, float] = {}
    for (at, decision), (end, _) in zip(log, [*log[1:], (until_s, log[-1][1])], strict=True):
        share[decision.streams] = share.get(decision.streams, 0.0) + max(0.0, end - max(at, from_s))
    return max(share, key=lambda n: share[n])
