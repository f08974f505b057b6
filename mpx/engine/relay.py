"""What a relay is made of: one end that sends pieces of files, another one that stores them, and us between.

Each end is a session of some protocol, opened when first needed; one worker (relay_worker.py) uses both.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from mpx.engine.range_scheduler import Piece
from mpx.engine.session_turns import MaybeSingle
from mpx.engine.stream import StreamTotals

Put = Callable[[int, memoryview], None]  # where in the file, and the bytes, which are lent for the call


class Relayed(NamedTuple):
    """What came of a piece, in bytes, and whether the source said that the file ends there.

    `is_stored`: not where another number of bytes came than the sink had announced: it kept none of them.
    """

    size_bytes: int
    is_ended: bool
    is_stored: bool = True


Pull = Callable[[Put], Relayed]  # gives all that comes of a piece to a Put, in its order


class RelayEnd(Protocol):
    """A session with the host of one end. Used by its worker's thread, but for `cut`."""

    @property
    def host(self) -> str:
        """The host, as shown to people."""
        ...

    @property
    def files_at_once(self) -> int:
        """How many small files it has under way together; 1: one after the other."""
        ...

    @property
    def pool(self) -> MaybeSingle | None:
        """What has the sessions of this copy with this host."""
        ...

    @property
    def is_wanted(self) -> bool:
        """Whether others wait for a session with this host."""
        ...

    def open(self, *, waits: bool) -> None:
        """Open a session if there is none; `waits` for its turn, else SessionsFull where none is left.

        Raises one of SessionWorker.retried.
        """
        ...

    def settle(self) -> bool:
        """End what is left of a piece that was refused; tell whether the session can be used for another.

        Not where that was under way in a protocol that knows no end but the last byte.
        """
        ...

    def give_back(self) -> None:
        """Give the session to others; nothing of it is under way."""
        ...

    def close(self) -> None:
        """Close the session, whatever is under way; closing twice is fine."""
        ...

    def cut(self) -> None:
        """Reset the session and its data connection, from any thread."""
        ...


class RelaySource(RelayEnd, Protocol):
    """Sends pieces."""

    def receive(self, piece: Piece, store: Callable[[Pull], Relayed], *, is_whole: bool) -> Relayed:
        """Have a piece sent, and `store` it, which is given what pulls it; return what came.

        Of a whole file all that comes, else no byte beyond the end of the piece, but one: where the file
        should end it is asked for, and must not come. Raises what a refusal means, ConnectionLost and the
        like, and what `store` does.
        """
        ...

    def finish(self, piece: Piece, came: Relayed) -> None:
        """End what was sent, once it is stored; raises ConnectionLost where it was not all."""
        ...

    def fetch(self, pieces: Sequence[Piece]) -> list[bytes | None]:
        """Return the contents of small files; None: that one is to be received by itself.

        One that has become larger has one byte more, and one that has become smaller fewer. Raises
        ConnectionLost and the like.
        """
        ...


class RelaySink(RelayEnd, Protocol):
    """Stores pieces."""

    def store(self, piece: Piece, pull: Pull, *, is_whole: bool) -> Relayed:
        """Store what `pull` brings, as all of the file if it `is_whole`; return what that says.

        Raises what a refusal means, ConnectionLost and the like, and what `pull` does.
        """
        ...

    def finish(self, piece: Piece, *, is_whole: bool) -> None:
        """Return once all of it is stored; raises as `store`."""
        ...

    def store_all(self, contents: Sequence[tuple[Piece, bytes]]) -> list[bool]:
        """Store small files; tell of each whether it is stored, else it is to be stored by itself.

        Raises ConnectionLost and the like.
        """
        ...

    def totals(self) -> StreamTotals:
        """Return the counters of the data connections that there are and were; from any thread."""
        ...
