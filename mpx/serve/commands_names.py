"""Commands about names: directories, facts, times, renaming, removing, checksums."""

import os
import stat
import time
from collections.abc import Callable

from mpx.endpoints.ftp.framing import checksum_marker
from mpx.endpoints.ftp.wire import reply_line
from mpx.serve import arguments, listing
from mpx.serve.checksum import ALGORITHMS, checksum
from mpx.serve.replies import RefusalReply
from mpx.serve.session import Command, Session
from mpx.serve.times import format_time, parse_time
from mpx.serve.turns import in_turns

_LINES_AT_ONCE = 500


def _quoted(path: str) -> str:
    return '"' + path.replace('"', '""') + '"'


def _change_directory(session: Session, argument: str) -> bytes:
    path = session.path(argument)
    os.close(session.root.open_directory(path))
    session.directory = path
    return b"250 CWD command successful.\r\n"


def _change_up(session: Session, _: str) -> bytes:
    return _change_directory(session, "..")


def _print_directory(session: Session, _: str) -> bytes:
    return reply_line(257, f"{_quoted(session.directory)} is current directory.")


def _make_directory(session: Session, argument: str) -> bytes:
    path = session.path(argument)
    session.root.make_directory(path)
    return reply_line(257, f"{_quoted(path)} created.")


def _remove_directory(session: Session, argument: str) -> bytes:
    session.root.remove_directory(session.path(argument))
    return b"250 RMD command successful.\r\n"


def _delete(session: Session, argument: str) -> bytes:
    session.root.remove_file(session.path(argument))
    return b"250 DELE command successful.\r\n"


def _rename_from(session: Session, argument: str) -> bytes:
    path = session.path(argument)
    session.root.link_stat(path)
    session.settings.rename_from = path
    return b"350 Send RNTO with the new name.\r\n"


def _rename_to(session: Session, argument: str) -> bytes:
    session.root.rename(renamed_from(session), session.path(argument))
    return b"250 RNTO command successful.\r\n"


def renamed_from(session: Session) -> str:
    """Return what RNFR has named, once."""
    old, session.settings.rename_from = session.settings.rename_from, None
    if old is None:
        raise RefusalReply(503, "RNFR comes first.")
    return old


def _size(session: Session, argument: str) -> bytes:
    found = session.root.stat(session.path(argument))
    if not stat.S_ISREG(found.st_mode):
        raise RefusalReply(550, "Not a regular file.")
    return reply_line(213, str(found.st_size))


def _modification_time(session: Session, argument: str) -> bytes:
    return reply_line(213, format_time(session.root.stat(session.path(argument)).st_mtime))


def _set_modification_time(session: Session, argument: str) -> bytes:
    when, _, name = argument.partition(" ")
    seconds = parse_time(when)
    session.root.set_times(session.path(name), seconds, seconds)
    return reply_line(213, f"Modify={when}; {name}")


def _facts(session: Session, argument: str) -> bytes:
    path = session.path(argument or ".")
    line = listing.facts_line(
        listing.item(session.root, path, argument or path), session.settings.facts, writable=session.writable
    )
    return reply_line(250, f"status of {argument or path}", line, "End.")


def _facts_of_directory(session: Session, argument: str) -> bytes:
    def line(item: listing.Item) -> str:
        return listing.facts_line(item, session.settings.facts, writable=session.writable)

    return _directory(session, argument, 250, line)


def _status(session: Session, argument: str) -> bytes:
    """STAT: of the session, or of a name, which is what LIST says but on the control connection."""
    if not argument.strip():
        mode = "E" if session.settings.blocks else "S"
        return reply_line(211, "mpx serve", f"MODE {mode}, directory {session.directory}", "End.")
    path = session.path(argument)
    if not stat.S_ISDIR(session.root.stat(path).st_mode):
        line = listing.long_line(listing.item(session.root, path, argument))
        return reply_line(213, f"status of {argument}", line, "End.")
    return _directory(session, argument, 213, listing.long_line)


def _directory(session: Session, name: str, code: int, line: Callable[[listing.Item], str]) -> bytes:
    """Send a listing on the control connection bit by bit, since it may be long; return its last line."""
    lines = [f"{code}-status of {name}\r\n"]
    raw = (f" {line(item)}\r\n" for item in listing.items(session.root, session.path(name or ".")))
    for some in in_turns(session.turn, raw):
        lines += some
        if len(lines) >= _LINES_AT_ONCE:
            session.control.send("".join(lines).encode("utf-8", "surrogateescape"))
            lines = []
    return "".join([*lines, f"{code} End.\r\n"]).encode("utf-8", "surrogateescape")


def _checksum(session: Session, argument: str) -> bytes:
    algorithm, start, size, name = [*argument.split(" ", 3), "", "", ""][:4]
    offset, length = arguments.number(start), -1 if size == "-1" else arguments.number(size)
    if offset is None or length is None or not name:
        raise RefusalReply(501, "CKSM takes an algorithm, an offset, a length (-1 for all) and a name.")
    algorithm = algorithm.upper()
    if algorithm not in ALGORITHMS:
        raise RefusalReply(504, f"Checksums are {', '.join(ALGORITHMS)}.")
    interval_s = session.settings.checksum_marker_s
    due_s = time.monotonic() + interval_s

    def tick(done: int) -> None:
        nonlocal due_s
        session.check_rights()
        if session.control.interrupted():
            raise RefusalReply(426, "Checksum aborted.")
        if interval_s and time.monotonic() >= due_s:
            due_s += interval_s
            session.control.send(checksum_marker(time.time(), done))

    fd = session.root.open_file(session.path(name))
    try:
        session.settle()
        return reply_line(213, checksum(fd, algorithm, offset, length, tick))
    finally:
        os.close(fd)


COMMANDS = {
    "CWD": Command(_change_directory, argument=True),
    "XCWD": Command(_change_directory, argument=True),
    "CDUP": Command(_change_up),
    "PWD": Command(_print_directory),
    "XPWD": Command(_print_directory),
    "MKD": Command(_make_directory, argument=True, writes=True),
    "RMD": Command(_remove_directory, argument=True, writes=True),
    "DELE": Command(_delete, argument=True, writes=True),
    "RNFR": Command(_rename_from, argument=True, writes=True),
    "RNTO": Command(_rename_to, argument=True, writes=True),
    "SIZE": Command(_size, argument=True),
    "MDTM": Command(_modification_time, argument=True),
    "MFMT": Command(_set_modification_time, argument=True, writes=True),
    "MLST": Command(_facts),
    "MLSC": Command(_facts_of_directory),
    "STAT": Command(_status),
    "CKSM": Command(_checksum, argument=True),
}
