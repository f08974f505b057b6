"""Whether a folder of which a server has listed nothing is empty.

Some servers list nothing of a folder that they may not read, and where a server says at once that it is done
a listing that was cut before its first line looks like that of an empty folder. So another question is asked:
STAT (RFC 959) lists over the control connection, and who shows a folder among what it holds shows every one
that can be read.
"""

import contextlib

from mpx.endpoints.ftp.list_formats import parse_list_line
from mpx.endpoints.ftp.session import ClientSession
from mpx.endpoints.ftp.wire import Reply, command

_ITSELF = (".", "..")


def stat_lists(session: ClientSession, full: str) -> bool | None:
    """Tell whether STAT lists anything in a folder; None where it tells nothing of that.

    From within the folder, as a name could be taken for a pattern; with -a for names with a leading dot.
    """
    lines = [command("CWD", full), command("STAT", "-a", "."), command("STAT", ".")]
    entered, *told = session.pipeline(lines)
    found = [_lists(reply) for reply in told] if entered.is_ok else []
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
