"""A listing under way: a command in MODE S whose lines are read as they come.

Where nobody has time for them the rest is read ahead and kept, compressed: so the server, which ends
connections over which nothing moves, is not kept waiting, and its session is free for others.
"""

import contextlib
import socket
import time
import zlib
from collections import deque
from collections.abc import Callable, Iterator

from mpx.endpoints.ftp.data_address import asking, connect_data, passive_command, passive_reply
from mpx.endpoints.ftp.extensions.dialing import Direction
from mpx.endpoints.ftp.refusals import says_failed
from mpx.endpoints.ftp.session import ClientSession
from mpx.endpoints.ftp.wire import Reply, command
from mpx.errors import ConnectionLost, MpxError, TransferTimeout
from mpx.net import tcp

LONGEST_LINE_BYTES = 64 * 1024  # a path and where a link leads, both of 4096 bytes and written as %XX, fit in
MOST_KEPT_BYTES = 32 * 1024 * 1024  # compressed; some millions of entries
BLOCK_BYTES = 256 * 1024  # compressed together
_DONE = (200, 212, 226, 250)  # that a listing is done, or empty
_ALL_SENT_S = 2.0  # for what a server has sent, or has to say, once it is done with a listing


class CutLine(str):
    """The last line of a listing that lacks its end; more may be missing."""

    __slots__ = ()


class ListingTransfer:
    """One listing command on one session; `refused` makes the error of a refusal.

    `doubt`, once it has ended: why it may not mean that a folder is empty that nothing was listed.
    """

    def __init__(self, session: ClientSession, line: bytes, refused: Callable[[Reply], MpxError]) -> None:
        self.doubt = ""
        self._session = session
        self._line = line
        self._refused = refused
        self._connection: socket.socket | None = None
        self._kept: deque[bytes] = deque()
        self._kept_bytes = 0
        self._has_lines = False
        self._is_ended = False  # all data have come
        self._last: Reply | None = None  # the final reply, once it was read
        self._error: MpxError | None = None  # what ended it before its end

    def lines(self) -> Iterator[str]:
        """Yield the lines; servers may answer that an empty folder is listed without ever sending data.

        Of one that they may not list, some say that they have sent all of it, but failed.
        Raises TransferTimeout, ConnectionLost, Interrupted, and what `refused` makes of a refusal.
        """
        session = self._session
        ask = [command("MODE", "S"), passive_command(session, Direction.DOWN)]
        if session.tickets:  # such a server waits for the connection, and needs to be told nothing before
            session.send(*ask, self._line)
            replies = [session.final_reply() for _ in ask]
        else:
            with asking(session):
                replies = session.protected(ask, is_listing=True)
        port = passive_reply(session, replies[1], Direction.DOWN)
        if not session.tickets:
            session.send(self._line)
        unreachable = None
        try:
            self._connection = connect_data(session, port)
        except ConnectionLost as error:
            unreachable = error
        rest = bytearray()
        try:
            reply = self._first_reply(unreachable)
            if not reply.is_preliminary and not reply.is_ok:
                raise self._refused(reply)
            if reply.is_ok and reply.code not in _DONE:
                raise ConnectionLost(f"{session.peer} answers {reply.code} to a listing: {reply.reason}")
            if self._connection and reply.is_preliminary:
                yield from self._whole_lines(rest, session.options.timeout_s)
            elif self._connection:  # it is done, and may have left the connection as it is
                self._last = reply
                try:
                    yield from self._whole_lines(rest, _ALL_SENT_S)
                except (ConnectionLost, TransferTimeout) as error:
                    if self._has_lines or rest:
                        raise  # there may be more
                    self.doubt = str(error)
            else:
                self.doubt = str(unreachable)
        except GeneratorExit:
            if self._last is None:
                session.abort()  # the caller stopped in the middle; the dialogue cannot be put in step again
            raise
        finally:
            self._close()
        if reply.is_preliminary:
            reply = self._last or session.final_reply()
        if not reply.is_ok or (not self._has_lines and not rest and says_failed(reply)):
            raise self._refused(reply)
        if rest:
            yield CutLine(_line(rest))

    def read_ahead(self) -> bool:
        """Read all that is to come, between two lines; False if that is more than can be kept.

        The session is free, or lost, where the answer is True.
        """
        session = self._session
        if self._connection is None or self._last is not None or self._error is not None:
            return True
        block = bytearray()
        until_s = time.monotonic() + session.options.timeout_s
        try:
            while not self._is_ended and self._kept_bytes < MOST_KEPT_BYTES:
                data = self._receive_new(until_s)
                if b"\n" in data.lstrip(b"\r\n"):  # a line that is not empty
                    until_s = time.monotonic() + session.options.timeout_s
                self._is_ended = not data
                block += data
                if len(block) >= BLOCK_BYTES:
                    self._keep(block)
            if self._is_ended:
                self._close()
                self._last = session.final_reply()
        except MpxError as error:
            self._error = error
            session.abort()
        self._keep(block)
        return self._is_ended or self._error is not None

    def give_up(self) -> None:
        """Have the listing end as if its connection were lost: its session is needed elsewhere."""
        self._error = ConnectionLost(f"a listing by {self._session.peer} was given up")
        self._session.abort()

    # --- inside --------------------------------------------------------------------------------------

    def _first_reply(self, unreachable: ConnectionLost | None) -> Reply:
        """Return what a server says first; raises `unreachable` if it has data to send."""
        session = self._session
        if unreachable is None:
            return session.read_reply()
        try:
            reply = session.read_reply(min(session.options.timeout_s, _ALL_SENT_S))
        except TransferTimeout:
            raise unreachable from None
        if reply.is_preliminary or reply.code == 425:
            raise unreachable
        return reply

    def _whole_lines(self, rest: bytearray, timeout_s: float) -> Iterator[str]:
        """Yield lines as they come, the first within `timeout_s`; what lacks its end is left in `rest`.

        The time-out of the session begins with each whole line that is not empty: single bytes, and line ends
        alone, can be sent without end.
        """
        until_s = time.monotonic() + timeout_s
        while data := self._receive(until_s):
            *ends, last = data.split(b"\n")
            said = False
            for raw in ends:
                line = _line(rest + raw)
                rest.clear()
                said = said or bool(line)
                self._has_lines = True
                yield line
            rest += last
            if len(rest) > LONGEST_LINE_BYTES:
                raise ConnectionLost(
                    f"{self._session.peer} lists a line longer than {LONGEST_LINE_BYTES} bytes"
                )
            if said:
                until_s = time.monotonic() + self._session.options.timeout_s

    def _receive(self, until_s: float) -> bytes:
        """Return what comes next, first of all what was kept; nothing at the end."""
        if self._kept:
            data = self._kept.popleft()
            self._kept_bytes -= len(data)
            return zlib.decompress(data)
        if self._error is not None:
            raise self._error
        return b"" if self._is_ended else self._receive_new(until_s)

    def _receive_new(self, until_s: float) -> bytes:
        session, left_s = self._session, until_s - time.monotonic()
        if self._connection is not None and left_s > 0:
            with contextlib.suppress(TransferTimeout):
                return tcp.receive(self._connection, left_s, session.peer, session.options.stop)
        raise TransferTimeout(
            f"{session.peer} sent no whole line of its listing within {session.options.timeout_s:g} s"
        )

    def _keep(self, block: bytearray) -> None:
        if block:
            self._kept.append(zlib.compress(block, 1))
            self._kept_bytes += len(self._kept[-1])
            block.clear()

    def _close(self) -> None:
        if self._connection:
            self._connection.close()


def _line(raw: bytes | bytearray) -> str:
    return raw.removesuffix(b"\r").decode("utf-8", "surrogateescape")
