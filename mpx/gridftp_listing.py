"""What a server says of its files: facts of a name, listings over a data connection, what is missing."""

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from urllib.parse import unquote

from mpx import gridftp_wire as wire
from mpx import tcp
from mpx.endpoint import FileInfo, Kind
from mpx.errors import ConnectionLost, MpxError
from mpx.gridftp_refusals import reply_error
from mpx.gridftp_session import Session
from mpx.gridftp_wire import Entry, Reply, command

_KINDS = {"file": Kind.FILE, "dir": Kind.FOLDER, "cdir": Kind.FOLDER, "pdir": Kind.FOLDER, "slink": Kind.LINK}


def entry_info(entry: Entry, *, follow: bool = False) -> FileInfo:
    """Turn facts (RFC 3659, with the GCT's UNIX.* facts) into what we know of a name.

    Servers describe what a link points to, with UNIX.slink beside it: a Globus server the real path
    of that, mpx serve the link as it stands.
    """
    facts = entry.facts
    kind = _KINDS.get(facts.get("type", "").lower(), Kind.OTHER)
    if facts.get("type", "").lower().startswith("os.unix=slink"):
        kind = Kind.LINK
    target = unquote(facts.get("unix.slink", ""), errors="surrogateescape")
    if target and kind is not Kind.LINK:
        kind, target = (kind, "") if follow else (Kind.LINK, target)
    size = facts.get("size", "0")
    mode = facts.get("unix.mode", "")
    return FileInfo(
        kind,
        int(size) if size.isdigit() else 0,
        parse_time(facts.get("modify", "")),
        int(mode, 8) if re.fullmatch(r"[0-7]{3,6}", mode) else None,
        target,
        link_resolved=target.startswith("/"),
    )


def parse_time(text: str) -> float | None:
    """Read YYYYMMDDHHMMSS[.frac], UTC."""
    found = re.match(r"\s*(\d{14})(\.\d+)?", text)
    if not found:
        return None
    try:
        whole = datetime.strptime(found.group(1), "%Y%m%d%H%M%S").replace(tzinfo=UTC).timestamp()
    except ValueError:
        return None
    return whole + float(found.group(2) or 0)


def passive_address(session: Session) -> tcp.Address:
    """Ask for a port to connect to: EPSV over IPv6, PASV otherwise; raises ConnectionLost.

    An address that is not routable from here (0.0.0.0) is replaced by the server's own.
    """
    return passive_reply(session, session.call(_passive(session)))


def _passive(session: Session) -> bytes:
    return command("EPSV", "2") if session.is_ipv6 else command("PASV")


def passive_reply(session: Session, reply: Reply) -> tcp.Address:
    """Read the answer to EPSV or PASV."""
    try:
        if reply.code == 229:
            return session.peer_host, wire.parse_extended_address(reply.text)[1]
        if reply.code == 227:
            host, port = wire.parse_host_port(reply.text)
            return (session.peer_host if host.startswith("0.") else host), port
    except ValueError as error:
        raise ConnectionLost(f"{session.peer} offers {error}") from None
    raise reply_error(reply, f"{session.peer} offers no port for data", ConnectionLost)


def read_lines(session: Session, line: bytes, refused: Callable[[Reply], MpxError]) -> Iterator[str]:
    """Run a listing command in MODE S and yield its lines as they come."""
    address = passive_reply(session, session.pipeline([command("MODE", "S"), _passive(session)])[1])
    session.send(line)
    options = session.options
    connection = tcp.connect(address, options.connect_timeout_s, stop=options.stop)
    rest = b""
    try:
        reply = session.read_reply()
        if not reply.is_preliminary:
            raise refused(reply)
        while data := tcp.receive(connection, options.timeout_s, session.peer, options.stop):
            *lines, rest = (rest + data).split(b"\n")
            for raw in lines:
                yield raw.removesuffix(b"\r").decode("utf-8", "surrogateescape")
    except GeneratorExit:
        session.abort()  # the caller stopped in the middle; the dialogue cannot be put in step again
        raise
    finally:
        connection.close()
    reply = session.final_reply()
    if not reply.is_ok:
        raise refused(reply)
    if rest:
        yield rest.removesuffix(b"\r").decode("utf-8", "surrogateescape")
