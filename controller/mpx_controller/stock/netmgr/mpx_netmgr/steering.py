"""The path sets of one session or command: assigned at the first stream, renewed, and released at the end."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field

from .client import NOT_THERE, TAKEN, AssignedPathSet, Client, Unsteered
from .pair import Pair

RENEWALS = 3  # within a lease, so that two may fail
SOONEST_S = 0.1  # from one renewal to the next, however short a lease is
UNKNOWN = -1  # the path of a stream that the controller was asked to place, and has not answered


@dataclass
class _Held:
    known: AssignedPathSet | None = None  # None: the controller has none for us now
    paths: dict[int, int | None] = field(default_factory=dict)  # of each port; None: another owner steers it
    every_s: float = float("inf")  # it is renewed, or asked for again where there is none
    renew_s: float = float("inf")


class Steering:
    """Puts streams on paths of one path set for each pair. `paths`: of each set at most, 0: as many as help.

    With `in_turn` one stream after the other goes on each path; without, as predicted.
    """

    def __init__(self, client: Client, paths: int, in_turn: bool = False) -> None:
        self._client, self._paths, self._in_turn = client, paths, in_turn
        self._held: dict[Pair, _Held] = {}

    def get(self, pair: Pair, now_s: float) -> AssignedPathSet:
        """Return the path set of a pair, a new one where there is none; raises Unsteered."""
        held = self._held.setdefault(pair, _Held())
        if held.known is None:
            made = self._client.assign(pair.source, pair.sink, self._paths)
            held.every_s = max(SOONEST_S, made.lease_s / RENEWALS)
            held.renew_s = now_s + held.every_s
            before, held.paths = held.paths, {}
            try:
                for port in before:
                    held.paths[port] = self._put(held, made, port)
            except Unsteered:
                held.paths = before  # all of them are tried again
                with suppress(Unsteered):
                    self._client.release(made.number)
                raise
            held.known = made
        return held.known

    def place(self, pair: Pair, port: int, now_s: float) -> int | None:
        """Put the stream with that port of the source on a path and return which; raises Unsteered.

        None: another owner steers it already, such as the server that it goes to.
        """
        known = self.get(pair, now_s)
        held = self._held[pair]
        try:
            path = self._put(held, known, port)
        except Unsteered as error:
            if error.status != NOT_THERE:
                if not error.status:
                    held.paths[port] = UNKNOWN  # it may be placed late: its end is reported
                raise
            held.known = None  # it had no streams for too long, and has expired
            path = self._put(held, self.get(pair, now_s), port)
        held.paths[port] = path
        held.renew_s = now_s + held.every_s
        return path

    def remove(self, pair: Pair, port: int) -> None:
        """A stream has ended; one that is not there is passed over. Raises Unsteered."""
        held = self._held.get(pair)
        if held is not None and held.paths.pop(port, None) is not None and held.known is not None:
            self._client.remove(held.known.number, [port])

    def next_s(self) -> float:
        """Return when `keep` is to be called next."""
        return min((held.renew_s for held in self._held.values() if held.paths), default=float("inf"))

    def keep(self, now_s: float) -> None:
        """Renew the path sets with streams, and replace those that the controller has forgotten.

        Raises Unsteered where that fails for a set, after the others were renewed; it is tried again at the
        next renewal, and a lease has time for two failures.
        """
        failed: Unsteered | None = None
        for pair, held in self._held.items():
            if not held.paths or now_s < held.renew_s:
                continue
            held.renew_s = now_s + held.every_s
            try:
                self._renew(pair, held, now_s)
            except Unsteered as error:
                failed = error
        if failed is not None:
            raise failed

    def _renew(self, pair: Pair, held: _Held, now_s: float) -> None:
        if held.known is not None:
            try:
                self._client.renew(held.known.number)
            except Unsteered as error:
                if error.status != NOT_THERE:
                    raise
                held.known = None
        self.get(pair, now_s)

    def release(self) -> None:
        """Release all path sets; those of a controller that cannot be reached end with their leases."""
        for held in self._held.values():
            if held.known is not None:
                with suppress(Unsteered):
                    self._client.release(held.known.number)
        self._held.clear()

    def _put(self, held: _Held, known: AssignedPathSet, port: int) -> int | None:
        in_turn = sum(path is not None for path in held.paths.values()) % known.paths
        try:
            return self._client.place(known.number, [port], in_turn if self._in_turn else None)[0]
        except Unsteered as error:
            if error.status != TAKEN:
                raise
            return None
