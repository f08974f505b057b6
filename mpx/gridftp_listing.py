"""What a server says of its files: facts of a name, listings over a data connection, what is missing."""

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from urllib.parse import unquote

from mpx import tcp
from mpx.endpoint import FileInfo, Kind
from mpx.errors import MpxError
from mpx.gridftp_session import Session
from mpx.gridftp_sizes import read_size
from mpx.gridftp_wire import Entry, Reply, command
from mpx.passive import connect_data, passive_command, passive_reply

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
    size_bytes = read_size(facts.get("size", ""))
    mode = facts.get("unix.mode", "")
    return FileInfo(
        kind,
        size_bytes if kind is Kind.FILE else size_bytes or 0,
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


def read_lines(session: Session, line: bytes, refused: Callable[[Reply], MpxError]) -> Iterator[str]:
    """Run a listing command in MODE S and yield its lines as they come."""
    address = passive_reply(session, session.pipeline([command("MODE", "S"), passive_command(session)])[1])
    session.send(line)
    options = session.options
    connection = connect_data(session, address)
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
