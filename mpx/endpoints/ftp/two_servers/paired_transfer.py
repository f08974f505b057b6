"""One file, or a part of one, from one server to another: what both are told, and what they tell."""

from mpx.endpoints.ftp import telnet_escape
from mpx.endpoints.ftp.framing import marker_bytes, range_marker
from mpx.endpoints.ftp.mode_e.misplaced_blocks import FOREIGN_BLOCK_BYTES, certain_from
from mpx.endpoints.ftp.session import ClientSession
from mpx.endpoints.ftp.wire import Reply, command
from mpx.engine.range_scheduler import Piece
from mpx.engine.ranges import Range, RangeSet
from mpx.engine.server_pieces import is_stored_anew
from mpx.errors import ConnectionLost

RESTART_MARKER = 111


class PairedTransfer:
    """A transfer of a piece; `parts`: of files can be sent and stored; `block_bytes`: the largest block."""

    def __init__(self, piece: Piece, *, parts: bool, block_bytes: int = FOREIGN_BLOCK_BYTES) -> None:
        file = piece.file
        self._block_bytes = block_bytes
        self.file, self.start, self.end = file, piece.start, piece.end
        self.is_whole = is_stored_anew(piece, parts=parts)
        self.sent: Reply | None = None  # the last word of the sender
        self.stored: Reply | None = None  # the last word of the receiver
        self.connections = 0  # that it uses
        self.has_begun = False  # the receiver has a data connection for it
        self.marked = RangeSet()  # of the file, as restart markers say
        self.told_bytes = 0  # by markers of any kind
        self._certain_from = self.end  # as the receiver overwrites nothing from there on

    @property
    def size_bytes(self) -> int:
        """How many bytes it is to bring; 0 for a file of unknown size."""
        return self.end - self.start

    @property
    def is_over(self) -> bool:
        """Whether both servers are done with it."""
        return self.sent is not None and self.stored is not None

    @property
    def refusal(self) -> Reply | None:
        """What a server said that did not do its part; the receiver's, where both did not."""
        return next((reply for reply in (self.stored, self.sent) if reply and not reply.is_ok), None)

    def asks_first(self, sender: ClientSession, receiver: ClientSession) -> bool:
        """Whether one of both is asked something before it is told, so that nothing may be under way."""
        names = (sender, self.file.source), (receiver, self.file.partial)
        return any(telnet_escape.asks(session, name) for session, name in names)

    def store_command(self, session: ClientSession) -> bytes:
        """Return what the receiver is told; `session`: with it."""
        self._certain_from = certain_from(session.features, self.start, self.end, self._block_bytes)
        telnet_escape.learn(session, self.file.partial)
        name = session.name(self.file.partial)
        return command("STOR", name) if self.is_whole else command("ESTO", "A", self.start, name)

    def retrieve_command(self, session: ClientSession) -> bytes:
        """Return what the sender is told."""
        telnet_escape.learn(session, self.file.source)
        name = session.name(self.file.source)
        if self.is_whole:
            return command("RETR", name)
        return command("ERET", "P", self.start, self.size_bytes, name)

    def take_marker(self, reply: Reply) -> int:
        """Take a marker of the receiver; return how many more bytes it tells of than those before.

        Raises ConnectionLost for one that cannot be read.
        """
        if reply.code == RESTART_MARKER:
            for start, end in self._of_file(reply):
                self.marked.add(start, end)
        told = max(self.marked.size, marker_bytes(reply) if reply.code != RESTART_MARKER else 0)
        if not self.file.is_streamed:
            told = min(told, self.size_bytes)
        more, self.told_bytes = max(0, told - self.told_bytes), max(told, self.told_bytes)
        return more

    @property
    def certain(self) -> RangeSet:
        """What markers tell of and the receiver keeps, however the transfer ends."""
        return self.marked.within(self._certain_from, self.end)

    def _of_file(self, reply: Reply) -> list[Range]:
        """Return the ranges of a restart marker, which begin where the transfer does, as ones of the file."""
        try:
            ranges = range_marker(reply)
        except ValueError as error:
            raise ConnectionLost(f"the server sends a broken restart marker: {error}") from None
        if self.file.is_streamed:
            return ranges
        moved = ((start + self.start, min(end + self.start, self.end)) for start, end in ranges)
        return [(start, end) for start, end in moved if start < end]
