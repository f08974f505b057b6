"""Parses the entries that a switch lists (OFPMP_FLOW), with the actions that ours have.

Only entries of ours are read, and of their instructions those that we give, with every length in them
checked. Those of others are passed over as a whole, whatever is in them. OpenFlow 1.3.5, sections 7.2.4,
7.2.5 and 7.3.5.2.
"""

import struct
from collections.abc import Iterator

from os_ken.ofproto import ofproto_v1_3 as ofp
from os_ken.ofproto import ofproto_v1_3_parser as parser

from mpx_controller.cookies import is_ours
from mpx_controller.flows import Counted, Entry, Match
from mpx_controller.message_check import MULTIPART_BODY, Malformed, match_end

_HEAD = struct.Struct("!HBxIIHHHH4xQQQ")
_ELEMENT = struct.Struct("!HH")  # type and length of an instruction, or of an action
_LEAST = 8  # bytes of each
_ACTIONS = 8  # where those of an instruction begin
_HAVE_ACTIONS = (ofp.OFPIT_WRITE_ACTIONS, ofp.OFPIT_APPLY_ACTIONS)


def listed_entries(data: bytes) -> Iterator[Counted]:
    """Yield the entries of ours in a whole OFPMP_FLOW reply; raises Malformed."""
    at = MULTIPART_BODY
    while at < len(data):
        if at + _HEAD.size > len(data):
            raise Malformed("an entry is cut short")
        length, table, _, _, priority, idle_s, _, _, cookie, packets, octets = _HEAD.unpack_from(data, at)
        end = at + length
        if length < _HEAD.size + _LEAST or end > len(data):
            raise Malformed(f"an entry of {length} bytes does not fit")
        if is_ours(cookie):
            instructions = match_end(data, at + _HEAD.size, end)
            outputs, goto = _instructions(data, instructions, end)
            fields = read_match(data, at + _HEAD.size)
            entry = Entry(table, priority, fields, cookie, tuple(outputs), goto, idle_s)
            yield Counted(entry, packets, octets)
        at = end


def read_match(data: bytes, at: int) -> Match:
    """Return a match whose lengths are checked; raises Malformed for values that os-ken does not take."""
    try:
        return tuple(sorted(parser.OFPMatch.parser(data, at).items()))
    except Exception as error:  # os-ken has no one error for what is broken
        raise Malformed(f"a match cannot be read: {error}") from None


def _instructions(data: bytes, at: int, end: int) -> tuple[list[int], int | None]:
    """Return the ports that an entry outputs to, and the table where it goes on."""
    outputs: list[int] = []
    goto = None
    for kind, start, stop in _elements(data, at, end):
        if kind == ofp.OFPIT_GOTO_TABLE:
            goto = data[start + _ELEMENT.size]
        elif kind in _HAVE_ACTIONS:
            for action, first, last in _elements(data, start + _ACTIONS, stop):
                if action == ofp.OFPAT_OUTPUT and last - first >= ofp.OFP_ACTION_OUTPUT_SIZE:
                    outputs.append(int.from_bytes(data[first + 4 : first + 8]))
    return outputs, goto


def _elements(data: bytes, at: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Yield the type of each instruction or action, where it begins, and where it ends."""
    while at < end:
        if at + _LEAST > end:
            raise Malformed("an instruction or action is cut short")
        kind, length = _ELEMENT.unpack_from(data, at)
        if length < _LEAST or at + length > end:
            raise Malformed(f"an instruction or action of {length} bytes does not fit")
        yield kind, at, at + length
        at += length
