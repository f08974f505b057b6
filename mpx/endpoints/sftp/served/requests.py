"""The requests of SFTP version 3, as who serves them reads them. Pure."""

import struct
from dataclasses import dataclass

from mpx.endpoints.sftp.wire import Attributes, PacketFields, PacketKind, WireError

_OF_HANDLES = frozenset(
    {
        PacketKind.CLOSE,
        PacketKind.READ,
        PacketKind.WRITE,
        PacketKind.FSTAT,
        PacketKind.FSETSTAT,
        PacketKind.READDIR,
    }
)
_OF_NAMES = frozenset(
    {
        PacketKind.OPEN,
        PacketKind.LSTAT,
        PacketKind.SETSTAT,
        PacketKind.OPENDIR,
        PacketKind.REMOVE,
        PacketKind.MKDIR,
        PacketKind.RMDIR,
        PacketKind.REALPATH,
        PacketKind.STAT,
        PacketKind.RENAME,
        PacketKind.READLINK,
        PacketKind.SYMLINK,
    }
)
_WITH_ATTRIBUTES = frozenset({PacketKind.OPEN, PacketKind.SETSTAT, PacketKind.FSETSTAT, PacketKind.MKDIR})
_WITH_OTHER_NAMES = frozenset({PacketKind.RENAME, PacketKind.SYMLINK})


@dataclass(frozen=True, slots=True)
class Asked:
    """A request. `data` is valid until more is received."""

    kind: PacketKind
    number: int
    subject: bytes = b""  # a name, or a handle
    other: bytes = b""  # the second name
    offset: int = 0
    size_bytes: int = 0
    flags: int = 0
    attributes: Attributes = Attributes()  # noqa: RUF009  it is frozen
    data: memoryview = memoryview(b"")  # noqa: RUF009  of nothing
    extension: str = ""


def parse_request(packet: memoryview) -> Asked:
    """Read a packet without its length; raises WireError."""
    fields = PacketFields(packet)
    kind, number = fields.take(1)[0], fields.u32()
    try:
        known = PacketKind(kind)
    except ValueError:
        raise WireError(f"a request of the unknown kind {kind}") from None
    if known is PacketKind.EXTENDED:
        extension = bytes(fields.text()).decode("ascii", "replace")
        names = []
        while not fields.is_at_end:
            names.append(bytes(fields.text()))
        subject, other = ([*names, b"", b""])[:2]
        return Asked(known, number, subject, other, extension=extension)
    if known not in _OF_HANDLES | _OF_NAMES:
        raise WireError(f"a request of the kind {known.name}")
    subject = bytes(fields.text())
    other = bytes(fields.text()) if known in _WITH_OTHER_NAMES else b""
    offset = size_bytes = flags = 0
    data = memoryview(b"")
    if known is PacketKind.READ:
        offset, size_bytes = fields.u64(), fields.u32()
    elif known is PacketKind.WRITE:
        offset, data = fields.u64(), fields.text()
    elif known is PacketKind.OPEN:
        flags = fields.u32()
    attributes = fields.attributes() if known in _WITH_ATTRIBUTES else Attributes()
    return Asked(known, number, subject, other, offset, size_bytes, flags, attributes, data)


def version(packet: memoryview) -> int:
    """Read the packet that begins a session, without its length; raises WireError."""
    if len(packet) < 5 or packet[0] != PacketKind.INIT:
        raise WireError("something else than what begins a session")
    number: int = struct.unpack_from(">I", packet, 1)[0]
    return number
