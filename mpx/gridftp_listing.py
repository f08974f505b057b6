"""What a server says of its files: facts of a name, listings over a data connection, what is missing."""

import contextlib
import re
import socket
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from urllib.parse import unquote

from mpx import tcp
from mpx.endpoint import FileInfo, Kind
from mpx.errors import ConnectionLost, MpxError, TransferTimeout
from mpx.gridftp_session import Session
from mpx.gridftp_sizes import read_size
from mpx.gridftp_wire import Entry, Reply, command
from mpx.passive import connect_data, passive_command, passive_reply

LONGEST_LINE_BYTES = 64 * 1024  # a path and where a link leads, both of 4096 bytes and written as %XX, fit in
_KINDS = {"file": Kind.FILE, "dir": Kind.FOLDER, "cdir": Kind.FOLDER, "pdir": Kind.FOLDER, "slink": Kind.LINK}
_SPECIAL = re.compile(r"os\.unix=(chr|blk|pipe|fifo|sock|other|dev|door|whiteout)")  # and what follows these
_LINKS = ("os.unix=slink", "os.unix=symlink")  # ProFTPD says the latter, Pure-FTPD `slink:` without a target


def kind_of(entry: Entry) -> Kind | None:
    """Return what the facts say that a name is; None where they do not, or in words that nobody knows."""
    told = entry.facts.get("type", "").lower()
    if told.startswith(_LINKS):
        return Kind.LINK
    return Kind.OTHER if _SPECIAL.match(told) else _KINDS.get(told)


def entry_info(entry: Entry, *, follow: bool = False) -> FileInfo:
    """Turn facts (RFC 3659, with the GCT's UNIX.* facts) into what we know of a name.

    Servers describe what a link points to, with UNIX.slink beside it: a Globus server the real path
    of that, mpx serve the link as it stands. ProFTPD and Pure-FTPD name a link as such in `type`, with
    its target there or nowhere.
    """
    facts = entry.facts
    kind = kind_of(entry) or Kind.OTHER
    target = unquote(facts.get("unix.slink", ""), errors="surrogateescape")
    if kind is Kind.LINK and not target:
        target = facts["type"].partition(":")[2]
    if target and kind is not Kind.LINK:
        kind, target = (kind, "") if follow else (Kind.LINK, target)
    size_bytes = read_size(facts.get("size", ""))
    mode = facts.get("unix.mode", "")
    return FileInfo(
        kind,
        size_bytes if kind is Kind.FILE else size_bytes or 0,
        parse_time(facts.get("modify", "")),
        int(mode, 8) if re.fullmatch(r"[0-7]{3,6}", mode) else None,
        target,
        link_resolved=target.startswith("/"),
        identity=facts.get("unique") or None,
    )


def parse_time(text: str) -> float | None:
    """Read YYYYMMDDHHMMSS[.frac], UTC."""
    found = re.match(r"\s{0,8}(\d{14})(\.\d{1,9})?", text, re.ASCII)
    if not found:
        return None
    try:
        whole = datetime.strptime(found.group(1), "%Y%m%d%H%M%S").replace(tzinfo=UTC).timestamp()
    except ValueError:
        return None
    return whole + float(found.group(2) or 0)


class CutLine(str):
    """The last line of a listing that lacks its end; more may be missing."""

    __slots__ = ()


def read_lines(session: Session, line: bytes, refused: Callable[[Reply], MpxError]) -> Iterator[str]:
    """Run a listing command in MODE S and yield its lines as they come.

    Servers may answer that an empty folder is listed without ever using the data connection.
    """
    address = passive_reply(session, session.pipeline([command("MODE", "S"), passive_command(session)])[1])
    session.send(line)
    connection, unreachable = None, None
    try:
        connection = connect_data(session, address)
    except ConnectionLost as error:
        unreachable = error
    rest = bytearray()
    try:
        reply = _first_reply(session, unreachable)
        if not reply.is_preliminary and not reply.is_ok:
            raise refused(reply)
        if reply.is_ok and reply.code not in _DONE:
            raise ConnectionLost(f"{session.peer} answers {reply.code} to a listing: {reply.reason}")
        if connection and reply.is_preliminary:
            yield from _whole_lines(session, connection, rest, session.options.timeout_s)
        elif connection:  # it is done, and may have left the connection as it is
            with contextlib.suppress(ConnectionLost, TransferTimeout):
                yield from _whole_lines(session, connection, rest, _ALL_SENT_S)
    except GeneratorExit:
        session.abort()  # the caller stopped in the middle; the dialogue cannot be put in step again
        raise
    finally:
        if connection:
            connection.close()
    if reply.is_preliminary:
        reply = session.final_reply()
    if not reply.is_ok:
        raise refused(reply)
    if rest:
        yield CutLine(_line(rest))


_DONE = (200, 212, 226, 250)  # that a listing is done, or empty
_ALL_SENT_S = 2.0  # for what a server has sent, or has to say, once it is done with a listing


def _first_reply(session: Session, unreachable: ConnectionLost | None) -> Reply:
    """Return what a server says first of a listing; raises `unreachable` if it has data to send."""
    if unreachable is None:
        return session.read_reply()
    try:
        reply = session.read_reply(min(session.options.timeout_s, _ALL_SENT_S))
    except TransferTimeout:
        raise unreachable from None
    if reply.is_preliminary or reply.code == 425:
        raise unreachable
    return reply


def _whole_lines(
    session: Session, connection: socket.socket, rest: bytearray, timeout_s: float
) -> Iterator[str]:
    """Yield lines as they come; what follows the last line end is left in `rest`.

    The time-out begins anew with each whole line that is not empty: single bytes, and line ends alone, can be
    sent without end. Raises TransferTimeout, ConnectionLost and Interrupted.
    """
    late = TransferTimeout(f"{session.peer} sent no whole line of its listing within {timeout_s:g} s")
    until_s = time.monotonic() + timeout_s
    while (left_s := until_s - time.monotonic()) > 0:
        try:
            data = tcp.receive(connection, left_s, session.peer, session.options.stop)
        except TransferTimeout:
            raise late from None
        if not data:
            return
        *ends, last = data.split(b"\n")
        said = False
        for raw in ends:
            line = _line(rest + raw)
            rest.clear()
            said = said or bool(line)
            yield line
        rest += last
        if len(rest) > LONGEST_LINE_BYTES:
            raise ConnectionLost(f"{session.peer} lists a line longer than {LONGEST_LINE_BYTES} bytes")
        if said:
            until_s = time.monotonic() + timeout_s
    raise late


def _line(raw: bytes | bytearray) -> str:
    return raw.removesuffix(b"\r").decode("utf-8", "surrogateescape")
