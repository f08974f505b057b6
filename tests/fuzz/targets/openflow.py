"""What a switch sends, byte for byte, and the frames of hosts in it."""

import asyncio
import atexit
import contextlib
import logging
import struct

from mpx_controller import wire
from mpx_controller.channel import Channel, SwitchEvents
from mpx_controller.cookies import Kind, cookie
from mpx_controller.flows import Add, Entry, match
from mpx_controller.graph import Port
from mpx_controller.log_limit import LogLimit
from mpx_controller.message_check import LEAST_BYTES, Malformed, NotNeeded
from mpx_controller.mptcp.segment import is_tcp, read_segment
from mpx_controller.network.discovery_frame import discovery_frame, read_discovery_frame, read_to_all_frame
from mpx_controller.network.heard_frame import announced_by
from mpx_controller.network.host_question import host_question
from mpx_controller.pending_replies import SwitchLost
from os_ken.ofproto import ofproto_v1_3 as ofp

SECRET = bytes(32)
OURS = cookie(Kind.PATH_SET, 7)
ENTRY = Entry(0, 9, match(eth_type=0x800, ip_proto=6, ipv4_src="10.0.0.1", tcp_dst=5), OURS, (1, 2), 1, 600)
ALLOWED = ()
WEIGHT = 3
_loop = asyncio.new_event_loop()
atexit.register(_loop.close)
_log = logging.Logger("fuzz")  # its lines go nowhere
_log.addHandler(logging.NullHandler())
_lines = LogLimit(_log)


def message(kind: int, body: bytes = b"", xid: int = 1) -> bytes:
    return struct.pack("!BBHI", ofp.OFP_VERSION, kind, ofp.OFP_HEADER_SIZE + len(body), xid) + body


def multipart(kind: int, body: bytes) -> bytes:
    return message(ofp.OFPT_MULTIPART_REPLY, struct.pack("!HH4x", kind, 0) + body)


def listed(added: bytes) -> bytes:
    """Return an entry as a switch lists it that it was told to add by a message."""
    rest = added[48:]  # match and instructions
    return struct.pack("!HBxIIHHHH4xQQQ", 48 + len(rest), 0, 1, 2, 9, 600, 0, 0, OURS, 3, 4) + rest


PORT = struct.pack("!I4x6s2x16s8I", 1, b"\x0e" * 6, b"port1", *[0] * 8)
FEATURES = message(ofp.OFPT_FEATURES_REPLY, struct.pack("!QIBB2xII", 7, 0, 254, 0, 0, 0))
ADDED = wire.to_bytes(Add(ENTRY), 3)
MATCH = ADDED[48:96]
HEAD = message(ofp.OFPT_HELLO) + FEATURES + multipart(ofp.OFPMP_PORT_DESC, PORT)
JOINED = HEAD + multipart(ofp.OFPMP_FLOW, listed(ADDED))
FRAMES = (
    host_question("10.0.0.1"),
    host_question("fd00::1"),
    discovery_frame(Port(1, 1), "02:00:00:00:00:01", 0.0, SECRET),
    bytes(12)
    + b"\x08\x00"
    + struct.pack("!BBHHHBBH4s4s", 0x45, 0, 60, 0, 0, 64, 6, 0, bytes(4), b"abcd")
    + struct.pack("!HHIIBBHHH", 1, 2, 3, 4, 0xA0, 2, 5, 6, 0)
    + bytes.fromhex("1e0c0181")
    + bytes(16),
)


def packet_in(frame: bytes) -> bytes:
    matched = struct.pack("!HHII4x", 1, 12, 0x80000004, 1)
    return message(
        ofp.OFPT_PACKET_IN,
        struct.pack("!IHBBQ", ofp.OFP_NO_BUFFER, len(frame), 1, 0, 0) + matched + b"\0\0" + frame,
    )


SEEDS = [
    JOINED,
    message(ofp.OFPT_ERROR, struct.pack("!HH", 5, 1) + ADDED[:64], 3),
    message(ofp.OFPT_ECHO_REQUEST, b"abc"),
    message(ofp.OFPT_ECHO_REPLY),
    message(ofp.OFPT_BARRIER_REPLY),
    FEATURES,
    multipart(ofp.OFPMP_PORT_DESC, PORT * 3),
    multipart(ofp.OFPMP_FLOW, listed(ADDED) * 3),
    multipart(ofp.OFPMP_AGGREGATE, bytes(24)),
    message(ofp.OFPT_PORT_STATUS, bytes([1]) + bytes(7) + PORT),
    message(ofp.OFPT_FLOW_REMOVED, struct.pack("!QHBBIIHHQQ", OURS, 9, 0, 0, 1, 2, 600, 0, 3, 4) + MATCH),
    *map(packet_in, FRAMES),
    *FRAMES,
    message(ofp.OFPT_QUEUE_GET_CONFIG_REPLY, bytes(24)),  # a queue of length 0: os-ken reads it for ever
]


class _Nowhere(asyncio.Transport):
    """What is written to it is gone."""

    def __init__(self) -> None:
        super().__init__({"peername": ("192.0.2.1", 6653)})
        self._closing = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Drop it."""

    def get_write_buffer_size(self) -> int:
        return 0

    def is_closing(self) -> bool:
        return self._closing

    def abort(self) -> None:
        self._closing = True

    def close(self) -> None:
        self._closing = True


def parse(data: bytes) -> None:
    """Read bytes as each of what a switch sends: a message, a frame of a host, a whole connection."""
    for kind in LEAST_BYTES:
        _read(message(kind, data[8:0xFFFF]))
    announced_by(data)
    read_discovery_frame(data, SECRET)
    read_to_all_frame(data, SECRET)
    if is_tcp(data):
        read_segment(data)
    _loop.run_until_complete(_connection(data if data.startswith(message(ofp.OFPT_HELLO)) else JOINED + data))


def _read(data: bytes) -> None:
    wire.frame_in(data)
    wire.is_of_no_interest(data)
    try:
        read = wire.read(data)
    except (Malformed, NotNeeded):
        return
    if data[1] == ofp.OFPT_FLOW_REMOVED:
        wire.entry_gone(read)
    elif data[1] == ofp.OFPT_PORT_STATUS:
        wire.port_state(1, read.desc)
    elif data[1] == ofp.OFPT_ERROR:
        wire.refused_cookie(read)


async def _connection(data: bytes) -> None:
    reader = asyncio.StreamReader()
    reader.feed_data(data)
    reader.feed_eof()
    writer = asyncio.StreamWriter(_Nowhere(), asyncio.Protocol(), reader, asyncio.get_running_loop())
    channel = Channel(reader, writer, _lines)
    with contextlib.suppress(SwitchLost):
        await channel.join()
        nothing = SwitchEvents(lambda *_: True, *[lambda *_: None] * 4)
        await channel.serve(nothing)
    others = asyncio.all_tasks() - {asyncio.current_task()}
    await asyncio.gather(*others, return_exceptions=True)  # they have been cancelled
