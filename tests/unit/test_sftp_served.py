"""The packets of SFTP as who serves writes and reads them, beside those of who asks."""

import contextlib
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpx.endpoints.sftp import wire
from mpx.endpoints.sftp.served import replies
from mpx.endpoints.sftp.served.requests import Asked, parse_request, version
from mpx.endpoints.sftp.wire import (
    Attributes,
    Code,
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
)

NUMBERS = st.integers(0, 2**32 - 1)
ATTRIBUTES = st.builds(
    Attributes,
    st.none() | st.integers(0, 2**64 - 1),
    st.none() | st.integers(0, 0o177777),
    st.none() | NUMBERS,
)
ENTRIES = st.lists(st.builds(FolderEntry, st.binary(max_size=20), ATTRIBUTES), max_size=5).map(tuple)
REPLIES = st.one_of(
    st.builds(Status, st.sampled_from(list(Code)), st.text(max_size=30)),
    st.builds(Handle, st.binary(max_size=10)),
    st.builds(Data, st.binary(max_size=100).map(memoryview)),
    st.builds(Names, ENTRIES),
    st.builds(Described, ATTRIBUTES),
    st.builds(Extended, st.binary(max_size=50)),
)


@given(NUMBERS, REPLIES)
def test_what_is_written_is_read(number: int, reply: Reply) -> None:
    packet = b"".join(replies.written(number, reply))
    (size,) = struct.unpack_from(">I", packet)
    assert size == len(packet) - 4
    read = wire.parse_reply(memoryview(packet)[4:])
    if isinstance(reply, Status) and reply.code == Code.OK:  # its words say nothing
        assert read == (number, Status(Code.OK))
    else:
        assert read == (number, reply)


@given(
    NUMBERS, st.binary(max_size=30), st.binary(max_size=30), st.integers(0, 2**64 - 1), NUMBERS, ATTRIBUTES
)
def test_what_is_asked_is_read(
    number: int, name: bytes, other: bytes, offset: int, size: int, attributes: Attributes
) -> None:
    field, written = wire.text(name), wire.attributes(attributes)
    asked = {
        PacketKind.STAT: ([field], Asked(PacketKind.STAT, number, name)),
        PacketKind.RENAME: ([field, wire.text(other)], Asked(PacketKind.RENAME, number, name, other)),
        PacketKind.READ: (
            [field, wire.u64(offset), wire.u32(size)],
            Asked(PacketKind.READ, number, name, offset=offset, size_bytes=size),
        ),
        PacketKind.OPEN: (
            [field, wire.u32(size), written],
            Asked(PacketKind.OPEN, number, name, flags=size, attributes=attributes),
        ),
        PacketKind.SETSTAT: (
            [field, written],
            Asked(PacketKind.SETSTAT, number, name, attributes=attributes),
        ),
    }
    for kind, (fields, expected) in asked.items():
        assert parse_request(memoryview(wire.packet(kind, number, *fields))[4:]) == expected
    sent = wire.write_header(number, field, offset, len(other)) + other
    assert parse_request(memoryview(sent)[4:]) == Asked(
        PacketKind.WRITE, number, name, offset=offset, data=memoryview(other)
    )
    extended = wire.extension(wire.CHECKSUM, number, field, wire.text(other))
    assert parse_request(memoryview(extended)[4:]) == Asked(
        PacketKind.EXTENDED, number, name, other, extension=wire.CHECKSUM
    )


@given(st.binary(max_size=60))
def test_what_is_no_request_is_an_error(packet: bytes) -> None:
    for read in (parse_request, version):
        with contextlib.suppress(wire.WireError):
            read(memoryview(packet))


def test_a_session_begins() -> None:
    assert version(memoryview(wire.init())[4:]) == wire.VERSION
    told = wire.parse_version(memoryview(replies.hello({wire.LIMITS: "1", wire.CHECKSUM: "1"}))[4:])
    assert told.number == wire.VERSION
    assert all(wire.offers(told, each) for each in (wire.LIMITS, wire.CHECKSUM))
    assert not wire.offers(told, wire.FSYNC)
    limits = ServerLimits(1, 2, 3, 4)
    assert wire.parse_limits(replies.limits(limits).content) == limits


@pytest.mark.parametrize("kind", [0, 2, 101, 250])
def test_other_kinds_are_refused(kind: int) -> None:
    with pytest.raises(wire.WireError, match="kind"):
        parse_request(memoryview(struct.pack(">BI", kind, 1)))
