"""Converts our messages to OpenFlow 1.3 and those of switches to values of ours, with os-ken.

`message_check` checks each message before os-ken parses it.
"""

from collections.abc import Iterable
from functools import lru_cache
from typing import Any, NamedTuple

from os_ken.ofproto import ofproto_parser, ofproto_protocol
from os_ken.ofproto import ofproto_v1_3 as ofp
from os_ken.ofproto import ofproto_v1_3_parser as parser

from mpx_controller.cookies import ALL, OURS, OURS_MASK, is_ours
from mpx_controller.flow_stats import listed_entries
from mpx_controller.flows import (
    CONTROLLER,
    Add,
    Counted,
    Entry,
    Gone,
    Key,
    Match,
    Message,
    Remove,
    SendOut,
    Total,
)
from mpx_controller.graph import Port
from mpx_controller.message_check import (
    FIELD_HEAD,
    HEADER_BYTES,
    MOST_FIELDS,
    MULTIPART_BODY,
    VERSION,
    Malformed,
    check,
)
from mpx_controller.network.ports import PortState

MOST_PORT = ofp.OFPP_MAX
_PROTOCOL = ofproto_protocol.ProtocolDesc(version=VERSION)
_MATCH = HEADER_BYTES + 16  # where the match of a frame begins
_IN_PORT = bytes([0x80, 0, 0, 4])  # basic class, field 0, no mask, four bytes
_FLOW_REMOVED: int = ofp.OFPT_FLOW_REMOVED
_LISTS_ENTRIES: bytes = ofp.OFPMP_FLOW.to_bytes(2)
_IDLE = bytes([ofp.OFPRR_IDLE_TIMEOUT])
_REASON: int = HEADER_BYTES + 10  # position of the reason in a message of a removed entry


class FrameIn(NamedTuple):
    """A frame, and the number of the port on which it has come in."""

    number: int
    data: bytes


def to_bytes(message: Message, xid: int) -> bytes:
    """Return the bytes of a message of ours."""
    match message:
        case Add(entry):
            return _serialized(_flow_mod(entry), xid)
        case Remove(key, cookie):
            made = parser.OFPFlowMod(
                _PROTOCOL,
                command=ofp.OFPFC_DELETE_STRICT,
                table_id=key.table,
                priority=key.priority,
                cookie=cookie,
                cookie_mask=ALL,
                out_port=ofp.OFPP_ANY,
                out_group=ofp.OFPG_ANY,
            )
            made.match = _Match(_match_bytes(key.match))
            return _serialized(made, xid)
        case SendOut(data, outputs):
            made = parser.OFPPacketOut(_PROTOCOL, ofp.OFP_NO_BUFFER, ofp.OFPP_CONTROLLER, [], data)
            made.actions = [_Outputs(outputs)]
            return _serialized(made, xid)


def hello(xid: int) -> bytes:
    """Return the first message of a connection: we speak version 1.3 only."""
    versions = parser.OFPHelloElemVersionBitmap(versions=[VERSION])
    return _serialized(parser.OFPHello(_PROTOCOL, elements=[versions]), xid)


def questions(xid: int) -> bytes:
    """Return the requests for identity, ports and our entries; from then on frames are sent whole."""
    asked = (
        parser.OFPSetConfig(_PROTOCOL, ofp.OFPC_FRAG_NORMAL, ofp.OFPCML_NO_BUFFER),
        parser.OFPFeaturesRequest(_PROTOCOL),
        parser.OFPPortDescStatsRequest(_PROTOCOL, 0),
    )
    return b"".join(_serialized(each, xid) for each in asked) + entries_question(xid, OURS, OURS_MASK)


def entries_question(xid: int, cookie: int, mask: int) -> bytes:
    """Return the request for the entries whose cookie matches under `mask`, with the counters of each."""
    return _serialized(
        parser.OFPFlowStatsRequest(
            _PROTOCOL, 0, ofp.OFPTT_ALL, ofp.OFPP_ANY, ofp.OFPG_ANY, cookie, mask, parser.OFPMatch()
        ),
        xid,
    )


def total_question(cookie: int, xid: int) -> bytes:
    """Return the request for the summed counters of all entries with a cookie."""
    return _serialized(
        parser.OFPAggregateStatsRequest(
            _PROTOCOL, 0, ofp.OFPTT_ALL, ofp.OFPP_ANY, ofp.OFPG_ANY, cookie, ALL, parser.OFPMatch()
        ),
        xid,
    )


def barrier(xid: int) -> bytes:
    """Return a barrier request, answered when all before it is done."""
    return _serialized(parser.OFPBarrierRequest(_PROTOCOL), xid)


def echo(xid: int) -> bytes:
    """Return an echo request."""
    return _serialized(parser.OFPEchoRequest(_PROTOCOL), xid)


def echo_reply(data: bytes, xid: int) -> bytes:
    """Return the reply to an echo request with that data."""
    made = parser.OFPEchoReply(_PROTOCOL)
    made.data = data
    return _serialized(made, xid)


def is_of_no_interest(data: bytes) -> bool:
    """Whether it reports the removal of an entry that we removed ourselves; there are many of these."""
    return data[1] == _FLOW_REMOVED and data[_REASON : _REASON + 1] != _IDLE


def frame_in(data: bytes) -> FrameIn | None:
    """Return a frame that a switch hands over; None where it is broken, or came in on a special port.

    Parsed here and not by os-ken, as there can be floods of these, most of which are dropped.
    """
    length = int.from_bytes(data[_MATCH + 2 : _MATCH + 4])
    at, end = _MATCH + 4, _MATCH + length
    for _ in range(MOST_FIELDS):
        if not at + FIELD_HEAD <= end <= len(data):
            break
        if data[at : at + 4] == _IN_PORT:
            number = int.from_bytes(data[at + 4 : at + 8])
            start = (
                _MATCH + (length + 7) // 8 * 8 + 2
            )  # after zeros, so that the frame's addresses are aligned
            return FrameIn(number, data[start:]) if number <= MOST_PORT else None
        at += FIELD_HEAD + data[at + 3]
    return None


def read(data: bytes) -> Any:
    """Return a whole message of a needed kind as os-ken has it; a list of entries has `Counted` as its body.

    Raises Malformed where it is broken, and NotNeeded for a list that no switch is asked for.
    """
    check(data)
    if lists_entries(data):
        return entries_reply(data, listed_entries(data))
    version, kind, length, xid = ofproto_parser.header(data)
    try:
        return parser.msg_parser(_PROTOCOL, version, kind, length, xid, data)
    except Exception as error:  # os-ken has no one error for messages that are broken
        raise Malformed(f"cannot read a message of type {kind}: {error}") from None


def lists_entries(data: bytes) -> bool:
    """Whether a whole message is a list of entries, which `flow_stats` reads."""
    return data[1] == ofp.OFPT_MULTIPART_REPLY and data[HEADER_BYTES : HEADER_BYTES + 2] == _LISTS_ENTRIES


def entries_reply(data: bytes, listed: Iterable[Counted]) -> Any:
    """Return a list of entries as os-ken would have it, of what is listed in it."""
    flags = int.from_bytes(data[HEADER_BYTES + 2 : MULTIPART_BODY - 4])
    return parser.OFPFlowStatsReply(_PROTOCOL, body=list(listed), flags=flags)


def has_more(answer: Any) -> bool:
    """Whether another part of an answer follows; of some kinds there is one only."""
    return bool(getattr(answer, "flags", 0) & ofp.OFPMPF_REPLY_MORE)


def total(answer: Any) -> Total:
    """Return the summed counters of a reply."""
    return Total(answer.body.packet_count, answer.body.byte_count)


def port_state(switch: int, described: Any) -> PortState | None:
    """Return a port as os-ken describes it; None for the switch's own and other special ones."""
    if described.port_no > MOST_PORT:
        return None
    up = not described.config & ofp.OFPPC_PORT_DOWN and not described.state & ofp.OFPPS_LINK_DOWN
    return PortState(
        Port(switch, described.port_no),
        described.hw_addr,
        described.name.decode(errors="replace"),
        up,
    )


def entry_gone(message: Any) -> Gone | None:
    """Return the entry of ours that a switch has removed after its idle timeout; None for all others."""
    if message.reason != ofp.OFPRR_IDLE_TIMEOUT or not is_ours(message.cookie):
        return None
    return Gone(key(message), message.cookie, message.idle_timeout, message.packet_count)


def refused_cookie(error: Any) -> int | None:
    """Return the cookie of the entry of ours that a switch refuses; None where it refuses something else."""
    start = bytes(error.data or b"")[: HEADER_BYTES + 8]
    if len(start) < HEADER_BYTES + 8 or start[1] != ofp.OFPT_FLOW_MOD:
        return None
    cookie = int.from_bytes(start[HEADER_BYTES:], "big")
    return cookie if is_ours(cookie) else None


def key(described: Any) -> Key:
    """Return what identifies an entry, as os-ken has it, in a switch."""
    return Key(described.table_id, described.priority, tuple(sorted(described.match.items())))


def _flow_mod(entry: Entry) -> Any:
    instructions = []
    if entry.outputs:
        applied = parser.OFPInstructionActions(ofp.OFPIT_APPLY_ACTIONS, [])
        applied.actions = [_Outputs(entry.outputs)]
        instructions.append(applied)
    if entry.goto is not None:
        instructions.append(parser.OFPInstructionGotoTable(entry.goto))
    made = parser.OFPFlowMod(
        _PROTOCOL,
        command=ofp.OFPFC_ADD,
        table_id=entry.table,
        priority=entry.priority,
        cookie=entry.cookie,
        idle_timeout=entry.idle_s,
        flags=ofp.OFPFF_SEND_FLOW_REM if entry.idle_s else 0,
        instructions=instructions,
    )
    made.match = _Match(_match_bytes(entry.match))
    return made


class _Match:
    """A match whose bytes are known: os-ken takes longer for these than for all else of a message."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def serialize(self, buffer: bytearray, offset: int) -> int:
        """Put it into a message, as os-ken's own does; return its length."""
        buffer[offset:] = self._data
        return len(self._data)


@lru_cache(1024)  # all switches of a path have entries with the same two
def _match_bytes(match: Match) -> bytes:
    buffer = bytearray()
    parser.OFPMatch(**dict(match)).serialize(buffer, 0)
    return bytes(buffer)


class _Outputs:
    """Actions whose bytes are known: out of hundreds of ports, where a switch floods to so many."""

    def __init__(self, ports: Iterable[int]) -> None:
        self._data = b"".join(map(_output_bytes, ports))
        self.len = len(self._data)

    def serialize(self, buffer: bytearray, offset: int) -> None:
        """Put them into a message, as os-ken's own do: what is before them may come later."""
        buffer += bytes(max(0, offset - len(buffer)))
        buffer[offset:] = self._data


@lru_cache(1024)
def _output_bytes(port: int) -> bytes:
    buffer = bytearray()
    parser.OFPActionOutput(port, ofp.OFPCML_NO_BUFFER if port == CONTROLLER else 0).serialize(buffer, 0)
    return bytes(buffer)


def _serialized(message: Any, xid: int) -> bytes:
    message.set_xid(xid)
    message.serialize()
    return bytes(message.buf)
