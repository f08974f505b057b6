"""Arguments of commands, read in linear time and with bounds, since they come from strangers.

Regular expressions are avoided here: one that backtracks holds up every session of the server.
"""

from mpx.engine.ranges import Range
from mpx.serve.replies import RefusalReply

MOST_DIGITS = 18  # less than 2**63, where file offsets end
_LONGEST_ADDRESS = 100  # an EPRT with an IPv6 address has 60 characters
_INTERVAL_DIGITS = 5
_TIME_DIGITS = 14  # YYYYMMDDhhmmss


def number(text: str, most_digits: int = MOST_DIGITS) -> int | None:
    """Return a whole number written in ASCII digits; None for anything else, and for too many digits."""
    if not 0 < len(text) <= most_digits or not text.isascii() or not text.isdigit():
        return None
    return int(text)


def interval_s(text: str) -> float | None:
    """Return seconds, at most 99999 and in tenths at most; None for anything else."""
    whole, point, tenths = text.partition(".")
    seconds = number(whole, _INTERVAL_DIGITS)
    if seconds is None or (point and number(tenths, 1) is None):
        return None
    return float(text)


def numbers_and_name(argument: str, count: int) -> tuple[list[int], str] | None:
    """Read `count` whole numbers and a name, divided by single blanks; None if they are not there."""
    *words, name = argument.split(" ", count)
    numbers = [value for word in words if (value := number(word)) is not None]
    return (numbers, name) if len(numbers) == count and name else None


def options(text: str) -> dict[str, str] | None:
    """Read `Name=value;Name=value;` as {name: value} in lower case; None if it is something else."""
    pairs: dict[str, str] = {}
    *parts, rest = text.lower().split(";")
    if rest.strip():
        return None
    for part in parts:
        name, equals, value = part.partition("=")
        if equals and name.strip():
            pairs[name.strip()] = value
        elif part.strip():
            return None
    return pairs


def ranges(text: str) -> list[Range]:
    """Read `0-100,200-300`, or an offset, which stands for all before it. Raises RefusalReply."""
    whole = number(text)
    if whole is not None:
        return [(0, whole)]
    found = []
    for part in text.split(","):
        first, _, last = part.strip().partition("-")
        start, end = number(first), number(last)
        if start is None or end is None or end < start:
            raise RefusalReply(501, f"REST takes an offset or byte ranges, not {text[:80]!a}")
        found.append((start, end))
    return found


def is_time(text: str) -> bool:
    """Tell whether a text has the form of a time, YYYYMMDDhhmmss."""
    return len(text) == _TIME_DIGITS and text.isascii() and text.isdigit()


def without_ls_options(argument: str) -> str:
    """Return the name in the argument of LIST, to which clients add options of ls."""
    at = 0
    while argument.startswith("-", at):
        blank = argument.find(" ", at)
        if blank < 0:
            return ""
        at = blank
        while argument.startswith(" ", at):
            at += 1
    return argument[at:]


def check_address(argument: str) -> None:
    """Refuse what is too long for an address before it is searched for one."""
    if len(argument) > _LONGEST_ADDRESS:
        raise RefusalReply(501, f"Not an address: {len(argument)} characters.")
