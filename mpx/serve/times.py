"""Times as FTP writes them: `YYYYMMDDhhmmss`, UTC (RFC 3659)."""

import calendar
import time

from mpx.serve import arguments
from mpx.serve.replies import Refusal

_LONGEST = 40  # with a fraction of the second


def format_time(seconds: float) -> str:
    """Write seconds since 1970."""
    return time.strftime("%Y%m%d%H%M%S", time.gmtime(seconds))


def parse_time(text: str) -> int:
    """Return seconds since 1970; a fraction is dropped. Raises Refusal."""
    try:
        whole = text[:_LONGEST].partition(".")[0]
        if not arguments.is_time(whole):
            raise ValueError
        return calendar.timegm(time.strptime(whole, "%Y%m%d%H%M%S"))
    except ValueError as error:
        raise Refusal(501, f"Not a time (YYYYMMDDhhmmss): {text[:40]!a}") from error
