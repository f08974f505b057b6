"""Switches that connect to a controller as real ones do, over sockets, with cables and hosts between them.

They hold entries and forward nothing but what the controller sends out: enough for all that is between a
controller and its callers. What frames do is in `switches`, and in tests/lab with a real Open vSwitch.
"""

import contextlib
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from mpx_controller.graph import Graph
from mpx_controller.network.discovery_frame import is_discovery
from os_ken.ofproto import ofproto_parser, ofproto_protocol
from os_ken.ofproto import ofproto_v1_3 as ofp
from os_ken.ofproto import ofproto_v1_3_parser as parser
from switches import answer_of

PROTOCOL = ofproto_protocol.ProtocolDesc(version=4)


class WireSwitch:
    """One switch. What it is told to send out of a port goes to `cables` or `bridged`, where another's is."""

    def __init__(self, connection: socket.socket, number: int, ports: list[int]) -> None:
        self.number, self.ports = number, ports
        self.tables = 254
        self.refused: set[int] = set()  # TCP ports for which it has no room
        self.confirms = True  # whether it answers barriers
        self.answers_echoes = True
        self.totals = [(ofp.OFPT_MULTIPART_REPLY, total())]  # what it answers who asks for totals
        self.asked_totals = 0
        self.entries: dict[tuple[object, ...], object] = {}
        self.cables: dict[int, tuple[WireSwitch, int]] = {}
        self.bridged: dict[int, tuple[WireSwitch, int]] = {}
        self.hosts: dict[int, str] = {}
        self._connection = connection
        self._sending = threading.Lock()
        self._echoes: dict[int, Callable[[], None]] = {}
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def greet(self) -> None:
        """Say hello: before any other may hand us a frame, as that must not be our first message."""
        with contextlib.suppress(OSError):  # we are not let in
            self.send(ofp.OFPT_HELLO, 0)

    def start(self) -> None:
        self._thread.start()

    def send(self, kind: int, xid: int, body: bytes = b"") -> None:
        with self._sending:
            self._connection.sendall(struct.pack("!BBHI", 4, kind, 8 + len(body), xid) + body)

    def frame_in(self, port: int, frame: bytes) -> None:
        """Hand the controller a frame that came in on a port."""
        matched = struct.pack("!HHII4x", 1, 12, 0x80000004, port)
        head = struct.pack("!IHBBQ", ofp.OFP_NO_BUFFER, len(frame), ofp.OFPR_ACTION, 0, 0)
        self.send(ofp.OFPT_PACKET_IN, 0, head + matched + b"\0\0" + frame)

    def carrier(self, port: int, *, up: bool) -> None:
        """Tell the controller that a port has lost its carrier, or has it again."""
        state = 0 if up else ofp.OFPPS_LINK_DOWN
        self.send(ofp.OFPT_PORT_STATUS, 0, struct.pack("!B7x", ofp.OFPPR_MODIFY) + self._port(port, state))

    def echo(self, answered: Callable[[], None]) -> None:
        """Ask the controller for an echo; `answered` is called when it comes."""
        xid = len(self._echoes) + 1
        self._echoes[xid] = answered
        self.send(ofp.OFPT_ECHO_REQUEST, xid)

    @property
    def is_connected(self) -> bool:
        return self._thread.is_alive()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)
        self._connection.close()
        self._thread.join(10)

    def _serve(self) -> None:
        stream = self._connection.makefile("rb")
        try:
            while header := stream.read(8):
                version, kind, length, xid = struct.unpack("!BBHI", header)
                if version != ofp.OFP_VERSION:  # an alert of TLS, say
                    return
                self._told(kind, xid, header, stream.read(length - 8))
        except (OSError, ValueError):  # the connection has ended
            pass

    def _told(self, kind: int, xid: int, header: bytes, body: bytes) -> None:
        if kind == ofp.OFPT_FEATURES_REQUEST:
            self.send(
                ofp.OFPT_FEATURES_REPLY, xid, struct.pack("!QIBB2xII", self.number, 0, self.tables, 0, 0, 0)
            )
        elif kind == ofp.OFPT_ECHO_REQUEST:
            if self.answers_echoes:
                self.send(ofp.OFPT_ECHO_REPLY, xid, body)
        elif kind == ofp.OFPT_ECHO_REPLY:
            self._echoes[xid]()
        elif kind == ofp.OFPT_BARRIER_REQUEST:
            if self.confirms:
                self.send(ofp.OFPT_BARRIER_REPLY, xid)
        elif kind == ofp.OFPT_MULTIPART_REQUEST:
            (asked,) = struct.unpack_from("!H", body)
            if asked == ofp.OFPMP_AGGREGATE:
                for answer, told in self.totals:
                    self.send(answer, xid, told)
                self.asked_totals += 1
            else:
                told = self._described() if asked == ofp.OFPMP_PORT_DESC else b""
                self.send(ofp.OFPT_MULTIPART_REPLY, xid, struct.pack("!HH4x", asked, 0) + told)
        elif kind == ofp.OFPT_FLOW_MOD:
            message = parser.msg_parser(PROTOCOL, *ofproto_parser.header(header), header + body)
            key = (message.table_id, message.priority, tuple(sorted(message.match.items())))
            if message.command != ofp.OFPFC_ADD:
                self.entries.pop(key, None)
            elif self.refused.isdisjoint({message.match.get("tcp_src"), message.match.get("tcp_dst")}):
                self.entries[key] = message
            else:
                why = struct.pack("!HH", ofp.OFPET_FLOW_MOD_FAILED, ofp.OFPFMFC_TABLE_FULL)
                self.send(ofp.OFPT_ERROR, xid, why + (header + body)[:64])
        elif kind == ofp.OFPT_PACKET_OUT:
            (length,) = struct.unpack_from("!H", body, 8)
            for at in range(16, 16 + length, 16):  # each sends it out of one port
                self._send_out(*struct.unpack_from("!I", body, at + 4), body[16 + length :])

    def _send_out(self, port: int, frame: bytes) -> None:
        if port in self.cables:
            other, there = self.cables[port]
            other.frame_in(there, frame)
        elif port in self.bridged and not is_discovery(frame):
            other, there = self.bridged[port]
            other.frame_in(there, frame)
        elif port in self.hosts and (said := answer_of(self.hosts[port], frame)) is not None:
            self.frame_in(port, said)

    def _described(self) -> bytes:
        return b"".join(self._port(port, 0) for port in self.ports)

    def _port(self, port: int, state: int) -> bytes:
        return struct.pack(
            "!I4x6s2x16sIIIIIIII",
            port,
            bytes([14, 0, 0, 0, self.number % 256, port % 256]),
            f"port{port}".encode(),
            *(0, state, 0, 0, 0, 0, 10_000_000, 0),
        )


def total(flags: int = 0, kind: int = ofp.OFPMP_AGGREGATE) -> bytes:
    """Return the body of an answer to who asks for totals: nothing has been counted."""
    return struct.pack("!HH4x", kind, flags) + (bytes(24) if kind == ofp.OFPMP_AGGREGATE else b"")


@contextmanager
def wire_wan(
    openflow_port: int,
    graph: Graph,
    hosts: dict[str, int],
    tls: ssl.SSLContext | None = None,
    tables: int = 254,
) -> Iterator[dict[int, WireSwitch]]:
    """Have the switches of a graph connect; each host is at port 1000 of its switch, and has not spoken."""
    switches: dict[int, WireSwitch] = {}
    try:
        for number in sorted(graph.switches):
            ports = [link.start.number for link in graph.links if link.start.switch == number]
            connection = socket.create_connection(("127.0.0.1", openflow_port), 30)
            connection.settimeout(None)
            if tls is not None:
                connection = tls.wrap_socket(connection)
            there = [host for host, switch in hosts.items() if switch == number]
            switches[number] = WireSwitch(connection, number, [*ports, *([1000] if there else [])])
            switches[number].tables = tables
            switches[number].hosts = dict.fromkeys([1000], there[0]) if there else {}
        for link in graph.links:
            switches[link.start.switch].cables[link.start.number] = switches[link.end.switch], link.end.number
        for switch in switches.values():
            switch.greet()
        for switch in switches.values():
            switch.start()
        yield switches
    finally:
        for switch in switches.values():
            switch.close()


def held(switches: dict[int, WireSwitch], port: int) -> list[int]:
    """Return the switches that hold entries of a stream."""
    mine = {("tcp_src", port), ("tcp_dst", port)}
    return [
        number
        for number, switch in sorted(switches.items())
        if any(mine.intersection(fields) for *_, fields in list(switch.entries))  # type: ignore[call-overload]
    ]
