"""The packets of SFTP: literal bytes as the draft has them, and nothing but clear errors for what is none."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpx.endpoints.sftp import wire
from mpx.endpoints.sftp.inbox import LARGEST_PACKET_BYTES, Inbox
from mpx.endpoints.sftp.wire import (
    Attributes,
    Code,
    Data,
    Described,
    FolderEntry,
    Handle,
    Names,
    Open,
    PacketKind,
    Status,
    WireError,
)

U32, U64 = st.integers(0, 2**32 - 1), st.integers(0, 2**64 - 1)
ATTRIBUTES = st.builds(Attributes, st.none() | U64, st.none() | U32, st.none() | U32)
NAMES = st.binary(max_size=300)


def reply(kind: int, number: int, *fields: bytes) -> memoryview:
    return memoryview(struct.pack(">BI", kind, number) + b"".join(fields))


# --- what is sent, byte for byte -------------------------------------------------------------------


def test_a_session_begins_with_the_version() -> None:
    assert wire.init() == bytes.fromhex("00000005 01 00000003")


def test_a_request_to_open_a_file() -> None:
    fields = (wire.name("a\udcff"), wire.u32(Open.WRITE | Open.CREATE), wire.attributes(Attributes()))
    sent = wire.packet(PacketKind.OPEN, 7, *fields)
    assert sent == bytes.fromhex("00000013 03 00000007 00000002 61ff 0000000a 00000000")


def test_a_request_to_read() -> None:
    sent = wire.packet(PacketKind.READ, 1, wire.text(b"H"), wire.u64(2**32), wire.u32(32768))
    assert sent == bytes.fromhex("00000016 05 00000001 00000001 48 0000000100000000 00008000")


def test_what_precedes_bytes_to_be_written() -> None:
    sent = wire.write_header(2, wire.text(b"H"), 5, 3)
    assert sent + b"abc" == bytes.fromhex("00000019 06 00000002 00000001 48 0000000000000005 00000003 616263")


def test_attributes_to_be_set() -> None:
    sent = wire.attributes(Attributes(mode=0o640, modified_s=9))
    assert sent == bytes.fromhex("0000000c 000001a0 00000009 00000009")


def test_a_request_of_an_extension() -> None:
    sent = wire.extension(wire.FSYNC, 3, wire.text(b"H"))
    assert sent == bytes.fromhex("0000001f c8 00000003 00000011") + b"fsync@openssh.com" + b"\0\0\0\1H"


# --- what is received ------------------------------------------------------------------------------


def test_replies() -> None:
    assert wire.parse_reply(reply(101, 1, wire.u32(2), wire.text(b"No"), wire.text(b"en"))) == (
        1,
        Status(Code.NO_SUCH_FILE, "No"),
    )
    assert wire.parse_reply(reply(101, 1, wire.u32(0))) == (1, Status(0))  # without words
    assert wire.parse_reply(reply(102, 2, wire.text(b"H"))) == (2, Handle(b"H"))
    number, data = wire.parse_reply(reply(103, 3, wire.text(b"abc")))
    assert (number, isinstance(data, Data) and bytes(data.content)) == (3, b"abc")


@given(ATTRIBUTES)
def test_attributes_are_read_as_they_were_written(attributes: Attributes) -> None:
    assert wire.parse_reply(reply(105, 9, wire.attributes(attributes))) == (9, Described(attributes))


@given(st.lists(st.tuples(NAMES, ATTRIBUTES), max_size=20))
def test_names_are_read_as_they_were_written(entries: list[tuple[bytes, Attributes]]) -> None:
    fields = [
        wire.text(name) + wire.text(b"-rw-r--r--") + wire.attributes(attributes)
        for name, attributes in entries
    ]
    told = wire.parse_reply(reply(104, 4, wire.u32(len(entries)), *fields))
    assert told == (4, Names(tuple(FolderEntry(name, attributes) for name, attributes in entries)))


@given(st.text(st.characters(exclude_categories=("Cs",))))
def test_names_keep_their_bytes(name: str) -> None:
    assert wire.decoded(wire.encoded(name)) == name


@given(st.binary(max_size=40))
def test_any_bytes_make_a_name(name: bytes) -> None:
    assert wire.encoded(wire.decoded(name)) == name


@given(st.binary(max_size=200))
def test_noise_is_a_clear_error(noise: bytes) -> None:
    for parse in (wire.parse_reply, wire.parse_version):
        try:
            parse(memoryview(noise))
        except WireError as error:
            assert str(error)
    for of_extension in (wire.parse_limits, wire.parse_room):
        try:
            of_extension(noise)
        except WireError as error:
            assert str(error)


def test_a_count_of_names_that_no_packet_holds() -> None:
    with pytest.raises(WireError, match="4294967295 names"):
        wire.parse_reply(reply(104, 1, wire.u32(2**32 - 1)))


def test_what_a_server_announces() -> None:
    packet = struct.pack(">BI", 2, 3)
    for name, version in ((wire.POSIX_RENAME, b"1"), (wire.STATVFS, b"2"), (wire.FSYNC, b"9")):
        packet += wire.text(name.encode()) + wire.text(version)
    version = wire.parse_version(memoryview(packet))
    assert version.number == 3
    assert wire.offers(version, wire.POSIX_RENAME)
    assert wire.offers(version, wire.STATVFS)
    assert not wire.offers(version, wire.FSYNC)  # another version of it
    assert not wire.offers(version, wire.LIMITS)


# --- cutting what comes into packets ---------------------------------------------------------------


@given(st.lists(st.binary(min_size=1, max_size=3000), max_size=8), st.integers(1, 5000))
def test_packets_are_cut_wherever_bytes_end(packets: list[bytes], piece: int) -> None:
    inbox, got = Inbox(), []
    stream = b"".join(struct.pack(">I", len(each)) + each for each in packets)
    for start in range(0, len(stream), piece):
        some = stream[start : start + piece]
        inbox.room()[: len(some)] = some
        inbox.received(len(some))
        got += [bytes(packet) for packet in inbox.packets()]
    assert got == packets


def test_the_largest_packet_fits_behind_others() -> None:
    inbox, got = Inbox(), []
    large = struct.pack(">I", LARGEST_PACKET_BYTES) + bytes(LARGEST_PACKET_BYTES)
    stream = memoryview(b"\0\0\0\1a" + large + b"\0\0\0\1b")
    while stream:
        room = inbox.room()
        assert len(room)
        some = min(len(room), len(stream), 200_000)
        room[:some] = stream[:some]
        inbox.received(some)
        stream = stream[some:]
        got += [len(packet) for packet in inbox.packets()]
    assert got == [1, LARGEST_PACKET_BYTES, 1]


@pytest.mark.parametrize("size", [0, LARGEST_PACKET_BYTES + 1, 2**32 - 1])
def test_sizes_that_no_packet_has(size: int) -> None:
    inbox = Inbox()
    inbox.room()[:4] = struct.pack(">I", size)
    inbox.received(4)
    with pytest.raises(WireError, match=f"a packet of {size} bytes"):
        list(inbox.packets())
