"""Checks messages of switches before os-ken parses them: the type of message, and every length in it.

os-ken's parsers go on by the lengths that a message names: one of 0 is an endless loop, one too large reads
into what follows. So only the kinds that the controller needs are parsed, and of these only what has been
walked here. Lengths are those of OpenFlow 1.3.5, sections 7.1 to 7.4, in bytes.
"""

from os_ken.ofproto import ofproto_v1_3 as ofp

VERSION = ofp.OFP_VERSION
HEADER_BYTES = ofp.OFP_HEADER_SIZE
MATCH_HEAD = 4  # type and length of a match, or of an instruction
FIELD_HEAD = 4
MOST_FIELDS = 64  # of one match: OpenFlow 1.3 has 40, each at most once, and switches some of their own
FLOW_REMOVED_MATCH: int = HEADER_BYTES + 40  # where the match begins
MULTIPART_BODY: int = HEADER_BYTES + 8
_OXM = 1
_EXPERIMENTER_CLASS, _EXPERIMENTER_BYTES = b"\xff\xff", 5  # its number, and a value
_NEWEST = 0x06  # version of OpenFlow 1.5, which a switch may name in its first message
_HTTP = (b"GET ", b"HEAD", b"POST", b"PUT ", b"DELE", b"OPTI", b"PATC", b"CONN", b"PRI ")

# The kinds that are needed after the first message, and the least bytes of each.
LEAST_BYTES = {
    ofp.OFPT_ERROR: HEADER_BYTES + 4,
    ofp.OFPT_ECHO_REQUEST: HEADER_BYTES,
    ofp.OFPT_ECHO_REPLY: HEADER_BYTES,
    ofp.OFPT_FEATURES_REPLY: HEADER_BYTES + 24,
    ofp.OFPT_PACKET_IN: HEADER_BYTES + 16,
    ofp.OFPT_FLOW_REMOVED: FLOW_REMOVED_MATCH + MATCH_HEAD,
    ofp.OFPT_PORT_STATUS: HEADER_BYTES + 8 + ofp.OFP_PORT_SIZE,
    ofp.OFPT_MULTIPART_REPLY: MULTIPART_BODY,
    ofp.OFPT_BARRIER_REPLY: HEADER_BYTES,
}
MULTIPARTS = (ofp.OFPMP_FLOW, ofp.OFPMP_AGGREGATE, ofp.OFPMP_PORT_DESC)
_AGGREGATE_BYTES = 24


class NotNeeded(Exception):
    """It is not OpenFlow 1.3, or a message of a kind that no switch is asked for: the connection ends."""


class Malformed(Exception):
    """A message of a needed kind whose lengths do not fit together: it is not read."""


def check_head(head: bytes, *, first: bool) -> int:
    """Return the length of a whole message, by its first 8 bytes; raises NotNeeded.

    `first`: it is the first of its connection, which shows the protocol that is used.
    """
    version, kind, length = head[0], head[1], int.from_bytes(head[2:4])
    if first:
        if head[:2] == b"\x16\x03":
            raise NotNeeded("speaks TLS, and this port has none: see [openflow] certificate, or use tcp:")
        if head.startswith(_HTTP):
            raise NotNeeded("sends HTTP: callers connect to the port of --api, switches to this one")
        if kind != ofp.OFPT_HELLO or not 1 <= version <= _NEWEST or length < HEADER_BYTES:
            raise NotNeeded("does not speak OpenFlow")
        return length
    if version != VERSION:
        raise NotNeeded(f"speaks another version than OpenFlow 1.3 ({version:#x})")
    if length < HEADER_BYTES:
        raise NotNeeded(f"sends what is not OpenFlow: a message of {length} bytes")
    if kind not in LEAST_BYTES:
        raise NotNeeded(f"sends a message of type {kind}, which controllers do not receive")
    return length


def check_list(data: bytes) -> None:
    """Raise NotNeeded for a whole message that lists what no switch is asked for."""
    of = int.from_bytes(data[HEADER_BYTES : HEADER_BYTES + 2])
    if data[1] == ofp.OFPT_MULTIPART_REPLY and len(data) >= MULTIPART_BODY and of not in MULTIPARTS:
        raise NotNeeded(f"sends multipart type {of}, which controllers do not receive")


def check(data: bytes) -> None:
    """Raise Malformed where lengths in a whole message do not fit, NotNeeded for other lists."""
    kind = data[1]
    check_list(data)
    if len(data) < LEAST_BYTES[kind]:
        raise Malformed(f"a message of type {kind} has {len(data)} bytes, and at least {LEAST_BYTES[kind]}")
    if kind == ofp.OFPT_FLOW_REMOVED:
        match_end(data, FLOW_REMOVED_MATCH, len(data))
    elif kind == ofp.OFPT_MULTIPART_REPLY:
        of = int.from_bytes(data[HEADER_BYTES : HEADER_BYTES + 2])
        body = len(data) - MULTIPART_BODY
        if of == ofp.OFPMP_AGGREGATE and body < _AGGREGATE_BYTES:
            raise Malformed(f"totals have {_AGGREGATE_BYTES} bytes, not {body}")
        if of == ofp.OFPMP_PORT_DESC and body % ofp.OFP_PORT_SIZE:
            raise Malformed(f"ports have {ofp.OFP_PORT_SIZE} bytes each, and there are {body}")


def match_end(data: bytes, at: int, end: int) -> int:
    """Return where the match at `at` ends with its padding; raises Malformed unless it is within `end`."""
    kind, length = int.from_bytes(data[at : at + 2]), int.from_bytes(data[at + 2 : at + 4])
    padded = at + (length + 7) // 8 * 8
    if kind != _OXM or length < MATCH_HEAD or padded > end:
        raise Malformed(f"a match of type {kind} and {length} bytes does not fit")
    at, fields_end = at + MATCH_HEAD, at + length
    seen: set[tuple[bytes, int, bytes]] = set()
    while at < fields_end:
        of, is_experimenter = data[at : at + 2], data[at : at + 2] == _EXPERIMENTER_CLASS
        if at + FIELD_HEAD > fields_end or data[at + 3] < (_EXPERIMENTER_BYTES if is_experimenter else 1):
            raise Malformed("a field of a match has no value")
        field = of, data[at + 2] >> 1, data[at + 4 : at + 10] if is_experimenter else b""
        at += FIELD_HEAD + data[at + 3]
        if field in seen or len(seen) == MOST_FIELDS or at > fields_end:
            raise Malformed("the fields of a match do not fit, or one is there twice")
        seen.add(field)
    return padded
