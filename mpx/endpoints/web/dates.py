"""Times as servers of HTTP and WebDAV write them, in UTC. Pure; what is no time is None."""

import math
import re
from datetime import UTC, datetime, timedelta

_LONGEST = 64  # characters
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_CLOCK = r"(?P<hour>[0-9]{2}):(?P<minute>[0-9]{2}):(?P<second>[0-9]{2})"
_DAY, _MONTH, _YEAR = r"(?P<day>[0-9]{1,2})", r"(?P<month>[A-Za-z]{3})", r"(?P<year>[0-9]{4}|[0-9]{2})"
_DATE = r"(?P<year>[0-9]{4})-(?P<month>[0-9]{2})-(?P<day>[0-9]{2})"
_HTTP_FORMS = (
    # RFC 1123, with four digits of the year, and RFC 850, with two
    re.compile(rf"[A-Za-z]{{3,9}}, ?{_DAY}[ -]{_MONTH}[ -]{_YEAR} {_CLOCK} (?:GMT|UTC|[+-]0000)"),
    re.compile(rf"[A-Za-z]{{3}} {_MONTH} {{1,2}}{_DAY} {_CLOCK} (?P<year>[0-9]{{4}})"),  # asctime() of C
)
_ISO = re.compile(
    rf"{_DATE}[Tt ]{_CLOCK}(?P<fraction>\.[0-9]{{1,9}})?"
    r"(?:[Zz]|(?P<sign>[+-])(?P<zone_hours>[0-9]{2}):?(?P<zone_minutes>[0-9]{2}))"
)


def http_date(text: str) -> int | None:
    """Return the seconds since 1970 in a date of HTTP, in any of the three forms of RFC 9110.

    Two digits of a year are from 1969 to 2068, as POSIX has it.
    """
    text = text.strip() if len(text) <= _LONGEST else ""
    found = next((match for form in _HTTP_FORMS if (match := form.fullmatch(text))), None)
    if found is None or (month := found["month"].lower()) not in _MONTHS:
        return None
    year = int(found["year"])
    if len(found["year"]) == 2:
        year += 1900 if year >= 69 else 2000
    return _seconds(year, _MONTHS.index(month) + 1, found)


def date_of(seconds: float) -> str:
    """Return a time as a date of HTTP (RFC 9110), in whole seconds; empty where it has no such year."""
    try:
        when = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=math.floor(seconds))
    except (OverflowError, ValueError):
        return ""
    day = _DAYS[when.weekday()]
    return f"{day}, {when.day:02} {_MONTHS[when.month - 1].title()} {when.year:04} {when:%H:%M:%S} GMT"


def iso_date(text: str) -> float | None:
    """Return the seconds since 1970 in `2024-01-02T03:04:05.6Z` (RFC 3339); one without a zone may be any."""
    found = _ISO.fullmatch(text.strip()) if len(text) <= _LONGEST else None
    if found is None:
        return None
    whole = _seconds(int(found["year"]), int(found["month"]), found)
    if whole is None:
        return None
    zone_s = 3600 * int(found["zone_hours"] or 0) + 60 * int(found["zone_minutes"] or 0)
    return whole + float(found["fraction"] or 0) - (-zone_s if found["sign"] == "-" else zone_s)


def _seconds(year: int, month: int, found: re.Match[str]) -> int | None:
    second = int(found["second"])
    if second > 60:  # 60 is a leap second, which datetime does not know
        return None
    try:
        minute = datetime(
            year, month, int(found["day"]), int(found["hour"]), int(found["minute"]), tzinfo=UTC
        )
    except ValueError:
        return None
    return (minute - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(seconds=1) + second
