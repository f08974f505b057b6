"""Cookies of our entries: a mark, the kind of entry, and the number of the path set.

Bits 48 to 63 mark entries of ours, 40 to 47 are the kind, the rest the number of the owner.
"""

from enum import IntEnum

OURS = 0x6D70 << 48  # "mp"
OURS_MASK = 0xFFFF << 48
ALL = 2**64 - 1  # the mask of exactly one cookie


class Kind(IntEnum):
    """What an entry is for."""

    FORWARDING = 1
    PATH_SET = 2
    MPTCP = 3


def cookie(kind: Kind, number: int = 0) -> int:
    """Return the cookie of an entry; `number` is that of its path set or connection."""
    return OURS | kind << 40 | number & 0xFF_FFFF_FFFF


def is_ours(value: int) -> bool:
    """Whether this is a cookie of an entry of ours."""
    return value & OURS_MASK == OURS


def kind_of(value: int) -> int:
    """Return what an entry of ours is for, as a number of `Kind` if it is one."""
    return value >> 40 & 0xFF


def number_of(value: int) -> int:
    """Return the number of the path set or connection whose entry this is; 0: of none."""
    return value & 0xFF_FFFF_FFFF
