"""Receiving small files in MODE E over one connection: many are asked for at once, and kept here."""

import time
from collections.abc import Sequence

from mpx.endpoints.ftp import telnet_escape
from mpx.endpoints.ftp.asked_ahead import TICKET_DOWN
from mpx.endpoints.ftp.command_window import CommandWindow
from mpx.endpoints.ftp.data_address import ticket_port
from mpx.endpoints.ftp.extensions.dialing import Direction
from mpx.endpoints.ftp.framing import HEADER_BYTES, BlockHeader, unpack_header
from mpx.endpoints.ftp.mode_e.channel_opening import open_channel
from mpx.endpoints.ftp.mode_e.download_watch import INBOUND_S
from mpx.endpoints.ftp.mode_e.single_channel import SingleChannel
from mpx.endpoints.ftp.refusals import cannot_send, is_clear
from mpx.endpoints.ftp.session import ClientSession
from mpx.endpoints.ftp.wire import Reply, command, in_writes
from mpx.engine.carrier import CarrierContext
from mpx.engine.path_set import DEFAULT_PATH
from mpx.engine.range_scheduler import Piece
from mpx.engine.ranges import RangeSet
from mpx.errors import ConnectionLost, InboundBlocked, Interrupted, MpxError, TransferTimeout
from mpx.net import tcp

LOOK_S = tcp.STOP_INTERVAL_S  # while nothing comes: whether it is to stop, and what the server says
BEHIND_BYTES = 1  # asked for beyond the end of a file, which shows whether it has grown


class _OutOfStep(Exception):
    """Data do not come to their end: what follows over the connection is of nobody knows which file."""


class BlockFetch:
    """The connection of one session, which is in MODE E; its worker's thread uses it, but for `cut`."""

    def __init__(self, context: CarrierContext, session: ClientSession) -> None:
        self.is_usable = True  # the session and the connection are in step
        self.is_fit = True  # the server sends one file after the other over a connection, as it is asked to
        self._context, self._session = context, session
        self._most_bytes = 0  # of the largest file that is asked for
        self._channel = SingleChannel(context, session.peer_host, self._may_begin)
        self._has_asked = False  # for the connection
        self._since_s = 0.0  # when something came
        self._last_word: Reply | None = None  # of the server on the file under way, read before its data

    def fetch(self, pieces: Sequence[Piece]) -> list[bytes | None]:
        """Return what came of whole files; None: refused, or behind data that broke off: see `is_usable`.

        Raises InboundBlocked where the server does not connect to us, UsageError where no port of ours is
        free, ConnectionLost, TransferTimeout.
        """
        session = self._session
        lines = [self._retrieve_command(piece) for piece in pieces]
        asked = [line for line in lines if line is not None]
        self._most_bytes = max(map(_most_bytes, pieces), default=0)
        tells = [] if self._has_asked else self._ask_for_connection()
        window = CommandWindow(asked)
        for together in in_writes([*tells, *window.due()]):
            session.send(*together)
        for tell in tells:
            self._take_answer(tell, session.final_reply())
        found: list[bytes | None] = []
        for piece, line in zip(pieces, lines, strict=True):
            if line is None or not self.is_usable:
                found.append(None)
                continue
            if due := window.due():
                session.send(*due)
            try:
                found.append(self._one(piece))
            except _OutOfStep:
                found.append(None)
                self.is_usable = False
            window.answered()
        return found

    def cut(self) -> None:
        """Reset the connection, from any thread."""
        self._channel.cut()

    def close(self) -> None:
        """Close the connection."""
        self._channel.close()

    # --- asking --------------------------------------------------------------------------------------

    def _retrieve_command(self, piece: Piece) -> bytes | None:
        """Return what the server is told, while nothing is under way; None where it carries no such name."""
        name = piece.file.source
        try:
            telnet_escape.learn(self._session, name)
            return command("ERET", "P", 0, _most_bytes(piece), self._session.name(name))
        except (ConnectionLost, TransferTimeout, Interrupted):
            raise
        except MpxError:
            return None

    def _ask_for_connection(self) -> list[bytes]:
        """Return what brings a connection about, which comes with the first file."""
        self._has_asked = True
        self._session.protected(())
        return open_channel(self._session, self._channel, DEFAULT_PATH)

    def _take_answer(self, line: bytes, reply: Reply) -> None:
        if line == TICKET_DOWN:
            self._channel.dial(ticket_port(self._session, reply, Direction.DOWN))
        elif not reply.is_ok and line.startswith((b"PORT", b"EPRT")):
            raise InboundBlocked(f"{self._session.peer} refuses our data port: {reply.reason}")

    def _may_begin(self, header: BlockHeader) -> bool:
        return header.offset + header.count <= self._most_bytes or header.total_streams is not None

    # --- receiving -----------------------------------------------------------------------------------

    def _one(self, piece: Piece) -> bytes | None:
        """Return what came of the next file; None for one that is refused."""
        session, self._since_s, self._last_word = self._session, time.monotonic(), None
        while (reply := session.poll_reply(LOOK_S)) is None or reply.is_marker:
            self._check()
        if not (reply.is_preliminary or reply.is_ok):
            self._refused(reply, piece)
            return None
        if reply.is_ok:
            self._last_word = reply
        while self._channel.connection is None:
            self._channel.wait(LOOK_S)
            self._check()
            self._look(piece)
        content = self._content(piece)
        return content if (self._last_word or session.final_reply()).is_ok else None

    def _check(self) -> None:
        """Raise why nothing is to be waited for any more."""
        channel, peer, timeout_s = self._channel, self._session.peer, self._context.options.timeout_s
        if channel.broken:
            raise channel.broken
        if self._session.options.stop():
            raise Interrupted
        waited_s = time.monotonic() - self._since_s
        is_reached = self._context.events.inbound.is_set()
        if not is_reached and waited_s > min(INBOUND_S, timeout_s):
            raise InboundBlocked(f"{peer} cannot connect to our data port")
        if waited_s > timeout_s:
            raise TransferTimeout(f"no data from {peer} for {timeout_s:g} s")

    def _look(self, piece: Piece) -> None:
        """Read what the server says while it sends a file; raises _OutOfStep where it does not send the rest.

        Its last word may come before the data, and what it says behind that is of the next file.
        """
        while self._last_word is None and (reply := self._session.poll_reply(0.0)) is not None:
            if reply.is_ok:
                self._last_word = reply
            elif not reply.is_preliminary:
                if self._channel.connection is None:
                    self._refused(reply, piece)
                raise _OutOfStep

    def _refused(self, reply: Reply, piece: Piece) -> None:
        """Take a refusal; raises what it means where it is not of that file."""
        error = cannot_send(reply, self._session.peer, piece.file.source)
        if not error.may_retry:
            self.is_fit = self.is_fit and is_clear(reply)
        elif self._context.events.inbound.is_set():
            raise error
        else:
            raise InboundBlocked(str(error))

    def _content(self, piece: Piece) -> bytes:
        """Return all that comes of a file; raises _OutOfStep, TransferTimeout."""
        most_bytes, came, self._since_s = _most_bytes(piece), RangeSet(), time.monotonic()
        content, packed = memoryview(bytearray(most_bytes)), memoryview(bytearray(HEADER_BYTES))
        streams, is_ended = 0, False
        while not is_ended:
            if not self._fill(packed, piece):
                self.is_fit = self.is_fit and bool(came)  # it closes the connection after each file
                raise _OutOfStep
            header = _unpacked(packed)
            start, end = header.offset, header.offset + header.count
            if header.count:
                if end > most_bytes or not self._fill(content[start:end], piece):
                    raise _OutOfStep
                if came.add(start, end):  # what comes twice can be sent without end
                    self._since_s = time.monotonic()
            self._check()
            streams, is_ended = header.total_streams or streams, header.ends_data
        if streams != 1 or not came.covers(0, came.size):
            raise _OutOfStep
        return bytes(content[: came.size])

    def _fill(self, view: memoryview, piece: Piece) -> bool:
        """Receive so many bytes; False if the connection ends before the first. Raises as `_content`."""
        connection, is_first = self._channel.connection, True
        assert connection is not None
        connection.settimeout(LOOK_S)
        while view:
            try:
                got = connection.recv_into(view)
            except TimeoutError:
                self._check()
                self._look(piece)
                continue
            except OSError:
                raise _OutOfStep from None
            if not got and is_first:
                return False
            if not got:
                raise _OutOfStep
            view, is_first = view[got:], False
        return True


def _most_bytes(piece: Piece) -> int:
    return piece.end + BEHIND_BYTES


def _unpacked(packed: memoryview) -> BlockHeader:
    try:
        return unpack_header(packed)
    except ValueError:
        raise _OutOfStep from None
