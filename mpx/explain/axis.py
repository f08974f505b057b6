"""Scales of a picture: where their ticks are, and what they are called. Pure."""

import math
from collections.abc import Sequence

TIMES_S = (0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21600, 43200, 86400)


def ticks(most: float, count: int, *, is_whole: bool = False) -> Sequence[float]:
    """Return at least two round values from 0 to at least `most`, about `count`; whole ones if `is_whole`."""
    if not math.isfinite(most) or most <= 0:
        return (0.0, 1.0)
    rough = max(1.0, most / count) if is_whole else most / count
    power = 10.0 ** math.floor(math.log10(rough))
    step = next((each * power for each in (1, 2, 5, 10) if each * power >= rough * (1 - 1e-9)), 10 * power)
    return [place * step for place in range(math.ceil(most / step - 1e-9) + 1)]


def time_ticks(until_s: float, count: int) -> Sequence[float]:
    """Return the times of an axis from 0, in seconds, none after `until_s`, at most about `count`."""
    step = next((each for each in TIMES_S if until_s / each <= count), None)
    if step is None:
        days = math.ceil(until_s / count / TIMES_S[-1])
        step = days * TIMES_S[-1]
    if until_s < count * TIMES_S[0] / 2:
        step = until_s / 2
    return [place * step for place in range(int(until_s / step + 1e-9) + 1)]


def time_label(t_s: float, until_s: float) -> str:
    """Return e.g. `0.5 s`, `40 s`, `2:30 min` or `1:30 h`, in the unit that suits the whole axis."""
    if until_s < 180:
        return f"{t_s:g} s"
    smalls, unit = (t_s, "min") if until_s < 3 * 3600 else (t_s / 60, "h")
    large, small = divmod(round(smalls), 60)
    return f"{large}:{small:02} {unit}" if small else f"{large} {unit}"


def value_label(value: float) -> str:
    """Return a value of an axis without needless digits: `0.5`, `40`, `1200`."""
    return f"{value:.10g}" if value < 1e9 else f"{value:.3g}"
