"""Checksums of both ends of a copy between two servers, which compute them at the same time."""

from collections.abc import Callable, Sequence
from typing import Protocol

from mpx.engine.capabilities import Question
from mpx.engine.endpoint import Endpoint, Part

Sums = list[str | Exception]


class SessionTurns(Protocol):
    """What tells whether sessions are scarce."""

    @property
    def takes_turns(self) -> bool:
        """Whether a server admits fewer sessions than there is work for."""
        ...


class BothServers:
    """The endpoints of one thread. `turns`: see Ends."""

    def __init__(self, source: Endpoint, destination: Endpoint, turns: SessionTurns) -> None:
        self.source, self.destination, self._turns = source, destination, turns

    def part_checksums(self) -> tuple[str, ...]:
        """Return the checksums that both compute of parts of files; asks for them."""
        at_source = self.source.find_out(Question.CHECKSUMS).part_checksums
        if not at_source:
            return ()
        there = self.destination.find_out(Question.CHECKSUMS).part_checksums
        return tuple(name for name in at_source if name in there)

    @property
    def most_compared_parts(self) -> int:
        """See Capabilities."""
        return min(end.capabilities.most_compared_parts for end in (self.source, self.destination))

    def checksums(
        self, algorithm: str, sources: Sequence[Part], stored: Sequence[Part], stop: Callable[[], bool]
    ) -> tuple[Sums, Sums]:
        """Return the checksums of parts at the source and at the destination; raises what either raises."""
        for end in (self.source, self.destination):
            end.find_out(Question.CHECKSUMS)  # opens a session with each, if there is none
        if self._turns.takes_turns:  # one may have to go before the other can be had
            return (
                self.source.checksums(algorithm, sources, stop),
                self.destination.checksums(algorithm, stored, stop),
            )
        from concurrent.futures import ThreadPoolExecutor  # few copies are between two servers

        with ThreadPoolExecutor(1) as beside:
            asked = beside.submit(self.source.checksums, algorithm, sources, stop)
            there = self.destination.checksums(algorithm, stored, stop)
            return asked.result(), there
