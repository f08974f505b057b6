"""Reads the begin and the end of TCP connections in frames. They may be hostile: any bytes can be read."""

import ipaddress
import struct
from typing import NamedTuple

from mpx_controller.mptcp.option import Capable, Join, mptcp_option
from mpx_controller.network.forwarding import ETH_IPV4, ETH_IPV6
from mpx_controller.steering import TCP

FIN, SYN, RST, ACK = 0x01, 0x02, 0x04, 0x10
_ETHERNET = struct.Struct("!6s6sH")
_IPV6_BYTES = 40
_TCP = struct.Struct("!HHIIBB")


class FourTuple(NamedTuple):
    """Addresses and ports of a TCP connection, as its first sender has them."""

    source: str
    source_port: int
    sink: str
    sink_port: int

    @property
    def reverse(self) -> "FourTuple":
        """The same as seen from the other side."""
        return FourTuple(self.sink, self.sink_port, self.source, self.source_port)

    def __str__(self) -> str:
        source, sink = (f"[{each}]" if ":" in each else each for each in (self.source, self.sink))
        return f"{source}:{self.source_port}-{sink}:{self.sink_port}"


class Segment(NamedTuple):
    """A TCP segment: hardware addresses, addresses and ports, flags, and the option of Multipath TCP."""

    sender: str
    receiver: str
    ends: FourTuple
    flags: int
    option: Capable | Join | None


def is_tcp(data: bytes) -> bool:
    """Whether a frame carries TCP, by its header."""
    ipv4, ipv6 = (kind.to_bytes(2, "big") + bytes([TCP]) for kind in (ETH_IPV4, ETH_IPV6))
    return data[12:14] + data[23:24] == ipv4 or data[12:14] + data[20:21] == ipv6


def read_segment(data: bytes) -> Segment | None:
    """Return the TCP segment of a frame; None for all else."""
    try:
        receiver, sender, kind = _ETHERNET.unpack_from(data)
        packet = data[_ETHERNET.size :]
        found = {ETH_IPV4: _of_ipv4, ETH_IPV6: _of_ipv6}[kind](packet)
        if found is None:
            return None
        source, sink, segment = found
        source_port, sink_port, _, _, offset, flags = _TCP.unpack_from(segment)
    except (struct.error, KeyError, IndexError):
        return None
    options = segment[20 : (offset >> 4) * 4]
    ends = FourTuple(source, source_port, sink, sink_port)
    return Segment(sender.hex(":"), receiver.hex(":"), ends, flags, mptcp_option(options))


def _of_ipv4(packet: bytes) -> tuple[str, str, bytes] | None:
    length = (packet[0] & 0xF) * 4
    is_first = not int.from_bytes(packet[6:8], "big") & 0x1FFF
    if packet[0] >> 4 != 4 or length < 20 or packet[9] != TCP or not is_first or len(packet) < 20:
        return None
    source, sink = (str(ipaddress.IPv4Address(packet[at : at + 4])) for at in (12, 16))
    return source, sink, packet[length:]


def _of_ipv6(packet: bytes) -> tuple[str, str, bytes] | None:
    if packet[0] >> 4 != 6 or packet[6] != TCP or len(packet) < _IPV6_BYTES:
        return None
    source, sink = (str(ipaddress.IPv6Address(packet[at : at + 16])) for at in (8, 24))
    return source, sink, packet[_IPV6_BYTES:]
