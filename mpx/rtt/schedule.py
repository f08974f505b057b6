"""When probes are sent: pure functions from the length of a window to times since its begin, in seconds."""

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType

SINGLE_INTERVAL_S = 0.1
TRAIN_INTERVAL_S = 1.0
TRAIN_PROBES = 10
TRAIN_STEP_S = 0.001
_UNEVEN = 0.6  # the largest delay of a single probe, in intervals
_GOLDEN = (math.sqrt(5) - 1) / 2  # its multiples are spread most evenly
_EXACT = 1e-9  # rounding of windows, which are sums


def later(number: int, interval_s: float = SINGLE_INTERVAL_S) -> float:
    """Return by how much a single probe is delayed, seconds.

    Queues have periods of their own: BBR probes for bandwidth every eight round trips. Probes at even times
    that always met the same phase would not see that.
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
