"""What a server says of its files: facts of a name, listings over a data connection, what is missing."""

import re
import socket
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from urllib.parse import unquote

from mpx import tcp
from mpx.endpoint import FileInfo, Kind
from mpx.errors import ConnectionLost, MpxError, TransferTimeout
from mpx.gridftp_session import Session
from mpx.gridftp_wire import Entry, Reply, command
from mpx.passive import connect_data, passive_command, passive_reply

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
    mode = facts.get("unix.mode", "")
    return FileInfo(
        kind,
        _size(facts.get("size", ""), kind),
        parse_time(facts.get("modify", "")),
        int(mode, 8) if re.fullmatch(r"[0-7]{3,6}", mode) else None,
        target,
        link_resolved=target.startswith("/"),
        identity=facts.get("unique") or None,
    )


def _size(told: str, kind: Kind) -> int | None:
    """Return the size; None of a file whose size nobody could have."""
    if re.fullmatch(r"[0-9]{1,19}", told) and int(told) < 1 << 63:
        return int(told)
    return None if kind is Kind.FILE else 0


def parse_time(text: str) -> float | None:
    """Read YYYYMMDDHHMMSS[.frac], UTC."""
    found = re.match(r"\s*([0-9]{14})(\.[0-9]{1,9})?", text)
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
    options = session.options
    connection, unreachable = None, None
    try:
        connection = connect_data(session, address)
    except ConnectionLost as error:
        unreachable = error
    rest = b""
    try:
        reply = _first_reply(session, unreachable)
        if not reply.is_preliminary and not reply.is_ok:
            raise refused(reply)
        wait_s = options.timeout_s if reply.is_preliminary else min(options.timeout_s, _ALL_SENT_S)
        while connection and (data := _received(connection, session, wait_s, is_over=reply.is_ok)):
            *lines, rest = (rest + data).split(b"\n")
            for raw in lines:
                yield raw.removesuffix(b"\r").decode("utf-8", "surrogateescape")
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
        yield CutLine(rest.removesuffix(b"\r").decode("utf-8", "surrogateescape"))


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


def _received(connection: socket.socket, session: Session, wait_s: float, *, is_over: bool) -> bytes:
    """Return what comes next; nothing also where a server that says it is done has left the connection."""
    try:
        return tcp.receive(connection, wait_s, session.peer, session.options.stop)
    except (ConnectionLost, TransferTimeout):
        if is_over:
            return b""
        raise
