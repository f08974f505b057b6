"""What an SFTP server sends, cut into packets that are read, and what a shell says of checksums."""

import struct

from mpx.endpoints.sftp import sums_script, wire
from mpx.endpoints.sftp.describe import info_of
from mpx.endpoints.sftp.inbox import Inbox
from mpx.endpoints.sftp.wire import Attributes, Described, Extended, Names, WireError


def _packet(kind: int, *fields: bytes) -> bytes:
    body = struct.pack(">BI", kind, 7) + b"".join(fields)
    return struct.pack(">I", len(body)) + body


_FILE = wire.attributes(Attributes(5, 0o100644, 1_234_567_890))
_NAME = wire.text(b"a name") + wire.text(b"-rw-r--r--") + _FILE
SEEDS = [
    _packet(2, wire.text(wire.LIMITS.encode()), wire.text(b"1")),
    _packet(101, wire.u32(4), wire.text(b"Failure"), wire.text(b"en")) + _packet(102, wire.text(b"\0\0\0\1")),
    _packet(103, wire.text(bytes(100))) + _packet(105, _FILE),
    _packet(104, wire.u32(2), _NAME, _NAME),
    _packet(105, wire.u32(0x8000000F), bytes(24), wire.u32(1), wire.text(b"type"), wire.text(b"value")),
    _packet(201, bytes(88)),
    b"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  ./a name\nmpx-sums end\n",
]
ALLOWED = (WireError,)


def parse(data: bytes) -> None:
    """Read it as a session does."""
    lines = data.split(b"\n")
    assert all(len(each) == 64 for each in sums_script.parse_whole(lines).values())
    inbox, rest = Inbox(), memoryview(data)
    while rest:
        room = inbox.room()
        some = min(len(room), len(rest))
        room[:some] = rest[:some]
        inbox.received(some)
        rest = rest[some:]
        for packet in inbox.packets():
            _read(packet)


def _read(packet: memoryview) -> None:
    if packet[0] == wire.PacketKind.VERSION:
        wire.parse_version(packet)
        return
    _, reply = wire.parse_reply(packet)
    if isinstance(reply, Extended):
        wire.parse_room(reply.content)
        wire.parse_limits(reply.content)
    elif isinstance(reply, Described):
        info_of(reply.attributes)
    elif isinstance(reply, Names):
        for entry in reply.entries:
            info_of(entry.attributes, wire.decoded(entry.name))
