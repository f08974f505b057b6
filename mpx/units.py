"""Values that carry their unit: read `30ms`, `800Mbit/s` and `4MiB`, and write them for people.

Durations are seconds, rates are bits per second, sizes are bytes. Decimal prefixes count by 1000,
binary ones (KiB, MiB, ...) by 1024. One space may stand between the number and the unit.
"""

import re
from collections.abc import Mapping

from mpx.errors import UsageError

# Each unit as a fraction, (numerator, denominator): 0.1 of something must not become 0.1000000001.
_SECONDS = {
    "us": (1, 1_000_000),
    "ms": (1, 1000),
    "s": (1, 1),
    "min": (60, 1),
    "h": (3600, 1),
    "d": (86400, 1),
}
_BYTES = {
    "B": (1, 1),
    **{f"{prefix}B": (1000**power, 1) for prefix, power in zip("kMGTP", range(1, 6), strict=True)},
    "KB": (1000, 1),  # not the SI spelling, but what most people type
    **{f"{prefix}iB": (1024**power, 1) for prefix, power in zip("KMGTP", range(1, 6), strict=True)},
}
_BITS_PER_S = {
    "bit/s": (1, 1),
    **{f"{prefix}bit/s": (1000**power, 1) for prefix, power in zip("kMGT", range(1, 5), strict=True)},
    **{f"{unit}/s": (8 * count, 1) for unit, (count, _) in _BYTES.items()},
}
_NUMBER_AND_UNIT = re.compile(r"([0-9]{1,20}(?:\.[0-9]{1,20})?) ?([A-Za-z/]{0,10})")


def parse_duration(text: str) -> float:
    """Return the seconds in e.g. `30ms`, `1.5s` or `2min`; a bare `0` is understood too."""
    if text.strip() == "0":
        return 0.0
    count, of = _parse(text, _SECONDS, "duration", "30s or 250ms")
    return count / of


def parse_rate(text: str) -> float:
    """Return the bits per second in e.g. `800Mbit/s` or `100MB/s` (8e8 bit/s); zero is refused."""
    count, of = _parse(text, _BITS_PER_S, "rate", "800Mbit/s or 100MB/s")
    if not count:
        raise UsageError(f"'{text}' is not a rate: it must be above zero, for example 800Mbit/s")
    return count / of


def parse_size(text: str) -> int:
    """Return the bytes in e.g. `4MiB`, `1GB` or `65536` (no unit: bytes)."""
    count, of = _parse(text, {"": (1, 1), **_BYTES}, "size", "4MiB, 1GB or 65536")
    if count % of:
        raise UsageError(f"'{text}' is not a size: it is not a whole number of bytes; write for example 4MiB")
    return count // of


def format_size(size_bytes: float) -> str:
    """Return e.g. `4 MiB` for 4194304 bytes, to three digits."""
    return _format(size_bytes, 1024, ("B", "KiB", "MiB", "GiB", "TiB", "PiB"))


def format_rate(rate_bps: float) -> str:
    """Return e.g. `1.25 Gbit/s` for 1.25e9 bits per second, to three digits."""
    return _format(rate_bps, 1000, ("bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"))


def format_duration(duration_s: float) -> str:
    """Return e.g. `250 ms`, `1.5 s`, `2 min 05 s` or `1 h 02 min` for a number of seconds."""
    if round(duration_s * 1_000_000) < 1_000_000:
        return _format(duration_s * 1_000_000, 1000, ("us", "ms", "s"))
    if duration_s < 59.95:
        return f"{_three_digits(duration_s)} s"
    minutes, seconds = divmod(round(duration_s), 60)
    if minutes < 60:
        return f"{minutes} min {seconds:02} s"
    hours, minutes = divmod(round(duration_s / 60), 60)
    return f"{hours} h {minutes:02} min"


def counted(number: int, noun: str, plural: str = "") -> str:
    """Return e.g. `1 stream` or `3 streams`; the plural takes an s unless it is given."""
    return f"{number} {noun if number == 1 else plural or noun + 's'}"


def _parse(text: str, units: Mapping[str, tuple[int, int]], what: str, example: str) -> tuple[int, int]:
    """Return the exact value, as a fraction."""
    match = _NUMBER_AND_UNIT.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"'{text}' is not a {what}: write a number and a unit, for example {example}")
    number, unit = match.groups()
    if unit not in units:
        known = ", ".join(name for name in units if name)
        missing = f"the unit '{unit}' is not known" if unit else "the unit is missing"
        raise UsageError(f"'{text}' is not a {what}: {missing} (of {known}); write for example {example}")
    whole, _, decimals = number.partition(".")
    count, of = units[unit]
    return int(whole + decimals) * count, 10 ** len(decimals) * of


def _format(value: float, step: int, units: tuple[str, ...]) -> str:
    for unit in units[:-1]:
        text = _three_digits(value)
        if float(text) < step:  # looked at after rounding, so that 1023.9 KiB becomes 1 MiB
            return f"{text} {unit}"
        value /= step
    return f"{_three_digits(value)} {units[-1]}"


def _three_digits(value: float) -> str:
    for bound, decimals in ((9.995, 2), (99.95, 1)):
        if value < bound:
            return f"{value:.{decimals}f}".rstrip("0").rstrip(".")
    return f"{value:.0f}"
