"""Entries of flow tables and the messages that change them, as plain values; mpx_controller.wire sends them.

Field names of a match are those of OpenFlow 1.3 (eth_type, ipv4_src, tcp_dst, ...).
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

FOUND_AT_ONCE = 1000  # entries of a switch that are checked before other tasks run
CONTROLLER = 0xFFFFFFFD  # the port that leads to us
Value = int | str | tuple[int, int] | tuple[str, str]  # a pair: value and mask
Match = tuple[tuple[str, Value], ...]  # in the order of the names


def match(**fields: Value) -> Match:
    """Return a match on these fields."""
    return tuple(sorted(fields.items()))


class Key(NamedTuple):
    """What identifies an entry in a switch."""

    table: int
    priority: int
    match: Match


@dataclass(frozen=True)
class Entry:
    """One entry: frames that match leave by all `outputs`, then go on in table `goto`; neither: dropped."""

    table: int
    priority: int
    match: Match
    cookie: int
    outputs: tuple[int, ...] = ()
    goto: int | None = None
    idle_s: int = 0  # idle timeout, after which the switch removes it and reports that; 0: none

    @property
    def key(self) -> Key:
        """What identifies it in a switch."""
        return Key(self.table, self.priority, self.match)


class Gone(NamedTuple):
    """An entry that its switch has removed, as nothing has matched for `idle_s`; `packets` had before."""

    key: Key
    cookie: int
    idle_s: int
    packets: int


class Total(NamedTuple):
    """What some entries have counted together since each was added."""

    packets: int
    bytes: int


class Counted(NamedTuple):
    """What one entry has counted since it was added."""

    entry: Entry
    packets: int
    bytes: int


@dataclass(frozen=True)
class Add:
    """Add an entry, or replace that with its key."""

    entry: Entry


@dataclass(frozen=True)
class Remove:
    """Remove the entry with this key, if its cookie is this one."""

    key: Key
    cookie: int


@dataclass(frozen=True)
class SendOut:
    """Send a frame out of some ports."""

    data: bytes
    outputs: tuple[int, ...]


Message = Add | Remove | SendOut
Messages = list[tuple[int, Message]]  # with the datapath id of the switch each is for


class SwitchRules:
    """The entries that one switch is to hold, by their owner, and the changes for that."""

    def __init__(self) -> None:
        self._owned: dict[object, dict[Key, Entry]] = {}
        self._wanted: dict[Key, Entry] = {}
        self._refused: set[Key] = set()  # that the switch has not taken: they are sent anew when put again
        self._found: Iterator[Entry] = iter(())  # that may not be wanted and are still to be removed

    @property
    def wanted(self) -> dict[Key, Entry]:
        """All entries that the switch is to hold."""
        return dict(self._wanted)

    def wants(self, key: Key, cookie: int) -> Entry | None:
        """Return the wanted entry with this key and this cookie; None without one."""
        entry = self._wanted.get(key)
        return entry if entry is not None and entry.cookie == cookie else None

    def put(self, owner: object, entries: Iterable[Entry]) -> list[Message]:
        """Set the entries of `owner`, and return the changes, additions first.

        So a frame always meets an old entry or a new one. Raises ValueError where another owner has one of
        the keys.
        """
        before, after = self._owned.get(owner, {}), {entry.key: entry for entry in entries}
        for key in after:
            if key in self._wanted and key not in before:
                raise ValueError(f"two owners have an entry with the same match: {key}")
        changes: list[Message] = [
            Add(entry) for key, entry in after.items() if before.get(key) != entry or key in self._refused
        ]
        changes += [Remove(key, entry.cookie) for key, entry in before.items() if key not in after]
        self._refused -= {key for key, entry in before.items() if after.get(key) != entry}
        for key in before:
            del self._wanted[key]
        self._wanted.update(after)
        if after:
            self._owned[owner] = after
        else:
            self._owned.pop(owner, None)
        return changes

    def refused(self, entry: Entry) -> None:
        """Note that the switch has not taken an entry."""
        if self._wanted.get(entry.key) == entry:
            self._refused.add(entry.key)

    def asked_anew(self, owner: object) -> None:
        """Note a new request for the entries of `owner`: their caller waits for the switch."""
        self._refused.difference_update(self._owned.get(owner, {}))

    def lacks(self, owner: object) -> bool:
        """Whether the switch has refused one of the entries of `owner`."""
        return not self._refused.isdisjoint(self._owned.get(owner, {}))

    def holds(self, owner: object) -> bool:
        """Whether there are entries of `owner`, of which the switch has refused none."""
        return owner in self._owned and not self.lacks(owner)

    def reconciled(self, found: Mapping[Key, Entry]) -> list[Message]:
        """Return the additions for a switch that holds `found` (entries of ours).

        Removals are left for `next_removed`.
        """
        self._refused.clear()
        self._found = iter(found.values())
        return [Add(entry) for key, entry in self._wanted.items() if found.get(key) != entry]

    def next_removed(self) -> list[Message] | None:
        """Return the removals of some found entries that are not wanted; None where none are left.

        A switch may hold a hundred thousand of these, and others are not to wait for all of them.
        """
        some = list(islice(self._found, FOUND_AT_ONCE))
        if not some:
            return None
        return [Remove(entry.key, entry.cookie) for entry in some if entry.key not in self._wanted]
