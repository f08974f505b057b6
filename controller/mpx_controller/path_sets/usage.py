"""Which path sets carry data, by the byte counters of their entries."""

from collections.abc import Mapping
from typing import NamedTuple


class Counter(NamedTuple):
    """Where bytes are counted: of all entries of a path set, in one switch."""

    number: int
    switch: int


def used(before: Mapping[Counter, int], now: Mapping[Counter, int]) -> frozenset[int]:
    """Return the path sets whose entries have counted bytes between two polls.

    An entry counts from 0 when it is installed anew, so a sum that has fallen, but not to 0, is use as well:
    where a stream was moved and another is idle that is one lease too many, and none too few. A counter
    that was not read before is ignored.
    """
    return frozenset(
        counter.number for counter, count in now.items() if count > 0 and count != before.get(counter, count)
    )
