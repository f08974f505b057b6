"""The answers of SFTP version 3, as who serves writes them. Pure."""

import struct
from collections.abc import Mapping

from mpx.endpoints.sftp.wire import (
    VERSION,
    Attributes,
    Data,
    Described,
    Extended,
    FolderEntry,
    Handle,
    Names,
    PacketKind,
    Reply,
    ServerLimits,
    Status,
    attributes,
    text,
    u32,
    u64,
)

_DATA = struct.Struct(">IBII")


def hello(extensions: Mapping[str, str]) -> bytes:
    """Return the answer to what begins a session."""
    pairs = b"".join(text(name.encode()) + text(value.encode()) for name, value in extensions.items())
    return _packet(PacketKind.VERSION, u32(VERSION) + pairs)


def written(number: int, reply: Reply) -> list[bytes | memoryview]:
    """Return an answer as it travels, in pieces: data are not copied."""
    if isinstance(reply, Data):
        size = len(reply.content)
        return [_DATA.pack(9 + size, PacketKind.DATA, number, size), reply.content]
    if isinstance(reply, Status):
        body = u32(reply.code) + text(reply.message.encode("utf-8", "replace")) + text(b"en")
        return [_packet(PacketKind.STATUS, u32(number) + body)]
    if isinstance(reply, Handle):
        return [_packet(PacketKind.HANDLE, u32(number) + text(reply.value))]
    if isinstance(reply, Names):
        entries = b"".join(map(_entry, reply.entries))
        return [_packet(PacketKind.NAME, u32(number) + u32(len(reply.entries)) + entries)]
    if isinstance(reply, Described):
        return [_packet(PacketKind.ATTRS, u32(number) + attributes(reply.attributes))]
    assert isinstance(reply, Extended)
    return [_packet(PacketKind.EXTENDED_REPLY, u32(number) + reply.content)]


def limits(value: ServerLimits) -> Extended:
    """Return the answer to LIMITS."""
    told = (value.packet_bytes, value.read_bytes, value.write_bytes, value.handles)
    return Extended(b"".join(map(u64, told)))


def one_name(name: bytes) -> Names:
    """Return the answer to who asks what a name stands for."""
    return Names((FolderEntry(name, Attributes()),))


def _entry(entry: FolderEntry) -> bytes:
    return text(entry.name) + text(entry.name) + attributes(entry.attributes)


def _packet(kind: PacketKind, body: bytes) -> bytes:
    return struct.pack(">IB", 1 + len(body), kind) + body
