"""Switches, cables and hosts without a clock: what an OpenFlow switch does with each frame, to the letter."""

from collections import deque
from collections.abc import Iterable

from mpx_controller.flows import CONTROLLER, Add, Entry, Key, Message, Messages, Remove, SendOut
from mpx_controller.graph import Graph, Port
from mpx_controller.mptcp.multipath_tcp import MultipathTcp
from mpx_controller.mptcp.segment import is_tcp
from mpx_controller.network.discovery_frame import ETH_TO_ALL
from mpx_controller.network.forwarding import ETH_LLDP
from mpx_controller.network.network import Network
from mpx_controller.network.ports import PortState
from os_ken.lib.packet import arp, ethernet, icmpv6, ipv4, ipv6, packet, tcp

MOST_HOPS = 400  # of one frame and its copies: more of them circle


class Switch:
    """Flow tables."""

    def __init__(self) -> None:
        self.entries: dict[Key, Entry] = {}

    def take(self, message: Message) -> None:
        if isinstance(message, Add):
            self.entries[message.entry.key] = message.entry
        elif isinstance(message, Remove):
            there = self.entries.get(message.key)
            if there is not None and there.cookie == message.cookie:
                del self.entries[message.key]

    def outputs(self, in_port: int, data: bytes) -> list[int]:
        fields = {**fields_of(data), "in_port": in_port}
        found: list[int] = []
        table: int | None = 0
        while table is not None:
            fitting = [
                entry
                for entry in self.entries.values()
                if entry.table == table and all(_fits(fields.get(name), want) for name, want in entry.match)
            ]
            if not fitting:
                break
            best = max(fitting, key=lambda entry: entry.priority)
            assert sum(entry.priority == best.priority for entry in fitting) == 1, "undefined by OpenFlow"
            found += [port for port in best.outputs if port != in_port]
            table = best.goto
        return found


def _fits(value: object, want: object) -> bool:
    if isinstance(want, tuple):
        wanted, mask = want
        return isinstance(value, int) and value & mask == wanted
    return value == want


def fields_of(data: bytes) -> dict[str, object]:
    """Return the fields of a frame that OpenFlow can match on."""
    parts = packet.Packet(data)
    frame = parts.get_protocol(ethernet.ethernet)
    fields: dict[str, object] = {"eth_dst": frame.dst, "eth_src": frame.src, "eth_type": frame.ethertype}
    for version, name in ((ipv4.ipv4, "ipv4"), (ipv6.ipv6, "ipv6")):
        if header := parts.get_protocol(version):
            fields |= {f"{name}_src": header.src, f"{name}_dst": header.dst}
            fields["ip_proto"] = header.proto if name == "ipv4" else header.nxt
    if segment := parts.get_protocol(tcp.tcp):
        fields |= {"tcp_src": segment.src_port, "tcp_dst": segment.dst_port, "tcp_flags": segment.bits}
    if told := parts.get_protocol(icmpv6.icmpv6):
        fields["icmpv6_type"] = told.type_
    return fields


class Wan:
    """A network of simulated switches, with hosts at ports, steered by a Network of ours."""

    def __init__(self, graph: Graph, hosts: dict[str, int], *, forwarding_by: Network | None = None) -> None:
        self.now_s = 100.0
        self.graph = graph
        self.switches = {switch: Switch() for switch in graph.switches}
        self.cables = {link.start: link.end for link in graph.links}
        self.hosts = {Port(switch, 1000 + n): name for n, (name, switch) in enumerate(sorted(hosts.items()))}
        self.received: list[tuple[str, bytes]] = []
        self.frames_in = 0
        self.answering = False  # whether hosts answer who asks for their address
        self.bridges: list[
            set[Port]
        ] = []  # ports that an ordinary bridge joins; the hosts there are beyond it
        self.cut: set[Port] = set()  # where frames are lost without anybody being told
        self.network: Network | None = forwarding_by
        self.mptcp: MultipathTcp | None = None

    def connect(self, network: Network, switches: Iterable[int] | None = None) -> None:
        """Have the switches connect to a controller."""
        self.network = network
        for switch in sorted(self.switches if switches is None else switches):
            found = dict(self.switches[switch].entries)
            self.do(network.switch_up(switch, self.ports(switch), found, self.now_s))

    def ports(self, switch: int) -> list[PortState]:
        here = sorted(port for port in (*self.cables, *self.hosts) if port.switch == switch)
        return [PortState(port, f"0e:00:00:00:{port.switch:02x}:{port.number % 256:02x}") for port in here]

    def do(self, messages: Messages) -> None:
        for switch, message in messages:
            if isinstance(message, SendOut):
                self.flow([(Port(switch, number), message.data) for number in message.outputs])
            else:
                self.switches[switch].take(message)

    def flow(self, leaving: Iterable[tuple[Port, bytes]]) -> list[Port]:
        """Move frames that leave ports until they have arrived; return all ports that they have left by."""
        waiting, left = deque(leaving), []
        while waiting:
            port, data = waiting.popleft()
            left.append(port)
            assert len(left) < MOST_HOPS, "frames circle"
            if port in self.cut:
                continue
            if port in self.cables:
                waiting += self._forwarded(self.cables[port], data)
            elif (ethertype := fields_of(data)["eth_type"]) != ETH_LLDP:
                beyond = self._beyond(port)
                waiting += self._entering(beyond - {port}, data)
                for host in (self.hosts[each] for each in sorted(beyond) if ethertype != ETH_TO_ALL):
                    self.received.append((host, data))
                    if self.answering and (said := answer_of(host, data)) is not None:
                        waiting += self._entering(beyond, said)
        return left

    def _beyond(self, port: Port) -> set[Port]:
        """Return the ports that lead to the same hosts."""
        return next((joined for joined in self.bridges if port in joined), {port}) & self.hosts.keys()

    def _entering(self, ports: Iterable[Port], data: bytes) -> list[tuple[Port, bytes]]:
        return [
            each for port in sorted(ports) if port not in self.cut for each in self._forwarded(port, data)
        ]

    def _forwarded(self, at: Port, data: bytes) -> list[tuple[Port, bytes]]:
        outputs = self.switches[at.switch].outputs(at.number, data)
        if CONTROLLER in outputs and self.network is not None:
            self.frames_in += 1
            heard = self.mptcp if self.mptcp is not None and is_tcp(data) else self.network
            self.do(heard.frame_in(at, data, self.now_s))
        return [(Port(at.switch, number), data) for number in outputs if number != CONTROLLER]

    def send(self, host: str, data: bytes) -> list[Port]:
        """Have a host send a frame; return the ports that it and its copies leave by."""
        port = next(port for port, name in self.hosts.items() if name == host)
        return self.flow(self._entering(self._beyond(port), data))

    def switches_passed(self, host: str, data: bytes) -> list[int]:
        """Return the switches that a host's frame passes."""
        return [port.switch for port in self.send(host, data)]

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        until = self.now_s + seconds
        while self.network is not None and self.network.next_s() <= until:
            self.now_s = max(self.now_s, self.network.next_s()) + 1e-6
            self.do(self.network.tick(self.now_s))
            if self.mptcp is not None:
                self.do(self.mptcp.network_changed(self.now_s))
        self.now_s = max(self.now_s, until)

    def carrier(self, port: Port, *, up: bool) -> None:
        """A cable is pulled out or put in; both of its ends notice."""
        assert self.network is not None
        for end in {port, self.cables.get(port, port)}:
            (self.cut.discard if up else self.cut.add)(end)
            self.do(self.network.port_changed(PortState(end, "0e:00:00:00:00:00", up=up), self.now_s))


def hardware(host: str) -> str:
    return f"02:00:00:00:00:{sum(host.encode()) % 256:02x}"


def address(host: str) -> str:
    return f"10.0.0.{sum(host.encode()) % 256}"


def address6(host: str) -> str:
    return f"fd00::{sum(host.encode()) % 256:x}"


def arp_from(host: str, target: str = "10.0.0.254") -> bytes:
    """A question to all."""
    made = packet.Packet()
    made.add_protocol(ethernet.ethernet("ff:ff:ff:ff:ff:ff", hardware(host), 0x0806))
    made.add_protocol(arp.arp(src_mac=hardware(host), src_ip=address(host), dst_ip=target))
    made.serialize()
    return bytes(made.data)


def answer_of(host: str, question: bytes) -> bytes | None:
    """What a host answers whoever asks for its address, as Linux does, also who has none itself."""
    asked = packet.Packet(question)
    made = packet.Packet()
    frame, who, neighbour = (asked.get_protocol(each) for each in (ethernet.ethernet, arp.arp, icmpv6.icmpv6))
    if who is not None and who.opcode == arp.ARP_REQUEST and who.dst_ip == address(host):
        made.add_protocol(ethernet.ethernet(frame.src, hardware(host), 0x0806))
        made.add_protocol(
            arp.arp(opcode=arp.ARP_REPLY, src_mac=hardware(host), src_ip=who.dst_ip, dst_mac=frame.src)
        )
    elif neighbour is not None and neighbour.data.dst == address6(host):
        sender = asked.get_protocol(ipv6.ipv6).src
        assert sender != "::", "somebody is about to take the address"
        made.add_protocol(ethernet.ethernet(neighbour.data.option.hw_src, hardware(host), 0x86DD))
        made.add_protocol(ipv6.ipv6(src=address6(host), dst=sender, nxt=58, hop_limit=255))
        told = icmpv6.nd_neighbor(res=6, dst=address6(host))
        made.add_protocol(icmpv6.icmpv6(icmpv6.ND_NEIGHBOR_ADVERT, data=told))
    else:
        return None
    made.serialize()
    return bytes(made.data)


def tcp_frame(source: str, sink: str, ports: tuple[int, int], bits: int = tcp.TCP_ACK) -> bytes:
    made = packet.Packet()
    made.add_protocol(ethernet.ethernet(hardware(sink), hardware(source), 0x0800))
    made.add_protocol(ipv4.ipv4(src=address(source), dst=address(sink), proto=6))
    made.add_protocol(tcp.tcp(src_port=ports[0], dst_port=ports[1], bits=bits))
    made.serialize()
    return bytes(made.data)
