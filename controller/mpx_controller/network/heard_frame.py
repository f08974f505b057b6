"""The addresses that ARP and neighbour discovery announce. Frames may be hostile: any bytes can be read.

ARP (RFC 826) and neighbour discovery (RFC 4861), in Ethernet with up to two VLAN tags. Nothing behind the
addresses is parsed: os-ken would parse the whole frame, and some protocols without a bound.
"""

import ipaddress
import struct
from functools import lru_cache
from typing import NamedTuple

from mpx_controller.network.forwarding import ETH_ARP, ETH_IPV6

NOBODY = ("0.0.0.0", "::")
FRAMES = 4096  # whose result is cached
_LOOKED_AT = 96  # bytes: Ethernet with two tags, IPv6, and a neighbour's address
_TAGS, _TAG_BYTES = (b"\x81\x00", b"\x88\xa8"), 4
_ADDRESSES = 12  # bytes of hardware addresses, then the type
_ARP = struct.Struct("!HHBBH6s4s")
_ARP_OF = (1, 0x0800, 6, 4)  # of Ethernet and IPv4, and how long their addresses are
_IPV6 = struct.Struct("!IHBB16s16s")
_ICMPV6, _SOLICITATION, _ADVERTISEMENT = 58, 135, 136
_TARGET = 8  # bytes of ICMPv6 before the address that is asked for, or announced


class Announcement(NamedTuple):
    """A hardware address, and an IP address that it has."""

    hardware: str
    address: str | None


def announced_by(data: bytes) -> tuple[Announcement, ...]:
    """Return the announcement of an ARP frame, or of a neighbour solicitation or advertisement, if any."""
    return _announced_by(data[:_LOOKED_AT])


@lru_cache(FRAMES)  # hosts repeat themselves
def _announced_by(data: bytes) -> tuple[Announcement, ...]:
    hardware, at = data[6:_ADDRESSES], _ADDRESSES
    for _ in range(2):
        if data[at : at + 2] in _TAGS:
            at += _TAG_BYTES
    kind, packet = int.from_bytes(data[at : at + 2]), data[at + 2 :]
    try:
        announced = {ETH_ARP: _by_arp, ETH_IPV6: _by_neighbour}[kind](hardware, packet)
    except (struct.error, KeyError, ValueError):
        return ()
    is_one_host = not hardware[0] & 1  # the address of one interface, not of a group
    return (announced,) if announced is not None and is_one_host else ()


def _by_arp(hardware: bytes, packet: bytes) -> Announcement | None:
    *of, sender, address = _ARP.unpack_from(packet)
    if tuple(of[:4]) != _ARP_OF or sender != hardware:
        return None
    return _announcement(hardware, address)


def _by_neighbour(hardware: bytes, packet: bytes) -> Announcement | None:
    version, _, following, _, sender, _ = _IPV6.unpack_from(packet)
    message = packet[_IPV6.size :]
    target = message[_TARGET : _TARGET + 16]
    if version >> 28 != 6 or following != _ICMPV6 or len(target) < 16:
        return None
    if message[0] == _SOLICITATION:
        return _announcement(hardware, sender)
    return _announcement(hardware, target) if message[0] == _ADVERTISEMENT else None


def _announcement(hardware: bytes, packed: bytes) -> Announcement:
    address = str(ipaddress.ip_address(packed))
    return Announcement(hardware.hex(":"), None if address in NOBODY else address)
