"""The option of TCP (kind 30) that identifies the subflows of Multipath TCP, and tokens.

Version 0 is RFC 6824, which nakasan had; version 1 is RFC 8684, which Linux speaks.
"""

import hashlib
from typing import NamedTuple

KIND = 30
CAPABLE, JOIN = 0, 1  # subtypes
_END, _NOTHING = 0, 1  # options of one byte
_KEYS = {4: 0, 12: 1, 20: 2, 22: 2, 24: 2}  # how many keys a MP_CAPABLE of so many bytes has, at byte 4
_JOIN_ASKS = 12  # bytes of a MP_JOIN in a SYN; the answer to it and the third packet have no token


class Capable(NamedTuple):
    """MP_CAPABLE: its sender opens a connection. `key` is the sender's, None in a SYN of version 1.

    `other` is the receiver's, which only the third packet of the handshake has.
    """

    version: int
    key: int | None = None
    other: int | None = None


class Join(NamedTuple):
    """MP_JOIN: its sender adds a subflow. `token` is of the receiver's key; only a SYN has it."""

    token: int | None = None


def mptcp_option(options: bytes) -> Capable | Join | None:
    """Return the first MP_CAPABLE or MP_JOIN among the options of a TCP header; None where there is none.

    Reading ends at a malformed option, as in the kernel.
    """
    at = 0
    while at < len(options) and options[at] != _END:
        if options[at] == _NOTHING:
            at += 1
            continue
        length = options[at + 1] if at + 1 < len(options) else 0
        if length < 2 or at + length > len(options):
            return None
        if options[at] == KIND:
            found = _read(options[at : at + length])
            if found is not None:
                return found
        at += length
    return None


def token_of(key: int, version: int) -> int:
    """Return the token of a key, by which a MP_JOIN names its owner: 32 bits of its SHA-1 or SHA-256."""
    whole = (hashlib.sha1 if version == 0 else hashlib.sha256)(key.to_bytes(8, "big"))
    return int.from_bytes(whole.digest()[:4], "big")


def _read(option: bytes) -> Capable | Join | None:
    subtype = option[2] >> 4 if len(option) > 2 else None
    if subtype == CAPABLE and len(option) in _KEYS:
        keys = [int.from_bytes(option[at : at + 8], "big") for at in (4, 12)][: _KEYS[len(option)]]
        return Capable(option[2] & 0xF, *keys)
    if subtype == JOIN:
        asks = len(option) == _JOIN_ASKS
        return Join(int.from_bytes(option[4:8], "big") if asks else None)
    return None
