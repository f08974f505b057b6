"""Who may come in when it is crowded, and who gives way: decisions without any I/O.

Nobody can tell a good client that has not logged in yet from a bad one, so of those the oldest gives way, of
the address that has the most. Of those that have logged in one that does nothing gives way.
"""

import ipaddress
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

GIVES_WAY_AFTER_S = 1.0  # without a command; of several the one that has been idle longest


class Occupant(Protocol):
    """A session, as it counts here."""

    party: str
    user: str  # that was said, if any
    since_s: float  # when it was connected, or did its last command
    busy: bool  # it does one


Some = TypeVar("Some", bound=Occupant)


@dataclass(frozen=True, slots=True)
class Room:
    """How many sessions there may be, in all, of one party and of one token.

    And how many that have not logged in yet.
    """

    sessions: int = 256
    of_party: int = 64
    of_token: int = 64
    strangers: int = 256
    strangers_of_party: int = 64


class Full(Exception):
    """There is no room, and nobody gives way."""


def party(address: str) -> str:
    """Return who stands behind an address: for IPv6 its network, as each host has many addresses."""
    host = ipaddress.ip_address(address.partition("%")[0])
    return address if host.version == 4 else str(ipaddress.ip_network((host, 64), strict=False))


def stranger_to_drop(strangers: Sequence[Some], newcomer: str, room: Room) -> Some | None:
    """Return who leaves for one more of a party that has not logged in; None if there is room.

    One that has said its user comes after those that have said nothing.
    """
    counts = Counter(stranger.party for stranger in strangers)
    if counts[newcomer] >= room.strangers_of_party:
        crowd = newcomer
    elif len(strangers) >= room.strangers:
        crowd = max(counts, key=lambda name: counts[name])
    else:
        return None
    theirs = [stranger for stranger in strangers if stranger.party == crowd]
    return min(theirs, key=lambda stranger: (bool(stranger.user), stranger.since_s))


def session_to_drop(sessions: Sequence[Some], newcomer: str, room: Room, now_s: float) -> Some | None:
    """Return who leaves for one more of a party that logs in; None if there is room. Raises Full."""
    counts = Counter(session.party for session in sessions)
    if counts[newcomer] >= room.of_party:
        crowd = newcomer
    elif len(sessions) >= room.sessions:
        crowd = max(counts, key=lambda name: (counts[name], name == newcomer))
    else:
        return None
    idle = [
        session
        for session in sessions
        if session.party == crowd and not session.busy and now_s - session.since_s >= GIVES_WAY_AFTER_S
    ]
    if not idle:
        raise Full
    return min(idle, key=lambda session: session.since_s)
