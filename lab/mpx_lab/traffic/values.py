"""The values in a generator's text: how each is parsed with its unit, and written."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any

from mpx.errors import UsageError
from mpx.units import parse_duration, parse_rate, parse_size

Rate = Annotated[float, "bit/s"]
Duration = Annotated[float, "seconds"]
Size = Annotated[int, "bytes"]
Congestion = Annotated[str, "name of a congestion control"]

_NAME = re.compile(r"[a-z0-9_]{1,15}")
_NUMBER = re.compile(r"[0-9]+(\.[0-9]+)?")


@dataclass(frozen=True)
class ValueKind:
    """How one kind of value is read and written."""

    parse: Callable[[str], Any]  # raises UsageError
    show: Callable[[Any], str]


def _parse_int(text: str) -> int:
    if not re.fullmatch("[0-9]{1,15}", text):
        raise UsageError(f"'{text}' is not a whole number")
    return int(text)


def _parse_float(text: str) -> float:
    if not _NUMBER.fullmatch(text):
        raise UsageError(f"'{text}' is not a number; write for example 0.1")
    return float(text)


def _parse_congestion(text: str) -> str:
    if not _NAME.fullmatch(text):
        raise UsageError(f"'{text}' is not the name of a congestion control; write for example cubic or bbr")
    return text


def _decimal(number: Decimal) -> str:
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _show_rate(rate_bps: float) -> str:
    number = Decimal(repr(float(rate_bps)))
    for power, unit in ((9, "Gbit/s"), (6, "Mbit/s"), (3, "kbit/s")):
        if number >= 10**power:
            return _decimal(number.scaleb(-power)) + unit
    return _decimal(number) + "bit/s"


def _show_duration(duration_s: float) -> str:
    number = Decimal(repr(float(duration_s)))
    return _decimal(number) + "s" if number >= 1 or not number else _decimal(number.scaleb(3)) + "ms"


def _show_size(size_bytes: int) -> str:
    for power, unit in ((9, "GB"), (6, "MB"), (3, "kB")):
        if size_bytes and not size_bytes % 10**power:
            return f"{size_bytes // 10**power}{unit}"
    return f"{size_bytes}B"


KINDS: dict[Any, ValueKind] = {
    Rate: ValueKind(parse_rate, _show_rate),
    Duration: ValueKind(parse_duration, _show_duration),
    Size: ValueKind(parse_size, _show_size),
    Congestion: ValueKind(_parse_congestion, str),
    int: ValueKind(_parse_int, str),
    float: ValueKind(_parse_float, lambda number: _decimal(Decimal(repr(float(number))))),
}
