"""How much room there is for a file, as far as an SFTP server tells."""

from mpx.endpoints.sftp import wire
from mpx.endpoints.sftp.session import SftpSession, extended
from mpx.endpoints.sftp.wire import Extended


def free_bytes_for(session: SftpSession, name: str) -> int | None:
    """Return how many bytes are free in the folder of a file; None where the server does not tell."""
    if wire.STATVFS not in session.extensions:
        return None
    folder = name.rpartition("/")[0] or ("/" if name.startswith("/") else ".")
    (told,) = session.ask([extended(wire.STATVFS, wire.name(folder))])
    if not isinstance(told, Extended):
        return None
    try:
        return wire.parse_room(told.content).free_bytes
    except wire.WireError:
        return None
