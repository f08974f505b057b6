"""Whether a value is one that an option takes: its type and its range, in the words of messages."""

from collections.abc import Mapping
from math import inf
from numbers import Integral, Real
from typing import Any

from mpx.errors import UsageError
from mpx.units import format_size

LONGEST_S = 864_000.0  # of a time-out; calls of the kernel take 24 days at most
_TYPES = {  # by the kind of an option
    "flag": (bool, "True or False"),
    "choice": (str, "text"),
    "text": (str, "text"),
    "texts": (tuple, "a tuple of texts"),
    "count": (Integral, "a whole number"),
    "number": (Integral, "a whole number"),
    "size": (Integral, "a whole number of bytes"),
    "factor": (Real, "a number"),
    "duration": (Real, "a number of seconds"),
    "rate": (Real, "a number of bits per second"),
}
_UNITS = {"duration": " s", "rate": " bit/s", "factor": ""}


def check_type(flag: str, value: object, kind: str | None, *, may_lack: bool) -> None:
    """Raise UsageError for a value that is not of the type of its option."""
    if kind is None or (value is None and may_lack):
        return
    types, what = _TYPES[kind]
    is_other = isinstance(value, bool) and kind != "flag"
    if isinstance(value, tuple):
        is_other = not all(isinstance(each, str) for each in value)
    if is_other or not isinstance(value, types):
        raise UsageError(f"{flag} is {what}, not {value!r}")


def check_range(flag: str, value: Any, about: Mapping[str, Any]) -> None:
    """Raise UsageError for a number that is out of the range of its option."""
    kind = about.get("kind")
    given = _written(value, kind)
    if kind in ("duration", "rate", "size", "factor") and not 0 < value < inf:  # nor no number at all
        raise UsageError(f"{flag} must be above 0 and finite, not {given}")
    if kind == "duration" and value > LONGEST_S:
        raise UsageError(f"{flag} must be at most ten days, not {given}")
    if "minimum" in about and value < about["minimum"]:
        raise UsageError(f"{flag} must be at least {_written(about['minimum'], kind)}, not {given}")
    if "maximum" in about and value > about["maximum"]:
        raise UsageError(f"{flag} must be at most {_written(about['maximum'], kind)}, not {given}")


def _written(value: Any, kind: str | None) -> str:
    """Return a number as messages have it, with the unit of its kind."""
    if kind == "size":
        return format_size(value)
    return f"{value:g}{_UNITS[kind]}" if kind in _UNITS else str(value)
