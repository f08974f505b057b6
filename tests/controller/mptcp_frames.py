"""Frames of Multipath TCP: as Linux 6.18 sent them (version 1), and built by hand."""

import hashlib
import struct

from os_ken.lib.packet import ethernet, ipv4, packet, tcp
from switches import address, hardware

# A connection of 10.9.0.1 to 10.9.0.2 port 5001, "hello" over it, a subflow from 10.9.0.3, and its ends.
SYN = bytes.fromhex(
    "02000000000b02000000000a0800450000402fd640004006f6cd0a0900010a090002e9ba1389013169ef00000000b002faf0"
    "14470000020405b40402080a9fa1a869000000000103030a1e040101"
)
ANSWER = bytes.fromhex(
    "02000000000a02000000000b080045000048000040004006269c0a0900020a0900011389e9baec6888fd013169f0d012fe88"
    "144f0000020405b40402080acf40ed4e9fa1a8690103030a1e0c0101fdd14e6a9934aaf7"
)
THIRD = bytes.fromhex(
    "02000000000b02000000000a0800450000482fd740004006f6c40a0900010a090002e9ba1389013169f0ec6888fed010003f"
    "144f00000101080a9fa1a869cf40ed4e1e140101104a27e795f8c113fdd14e6a9934aaf7"
)
WITH_DATA = bytes.fromhex(
    "02000000000b02000000000a0800450000512fd840004006f6ba0a0900010a090002e9ba1389013169f0ec6888fee018003f"
    "145800000101080a9fa1a869cf40ed4e1e160101104a27e795f8c113fdd14e6a9934aaf70005010168656c6c6f"
)
JOIN = bytes.fromhex(
    "02000000000b02000000000a080045000048584c40004006ce4d0a0900030a090002b1271389a3e03d2000000000d002faf0"
    "14510000020405b40402080a8f7f27ec000000000103030a1e0c10014be784569a08fdf5"
)
JOIN_ANSWER = bytes.fromhex(
    "02000000000a02000000000b08004500004c00004000400626960a0900020a0900031389b127c9986808a3e03d21e012fe88"
    "14550000020405b40402080a7f910e058f7f27ec0103030a1e101000970bc675b50c8e2c9c90b55d"
)
JOIN_THIRD = bytes.fromhex(
    "02000000000b02000000000a08004500004c584d40004006ce480a0900030a090002b1271389a3e03d21c9986809e010003f"
    "145500000101080a8f7f27ec7f910e051e181000e2932d51dc47f3e8b6012a97dbfbe647ea0b95e5"
)
DATA = bytes.fromhex(
    "02000000000a02000000000b080045000040669140004006c0120a0900020a0900011389e9baec6888fe013169f5b010003f"
    "144700000101080acf40ed4e9fa1a8691e0c20039f1e800ae0a4de20"
)
FINISH = bytes.fromhex(
    "02000000000b02000000000a08004500003c2fda40004006f6cd0a0900010a090002e9ba1389013169f5ec6888fea011003f"
    "144300000101080a9fa1a996cf40ee7b1e082001272e6801"
)
SYN_IPV6 = bytes.fromhex(
    "02000000000b02000000000a86dd600d58c4002c0640fd090000000000000000000000000001fd0900000000000000000000"
    "00000002a4641389aa7b32c200000000b002fd20fa480000020405a00402080abb234824000000000103030a1e040101"
)
ALL = (SYN, ANSWER, THIRD, WITH_DATA, JOIN, JOIN_ANSWER, JOIN_THIRD, DATA, FINISH, SYN_IPV6)
KEYS = 1173794528490471699, 18289485781472160503  # of who connected, and of who listened


def capable(version: int, *keys: int) -> bytes:
    """Return a MP_CAPABLE with so many keys."""
    length = 4 + 8 * len(keys)
    return struct.pack(f"!BBBB{len(keys)}Q", 30, length, version, 0x81 if version == 0 else 0x01, *keys)


def join(token: int) -> bytes:
    """Return the MP_JOIN of a SYN."""
    return struct.pack("!BBBBII", 30, 12, 0x10, 1, token, 7)


JOINED = struct.pack("!BBBBQI", 30, 16, 0x10, 1, 5, 9)  # the answer to it


def token(key: int, version: int) -> int:
    """Return the token of a key, as the RFCs have it."""
    name = "sha1" if version == 0 else "sha256"
    return int(hashlib.new(name, struct.pack("!Q", key)).hexdigest()[:8], 16)


def segment(
    source: str,
    sink: str,
    ports: tuple[int, int],
    bits: int,
    option: bytes = b"",
    addresses: tuple[str | None, str | None] = (None, None),
) -> bytes:
    """Return a frame from one host to another; `addresses`: others than their first."""
    made = packet.Packet()
    made.add_protocol(ethernet.ethernet(hardware(sink), hardware(source), 0x0800))
    src, dst = addresses
    made.add_protocol(ipv4.ipv4(src=src or address(source), dst=dst or address(sink), proto=6))
    made.add_protocol(tcp.tcp(src_port=ports[0], dst_port=ports[1], bits=bits, option=bytearray(option)))
    made.serialize()
    return bytes(made.data)
