"""Our messages are those of OpenFlow 1.3, as os-ken makes and reads them."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpx_controller import wire
from mpx_controller.cookies import Kind, cookie
from mpx_controller.flows import Add, Entry, Key, Remove, Value, match
from os_ken.ofproto import ofproto_parser, ofproto_protocol
from os_ken.ofproto import ofproto_v1_3 as ofp
from os_ken.ofproto import ofproto_v1_3_parser as parser

PROTOCOL = ofproto_protocol.ProtocolDesc(version=4)
FOUR = st.ip_addresses(v=4).map(str)
SIX = st.ip_addresses(v=6).filter(lambda each: int(each) >> 48).map(str)  # others no host of ours has
PORTS = st.integers(0, 65535)
HARDWARE = st.binary(min_size=6, max_size=6).map(lambda each: each.hex(":"))
FLAGS = st.integers(1, 0xFFF).map(lambda flags: (flags, flags))
MATCHES = st.one_of(
    st.fixed_dictionaries(
        {"eth_type": st.just(0x800), "ip_proto": st.just(6), "ipv4_src": FOUR, "ipv4_dst": FOUR},
        optional={"tcp_src": PORTS, "eth_src": HARDWARE, "eth_dst": HARDWARE, "tcp_flags": FLAGS},
    ),
    st.fixed_dictionaries(
        {"eth_type": st.just(0x86DD), "ip_proto": st.just(6), "ipv6_src": SIX, "tcp_dst": PORTS}
    ),
    st.fixed_dictionaries({"in_port": st.integers(1, 100)}),
    st.just({}),
)
ENTRIES = st.builds(
    lambda fields, table, priority, number, outputs, goto, idle_s: Entry(
        table, priority, match(**fields), cookie(Kind.PATH_SET, number), tuple(outputs), goto, idle_s
    ),
    MATCHES,
    st.integers(0, 200),
    st.integers(0, 65535),
    st.integers(1, 2**40 - 1),
    st.lists(st.integers(1, 100), max_size=3),
    st.none() | st.integers(201, 250),
    st.integers(0, 65535),
)


def as_os_ken(entry: Entry) -> bytes:
    instructions: list[object] = []
    if entry.outputs:
        actions = [parser.OFPActionOutput(port, 0) for port in entry.outputs]
        instructions.append(parser.OFPInstructionActions(ofp.OFPIT_APPLY_ACTIONS, actions))
    if entry.goto is not None:
        instructions.append(parser.OFPInstructionGotoTable(entry.goto))
    made = parser.OFPFlowMod(
        PROTOCOL,
        cookie=entry.cookie,
        table_id=entry.table,
        command=ofp.OFPFC_ADD,
        idle_timeout=entry.idle_s,
        priority=entry.priority,
        flags=ofp.OFPFF_SEND_FLOW_REM if entry.idle_s else 0,
        match=parser.OFPMatch(**dict(entry.match)),
        instructions=instructions,
    )
    made.set_xid(7)
    made.serialize()
    return bytes(made.buf)


@given(ENTRIES)
def test_entries_are_sent_as_os_ken_would(entry: Entry) -> None:
    assert wire.to_bytes(Add(entry), 7) == as_os_ken(entry)


@given(ENTRIES)
def test_a_removal_names_the_entry(entry: Entry) -> None:
    sent = wire.to_bytes(Remove(entry.key, entry.cookie), 7)
    version, kind, length, xid = ofproto_parser.header(sent)
    read = parser.msg_parser(PROTOCOL, version, kind, length, xid, sent)
    assert (wire.key(read), read.cookie, read.cookie_mask) == (entry.key, entry.cookie, 2**64 - 1)
    assert read.command == ofp.OFPFC_DELETE_STRICT


@pytest.mark.parametrize(
    ("reason", "of_interest"), [(ofp.OFPRR_IDLE_TIMEOUT, True), (ofp.OFPRR_DELETE, False)]
)
def test_removals_of_our_own_are_passed_over(reason: int, of_interest: bool) -> None:
    fields: dict[str, Value] = {"in_port": 3}
    ours = cookie(Kind.PATH_SET, 5)
    data = flow_removed(ours, priority=9, reason=reason, table=2, fields=fields)
    assert wire.is_of_no_interest(data) == (not of_interest)
    if of_interest:
        assert wire.entry_gone(wire.read(data)) == (Key(2, 9, match(**fields)), ours, 600, 7)
        others = flow_removed(5, priority=9, reason=reason, table=2, fields=fields)
        assert wire.entry_gone(wire.read(others)) is None


def flow_removed(of: int, priority: int, reason: int, table: int, fields: dict[str, Value]) -> bytes:
    """os-ken reads these, and does not write them."""
    buffer = bytearray()
    parser.OFPMatch(**fields).serialize(buffer, 0)
    body = struct.pack("!QHBBIIHHQQ", of, priority, reason, table, 0, 0, 600, 0, 7, 0) + buffer
    return struct.pack("!BBHI", 4, ofp.OFPT_FLOW_REMOVED, 8 + len(body), 1) + body


@given(
    PORTS, st.binary(max_size=200), st.lists(st.tuples(st.integers(3, 30), st.binary(max_size=9)), max_size=3)
)
def test_frames_are_read_wherever_their_port_is_told(
    number: int, frame: bytes, others: list[tuple[int, bytes]]
) -> None:
    fields = [struct.pack("!HBB", 0x8000, kind << 1, len(value)) + value for kind, value in others]
    fields.append(struct.pack("!II", 0x80000004, number))
    length = 4 + len(b"".join(fields))
    matched = struct.pack("!HH", 1, length) + b"".join(fields) + bytes(-length % 8)
    head = struct.pack("!IHBBQ", ofp.OFP_NO_BUFFER, len(frame), 1, 0, 5)
    body = head + matched + b"\0\0" + frame
    message = struct.pack("!BBHI", 4, ofp.OFPT_PACKET_IN, 8 + len(body), 1) + body
    assert wire.frame_in(message) == (number, frame)
    if not others:
        read = wire.read(message)
        assert read is not None and (read.match["in_port"], bytes(read.data)) == (number, frame)


@given(st.binary(max_size=100), st.binary(min_size=4, max_size=4))
def test_frames_that_are_broken_are_none(data: bytes, head: bytes) -> None:
    read = wire.frame_in(head + data)
    assert read is None or read.number <= wire.MOST_PORT
