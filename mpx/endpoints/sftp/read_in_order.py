"""A file that is read in its order over one SFTP session, with many blocks asked for ahead."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from mpx.endpoints.sftp import wire
from mpx.endpoints.sftp.refusals import cannot_send
from mpx.endpoints.sftp.session import MOST_OUTSTANDING, SftpSession, request
from mpx.endpoints.sftp.wire import Code, Data, PacketKind, Reply, Status
from mpx.engine.relay import Put, Relayed
from mpx.errors import IntegrityError, MpxError
from mpx.units import counted


@dataclass(slots=True, eq=False)
class _Block:
    """A range that was asked for, and what was answered before its turn came."""

    start: int
    end: int
    answer: bytes | Reply | None = None


class ReadInOrder:
    """Reads from `start` on: to `end`, and one byte more or all that follows, or to the end of the file."""

    def __init__(
        self,
        session: SftpSession,
        handle: bytes,
        name: str,
        *,
        start: int,
        end: int,
        behind_bytes: int | None,
        window_bytes: int,
        put: Put,
    ) -> None:
        """`behind_bytes`: how much is asked for behind `end`, at a time; 0: nothing; None: all there is."""
        self._session, self._handle, self._name = session, handle, name
        self._start, self._end, self._behind_bytes = start, end, behind_bytes
        self._window_bytes, self._put = window_bytes, put
        self._asked = start  # all before that was asked for
        self._position = start  # all before that was given to `put`
        self._blocks: deque[_Block] = deque()  # asked for, and not given yet
        self._is_ended = False  # the server has said where the file ends
        self._is_left = False  # nothing more is given
        self.error: MpxError | None = None  # what keeps it from being read

    def run(self, piece: Callable[[int], int]) -> Relayed:
        """Read, and return how much came; `piece` tells how much of a block may be asked for at once.

        Raises what a refusal means, ConnectionLost and the like, and what `put` does, which is given nothing
        any more then, whatever answers are still to come.
        """
        try:
            while not self.advance(piece):
                self._session.pump()
            if self.error is not None:
                raise self.error
            return Relayed(self._position - self._start, self._is_ended)
        finally:
            self._is_left = True

    def advance(self, piece: Callable[[int], int]) -> bool:
        """Ask for more where there is room; return whether all has come, or cannot."""
        while not self._is_over and self._has_room and (size_bytes := self._next(piece)):
            self._ask(_Block(self._asked, self._asked + size_bytes))
            self._asked += size_bytes
        return self._is_over or not (self._blocks or self._next(piece))

    @property
    def _is_over(self) -> bool:
        return self._is_ended or self._is_left or self.error is not None

    @property
    def _has_room(self) -> bool:
        under_way = self._asked - self._position
        return under_way < self._window_bytes and self._session.outstanding < MOST_OUTSTANDING

    def _next(self, piece: Callable[[int], int]) -> int:
        """Return how many bytes are to be asked for next; 0: none now."""
        if self._asked < self._end:
            return min(piece(self._session.read_bytes), self._end - self._asked)
        if self._behind_bytes is None:  # where it ends is not known: one block after the other
            return 0 if self._asked > self._end and self._blocks else piece(self._session.read_bytes)
        return max(0, self._end + self._behind_bytes - self._asked)

    def _ask(self, block: _Block, *, first: bool = False) -> None:
        if first:
            self._blocks.appendleft(block)
        else:
            self._blocks.append(block)
        fields = (self._handle, wire.u64(block.start), wire.u32(block.end - block.start))
        self._session.submit(request(PacketKind.READ, *fields), partial(self._came, block))

    def _came(self, block: _Block, reply: Reply) -> None:
        if self._is_over:
            return
        if block is not self._blocks[0]:
            block.answer = bytes(reply.content) if isinstance(reply, Data) else reply
            return
        self._give(block, reply.content if isinstance(reply, Data) else reply)
        while self._blocks and (answer := self._blocks[0].answer) is not None and not self._is_over:
            self._give(self._blocks[0], memoryview(answer) if isinstance(answer, bytes) else answer)

    def _give(self, block: _Block, answer: memoryview | Reply) -> None:
        """Give what came of the first block to `put`."""
        self._blocks.popleft()
        if not isinstance(answer, memoryview):
            if isinstance(answer, Status) and answer.code == Code.EOF:
                self._is_ended = True
                return
            self.error = cannot_send(answer, self._session.host, self._name)
            return
        asked_bytes = block.end - block.start
        if not len(answer) or len(answer) > asked_bytes:
            self.error = IntegrityError(
                f"{self._session.host} sends {counted(len(answer), 'byte')} of {self._name} where "
                f"{asked_bytes} were asked for; its SFTP server is broken"
            )
            return
        self._put(block.start, answer)
        self._position = block.start + len(answer)
        if self._position < block.end:
            self._fill(_Block(self._position, block.end))

    def _fill(self, rest: _Block) -> None:
        """Ask for what a server left out of an answer; behind the known end there may be no more."""
        if self._behind_bytes is None and rest.start >= self._end:
            self._asked = rest.start
        else:
            self._ask(rest, first=True)
