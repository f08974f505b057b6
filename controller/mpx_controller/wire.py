"""Our messages as OpenFlow 1.3, and what switches say as values of ours. os-ken knows the bytes."""

from collections.abc import Iterable
from typing import Any

from os_ken.ofproto import ofproto_parser, ofproto_protocol
from os_ken.ofproto import ofproto_v1_3 as ofp
from os_ken.ofproto import ofproto_v1_3_parser as parser

from mpx_controller.cookies import OURS, OURS_MASK, is_ours
from mpx_controller.flows import CONTROLLER, Add, Entry, Message, Remove, SendOut
from mpx_controller.graph import Port
from mpx_controller.network.ports import PortState

VERSION = ofp.OFP_VERSION
HEADER_BYTES = ofp.OFP_HEADER_SIZE
MOST_PORT = ofp.OFPP_MAX
_PROTOCOL = ofproto_protocol.ProtocolDesc(version=VERSION)
_KBIT = 1000


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
                match=parser.OFPMatch(**dict(key.match)),
                cookie=cookie,
                cookie_mask=2**64 - 1,
                out_port=ofp.OFPP_ANY,
                out_group=ofp.OFPG_ANY,
            )
            return _serialized(made, xid)
        case SendOut(data, outputs):
            made = parser.OFPPacketOut(
                _PROTOCOL, ofp.OFP_NO_BUFFER, ofp.OFPP_CONTROLLER, _outputs(outputs), data
            )
            return _serialized(made, xid)


def hello(xid: int) -> bytes:
    """Return the first message of a connection: we speak version 1.3 only."""
    versions = parser.OFPHelloElemVersionBitmap(versions=[VERSION])
    return _serialized(parser.OFPHello(_PROTOCOL, elements=[versions]), xid)


def questions(xid: int) -> bytes:
    """Return what asks a switch who it is, for its ports, and for its entries of ours; frames come whole."""
    asked = (
        parser.OFPSetConfig(_PROTOCOL, ofp.OFPC_FRAG_NORMAL, ofp.OFPCML_NO_BUFFER),
        parser.OFPFeaturesRequest(_PROTOCOL),
        parser.OFPPortDescStatsRequest(_PROTOCOL, 0),
        parser.OFPFlowStatsRequest(
            _PROTOCOL, 0, ofp.OFPTT_ALL, ofp.OFPP_ANY, ofp.OFPG_ANY, OURS, OURS_MASK, parser.OFPMatch()
        ),
    )
    return b"".join(_serialized(each, xid) for each in asked)


def barrier(xid: int) -> bytes:
    """Return what is answered when all before it has been done."""
    return _serialized(parser.OFPBarrierRequest(_PROTOCOL), xid)


def echo(xid: int) -> bytes:
    """Return a question that anybody who is there answers."""
    return _serialized(parser.OFPEchoRequest(_PROTOCOL), xid)


def echo_reply(data: bytes, xid: int) -> bytes:
    """Return the answer to such a question."""
    made = parser.OFPEchoReply(_PROTOCOL)
    made.data = data
    return _serialized(made, xid)


def read(data: bytes) -> Any | None:
    """Return a whole message of version 1.3 as os-ken has it; None for what it does not know or is broken."""
    version, kind, length, xid = ofproto_parser.header(data)
    try:
        return parser.msg_parser(_PROTOCOL, version, kind, length, xid, data)
    except Exception:  # os-ken has no one error for messages that are broken
        return None


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
        described.curr_speed * _KBIT or None,
    )


def entries(described: Iterable[Any]) -> list[Entry]:
    """Return those of ours among the entries that os-ken describes."""
    return [_entry(each) for each in described if is_ours(each.cookie)]


def _entry(described: Any) -> Entry:
    outputs: list[int] = []
    goto = None
    for instruction in described.instructions:
        if isinstance(instruction, parser.OFPInstructionGotoTable):
            goto = instruction.table_id
        elif isinstance(instruction, parser.OFPInstructionActions):
            outputs += [each.port for each in instruction.actions if isinstance(each, parser.OFPActionOutput)]
    return Entry(
        described.table_id,
        described.priority,
        tuple(sorted(described.match.items())),
        described.cookie,
        tuple(outputs),
        goto,
        described.idle_timeout,
    )


def _flow_mod(entry: Entry) -> Any:
    instructions = []
    if entry.outputs:
        instructions.append(parser.OFPInstructionActions(ofp.OFPIT_APPLY_ACTIONS, _outputs(entry.outputs)))
    if entry.goto is not None:
        instructions.append(parser.OFPInstructionGotoTable(entry.goto))
    return parser.OFPFlowMod(
        _PROTOCOL,
        command=ofp.OFPFC_ADD,
        table_id=entry.table,
        priority=entry.priority,
        match=parser.OFPMatch(**dict(entry.match)),
        cookie=entry.cookie,
        idle_timeout=entry.idle_s,
        instructions=instructions,
    )


def _outputs(ports: Iterable[int]) -> list[Any]:
    return [parser.OFPActionOutput(port, ofp.OFPCML_NO_BUFFER if port == CONTROLLER else 0) for port in ports]


def _serialized(message: Any, xid: int) -> bytes:
    message.set_xid(xid)
    message.serialize()
    return bytes(message.buf)
