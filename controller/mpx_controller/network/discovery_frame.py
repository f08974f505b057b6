"""Discovery frames: LLDP (link layer discovery protocol), signed and with a timestamp.

A switch sends one out of each of its ports, and the switch at the other end of the link forwards it to us.
The signature prevents a host from forging links, and so from attracting traffic. It proves the sender of a
frame, but not its path: two hosts that relay such frames to each other at once appear as a link.

Bridges do not forward LLDP. So there are broadcast discovery frames as well, with the same content; their
signature differs, so that they cannot be turned into those of a link.
"""

import hmac
import struct
from typing import NamedTuple

from os_ken.lib import mac as mac_text
from os_ken.lib.packet import ethernet, lldp, packet
from os_ken.lib.packet.ether_types import ETH_TYPE_LLDP

from mpx_controller.graph import Port

OUI = b"\x6d\x70\x78"
SUBTYPE = 1
OURS = OUI + bytes([SUBTYPE])
TTL_S = 120  # for other listeners; we have a limit of our own
BODY = struct.Struct("!QId")  # datapath id, port number, when it was sent
SIGNATURE_BYTES = 16
LLDP: bytes = ETH_TYPE_LLDP.to_bytes(2)
ETH_TO_ALL = 0x8942  # as other controllers have it for the same purpose
TO_ALL = b"\xff" * 6
HEAD = struct.Struct("!6s6sH")
LEAST_BYTES, MOST_BYTES = 60, 1518  # of a frame
_TLV_HEAD, _TLV_LENGTHS = 2, 1 << 9  # seven bits of type, nine of length (IEEE 802.1AB)
_ORGANIZATION = 127  # the type of an organization-specific TLV


class Found(NamedTuple):
    """The content of such a frame."""

    sender: Port
    sent_s: float


def discovery_frame(sender: Port, hardware: str, now_s: float, secret: bytes) -> bytes:
    """Return the frame to send out of `sender`, whose hardware address is `hardware`."""
    body = BODY.pack(sender.switch, sender.number, now_s)
    value = lldp.lldp(
        [
            lldp.ChassisID(
                subtype=lldp.ChassisID.SUB_LOCALLY_ASSIGNED, chassis_id=f"{sender.switch:016x}".encode()
            ),
            lldp.PortID(subtype=lldp.PortID.SUB_LOCALLY_ASSIGNED, port_id=str(sender.number).encode()),
            lldp.TTL(ttl=TTL_S),
            lldp.OrganizationallySpecific(oui=OUI, subtype=SUBTYPE, info=body + _signature(body, secret)),
            lldp.End(),
        ]
    )
    made = packet.Packet()
    made.add_protocol(
        ethernet.ethernet(dst=lldp.LLDP_MAC_NEAREST_BRIDGE, src=hardware, ethertype=ETH_TYPE_LLDP)
    )
    made.add_protocol(value)
    made.serialize()
    return bytes(made.data)


def to_all_frame(sender: Port, hardware: str, now_s: float, secret: bytes) -> bytes:
    """Return the broadcast discovery frame to send out of `sender`, whose hardware address is `hardware`."""
    body = BODY.pack(sender.switch, sender.number, now_s)
    head = HEAD.pack(TO_ALL, mac_text.haddr_to_bin(hardware), ETH_TO_ALL)
    return (head + body + _signature(head[-2:] + body, secret)).ljust(LEAST_BYTES, b"\0")


def is_to_all(data: bytes) -> bool:
    """Whether it is a broadcast discovery frame, ours or another's."""
    return data[12:14] == ETH_TO_ALL.to_bytes(2)


def read_to_all_frame(data: bytes, secret: bytes) -> Found | None:
    """Return the content of a broadcast discovery frame of ours; None for all others."""
    body, end = data[HEAD.size :][: BODY.size], HEAD.size + BODY.size
    signature = data[end : end + SIGNATURE_BYTES]
    if len(body) < BODY.size or not hmac.compare_digest(signature, _signature(data[12:14] + body, secret)):
        return None
    switch, number, sent_s = BODY.unpack(body)
    return Found(Port(switch, number), sent_s)


def is_discovery(data: bytes) -> bool:
    """Whether it is a frame of LLDP, ours or another's."""
    return data[12:14] == LLDP


def read_discovery_frame(data: bytes, secret: bytes) -> Found | None:
    """Return the content of a discovery frame of ours; None for all others, and for a wrong signature."""
    if not is_discovery(data):
        return None
    at, end = HEAD.size, min(len(data), MOST_BYTES)
    while at + _TLV_HEAD <= end:  # read here: os-ken would copy the rest of the frame for each of its TLVs
        kind, length = divmod(int.from_bytes(data[at : at + _TLV_HEAD]), _TLV_LENGTHS)
        value = data[at + _TLV_HEAD : at + _TLV_HEAD + length]
        body, signature = value[len(OURS) : len(OURS) + BODY.size], value[len(OURS) + BODY.size :]
        is_one = kind == _ORGANIZATION and value.startswith(OURS) and len(body) == BODY.size
        if is_one and hmac.compare_digest(signature, _signature(body, secret)):
            switch, number, sent_s = BODY.unpack(body)
            return Found(Port(switch, number), sent_s)
        at += _TLV_HEAD + length
    return None


def _signature(body: bytes, secret: bytes) -> bytes:
    return hmac.digest(secret, body, "sha256")[:SIGNATURE_BYTES]
