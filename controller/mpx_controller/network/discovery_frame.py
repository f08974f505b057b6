"""The frames by which links are found: LLDP (link layer discovery protocol), signed and with a time.

A switch is told to send one out of each of its ports; the switch at the other end of the link hands it to us.
The signature keeps one host from making up links, and so from drawing traffic to itself. It says who has sent
a frame, and not how it has come: two hosts that pass such frames on to each other at once look like a link.

Bridges do not hand LLDP on. So there are questions to all as well, which tell the same; they are signed
otherwise, so that nobody makes one of a link of them.
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
TTL_S = 120  # for others that listen; we have a limit of our own
BODY = struct.Struct("!QId")  # datapath id, port number, when it was sent
SIGNATURE_BYTES = 16
LLDP: bytes = ETH_TYPE_LLDP.to_bytes(2)
ETH_TO_ALL = 0x8942  # as other controllers have it for the same purpose
TO_ALL = b"\xff" * 6
HEAD = struct.Struct("!6s6sH")
LEAST_BYTES, MOST_BYTES = 60, 1518  # of a frame
_TLV_HEAD, _TLV_LENGTHS = 2, 1 << 9  # seven bits of type, nine of length (IEEE 802.1AB)
_ORGANIZATION = 127  # the type of what an organization tells


class Found(NamedTuple):
    """What such a frame tells."""

    sender: Port
    sent_s: float


def discovery_frame(sender: Port, hardware: str, now_s: float, secret: bytes) -> bytes:
    """Return the frame to send out of `sender`, whose hardware address is `hardware`."""
    body = BODY.pack(sender.switch, sender.number, now_s)
    told = lldp.lldp(
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
    made.add_protocol(told)
    made.serialize()
    return bytes(made.data)


def to_all_frame(sender: Port, hardware: str, now_s: float, secret: bytes) -> bytes:
    """Return the question to all to send out of `sender`, whose hardware address is `hardware`."""
    body = BODY.pack(sender.switch, sender.number, now_s)
    head = HEAD.pack(TO_ALL, mac_text.haddr_to_bin(hardware), ETH_TO_ALL)
    return (head + body + _signature(head[-2:] + body, secret)).ljust(LEAST_BYTES, b"\0")


def is_to_all(data: bytes) -> bool:
    """Whether it is a question to all, ours or another's."""
    return data[12:14] == ETH_TO_ALL.to_bytes(2)


def read_to_all_frame(data: bytes, secret: bytes) -> Found | None:
    """Return what a question to all of ours tells; None for all others."""
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
    """Return what a frame of ours tells; None for all others, and for one that somebody else has signed."""
    if not is_discovery(data):
        return None
    at, end = HEAD.size, min(len(data), MOST_BYTES)
    while at + _TLV_HEAD <= end:  # read here: os-ken would copy the rest of the frame for each of its TLVs
        kind, length = divmod(int.from_bytes(data[at : at + _TLV_HEAD]), _TLV_LENGTHS)
        told = data[at + _TLV_HEAD : at + _TLV_HEAD + length]
        body, signature = told[len(OURS) : len(OURS) + BODY.size], told[len(OURS) + BODY.size :]
        is_one = kind == _ORGANIZATION and told.startswith(OURS) and len(body) == BODY.size
        if is_one and hmac.compare_digest(signature, _signature(body, secret)):
            switch, number, sent_s = BODY.unpack(body)
            return Found(Port(switch, number), sent_s)
        at += _TLV_HEAD + length
    return None


def _signature(body: bytes, secret: bytes) -> bytes:
    return hmac.digest(secret, body, "sha256")[:SIGNATURE_BYTES]


def hardware_address(text: str | bytes) -> str:
    """Return a hardware address as lower-case text with colons."""
    return text.lower() if isinstance(text, str) else str(mac_text.haddr_to_str(text))
