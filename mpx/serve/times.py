"""Times as FTP writes them: `YYYYMMDDhhmmss`, UTC (RFC 3659)."""

import time

from mpx.serve import arguments
from mpx.serve.replies import RefusalReply

_LONGEST = 40  # with a fraction of the second
_FIRST_S, _LAST_S = -30610224000, 253402300799  # the first second of the year 1000, the last of 9999


def utc(seconds: float) -> time.struct_time:
    """Return seconds since 1970 as a date in UTC, the nearest whose year has four digits."""
    return time.gmtime(min(max(seconds, _FIRST_S), _LAST_S))


def format_time(seconds: float) -> str:
    """Write seconds since 1970; see `utc`."""
    return time.strftime("%Y%m%d%H%M%S", utc(seconds))


def parse_time(text: str) -> int:
    """Return seconds since 1970; a fraction is dropped. Raises RefusalReply."""
    try:
        whole = text[:_LONGEST].partition(".")[0]
        if not arguments.is_time(whole):
            raise ValueError
        import calendar  # which imports much, and few commands have a time

        return calendar.timegm(time.strptime(whole, "%Y%m%d%H%M%S"))
    except ValueError as error:
        raise RefusalReply(501, f"Not a time (YYYYMMDDhhmmss): {text[:40]!a}") from error
