"""When probes are sent: pure functions from a window (seconds) to times (seconds since its begin)."""

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType

SINGLE_INTERVAL_S = 0.1
TRAIN_INTERVAL_S = 1.0
TRAIN_PROBES = 10
TRAIN_STEP_S = 0.001
_UNEVEN = 0.6  # of an interval, that a single probe is later than even at most
_GOLDEN = (math.sqrt(5) - 1) / 2  # its multiples come near no fraction
_EXACT = 1e-9  # windows are sums of what has no exact binary form


def later(number: int, interval_s: float = SINGLE_INTERVAL_S) -> float:
    """Return how much later than even a single probe is sent, seconds.

    The queue has rhythms of its own: BBR's pulses come every eight round trips. Probes at even times that met
    the same phase of it again and again would not see it at all.
    """
    return interval_s * _UNEVEN * (number * _GOLDEN % 1)


def single(window_s: float) -> list[float]:
    """Ten probes a second, not quite even."""
    return [single_s(number) for number in range(_times(window_s, SINGLE_INTERVAL_S))]


def single_s(number: int) -> float:
    """Return when the probe of that number is due."""
    return number * SINGLE_INTERVAL_S + later(number)


def trains(window_s: float) -> list[float]:
    """Ten probes 1 ms apart, each second: their mean is a sample of the paper.

    Anvari and Lu, Computers 10(6):76, 2021, section 4 (passive probing).
    """
    return [
        i * TRAIN_INTERVAL_S + k * TRAIN_STEP_S
        for i in range(_times(window_s, TRAIN_INTERVAL_S))
        for k in range(TRAIN_PROBES)
    ]


SAMPLINGS: Mapping[str, Callable[[float], list[float]]] = MappingProxyType(
    {"single": single, "paper": trains}
)


def _times(window_s: float, interval_s: float) -> int:
    """Return how many intervals begin within the window: at least one."""
    return max(1, math.ceil(window_s / interval_s - _EXACT))
