"""Tells whether a folder is empty when its listing has no lines.

Such a listing may also come from a server that may not read the folder, or from one that confirmed the
listing at once and then lost it before its first line. Two other answers decide: STAT (RFC 959) lists over
the control connection; and a server whose listings include the folder itself shows that line for every
folder that it can read.
"""

import contextlib

from mpx.endpoints.ftp.list_formats import parse_list_line
from mpx.endpoints.ftp.session import ClientSession
from mpx.endpoints.ftp.wire import Reply, command

_ITSELF = (".", "..")


def stat_lists(session: ClientSession, full: str) -> bool | None:
    """Tell whether STAT lists entries of a folder; None if its reply does not show that.

    STAT is sent from within the folder, whose name could be read as a pattern, first with -a for names with a
    leading dot.
    """
    lines = [command("CWD", full), command("STAT", "-a", "."), command("STAT", ".")]
    entered, *replies = session.pipeline(lines)
    found = [_lists(reply) for reply in replies] if entered.is_ok else []
    return True if True in found else False if False in found else None


def _lists(reply: Reply) -> bool | None:
    if reply.code not in (211, 212, 213) or len(reply.lines) < 2:
        return None
    is_known = reply.code != 211  # which is also that of the server itself
    for line in reply.lines[1:-1]:
        try:
            found = parse_list_line(line.removeprefix(" "))
        except ValueError:
            is_known = False
        else:
            if found and found[0] not in _ITSELF:
                return True
    return False if is_known else None


def is_itself(line: str) -> bool:
    """Tell whether a line of LIST is that of the folder which is listed."""
    found = None
    if line.endswith(" ."):
        with contextlib.suppress(ValueError):
            found = parse_list_line(line)
    return found is not None and found[0] == "."
