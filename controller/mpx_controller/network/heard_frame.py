"""What a frame that a switch hands us tells of who sent it."""

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from os_ken.lib.packet import arp, ethernet, icmpv6, ipv6, packet

NOBODY = ("0.0.0.0", "::")
FRAMES = 4096  # what these told is kept


class Told(NamedTuple):
    """A hardware address, and an IP address that it has."""

    hardware: str
    address: str | None


@lru_cache(FRAMES)  # hosts say the same again and again, and to read it takes as long as all else
def told_by(data: bytes) -> tuple[Told, ...]:
    """Return what an ARP frame, or a neighbour solicitation or advertisement, tells; nothing for others."""
    try:
        parts = packet.Packet(data)
        return tuple(each for each in _told(parts) if _one_host(each.hardware))
    except Exception:  # os-ken has no one error for frames that are broken
        return ()


def _told(parts: packet.Packet) -> Iterator[Told]:
    frame, question, neighbour = (
        parts.get_protocol(kind) for kind in (ethernet.ethernet, arp.arp, icmpv6.icmpv6)
    )
    if frame is None:
        return
    if question is not None and question.src_mac == frame.src:
        yield Told(frame.src, None if question.src_ip in NOBODY else question.src_ip)
    elif neighbour is not None and neighbour.type_ == icmpv6.ND_NEIGHBOR_SOLICIT:
        sender = parts.get_protocol(ipv6.ipv6).src
        yield Told(frame.src, None if sender in NOBODY else sender)
    elif neighbour is not None and neighbour.type_ == icmpv6.ND_NEIGHBOR_ADVERT:
        yield Told(frame.src, neighbour.data.dst)


def _one_host(hardware: str) -> bool:
    """Whether it is the address of one interface, not of a group."""
    return not int(hardware[:2], 16) & 1
