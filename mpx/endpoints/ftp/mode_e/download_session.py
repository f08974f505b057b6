"""Downloads in MODE E, one session: the retrieves queued at the server, the connections it opened for them.

The number of connections of a channel is fixed. Another number is another channel: the command for it is
queued behind the retrieves under way, which the old connections still serve.
"""

import socket
import threading
import time
from collections import deque
from collections.abc import Iterator
from itertools import accumulate

from mpx.endpoints.ftp.asked_ahead import TICKET_DOWN
from mpx.endpoints.ftp.checksum_behind import ChecksumBehind, checksum_behind
from mpx.endpoints.ftp.data_address import ticket_port
from mpx.endpoints.ftp.extensions import sink
from mpx.endpoints.ftp.extensions.dialing import Direction
from mpx.endpoints.ftp.mode_e.certain_parts import certain, lost_bytes
from mpx.endpoints.ftp.mode_e.channel_opening import open_channel
from mpx.endpoints.ftp.mode_e.download_channel import DownloadDataChannel
from mpx.endpoints.ftp.mode_e.retrieve import PartialRetrieve, RetrieveRefused, SentTooMuch
from mpx.endpoints.ftp.refusals import cannot_send, is_missing, reply_error
from mpx.endpoints.ftp.session import SessionOptions
from mpx.endpoints.ftp.session_pool import open_session
from mpx.endpoints.ftp.wire import Reply, command, in_writes
from mpx.engine.carrier import CarrierContext
from mpx.engine.file_transfer import FileTransfer
from mpx.engine.range_scheduler import Pending
from mpx.engine.stream import StreamTotals
from mpx.errors import ConnectionLost, InboundBlocked, MpxError, NoSpace
from mpx.location import Location
from mpx.net import tcp
from mpx.net.beyond_sockets import is_worn

_MODE_E = command("MODE", "E")
_CONGESTION = "a congestion control"
_ONE_CONNECTION, _MORE_CONNECTIONS = "one connection", "several connections"
_OUR_PORT = "our data port"
_NEVER = (500, 501, 502, 504, 522)  # of PORT: there is no MODE E in this direction
ENDS = 2  # of files are read before a part from within one is believed
SOON_S = 0.001
VERDICT_S = 2.0  # wait for the server's reply after a data connection broke


class DownloadSession:
    """A session of a worker, logged in. Used by the worker's thread, unless a method says otherwise.

    `retrieves` is changed by that thread with `_guard` held, and others hold it to read it. The channels are
    a tuple that it replaces whole, so others may read it at any time (`open_connections`, `connections`,
    `is_switching`, `is_changing`, `data_port`, `cut`); `_guard` is held where it changes together with
    `_past`, so that counters are added up once.
    """

    def __init__(
        self, location: Location, options: SessionOptions, context: CarrierContext, path: str
    ) -> None:
        self.rtt_s = 0.0
        self.proven_to = 0  # the largest offset from which files ended where they should
        self.lengths_proven = False  # a part that ends within its file had its length
        self.believed_bytes = 0
        self._began_part = False  # some of a part that ends within its file came before the session was lost
        self._ends_believed = 0
        self._ends_asked = 0  # how often a retrieve was queued that reaches the end of its file
        self._asked_to = 0  # as `proven_to`, with what is queued
        self._path = path  # that its connections take
        self.congestion = ""  # congestion control of further retrieves; empty: the server's kernel chooses
        self.retrieves: deque[PartialRetrieve] = deque()  # under way, the oldest first; see above
        self.has_ticket = False  # when it was opened: a connection is made without asking the server
        self._host = location.host
        self._context = context
        self._control = open_session(location, options, (_MODE_E, TICKET_DOWN))
        # The last one is current; earlier ones still have retrieves to finish. See above.
        self._channels: tuple[DownloadDataChannel, ...] = ()
        # What the next replies are about; text: what it may refuse.
        self._answers: deque[PartialRetrieve | ChecksumBehind | DownloadDataChannel | str] = deque()
        self._unsent: list[bytes] = []
        self._past = StreamTotals()
        self._guard = threading.Lock()

    def open(self) -> None:
        """Turn to MODE E; raises ConnectionLost."""
        control = self._control
        self.rtt_s = control.rtt_s or 0.0
        self.has_ticket = control.ahead.has(TICKET_DOWN)
        (mode,) = control.protected([_MODE_E])
        if not mode.is_ok:
            raise ConnectionLost(f"{control.peer} refuses MODE E: {mode.reason}")

    # --- connections ---------------------------------------------------------------------------------

    @property
    def connections(self) -> int:
        """How many connections further retrieves will use; 0 before the first channel."""
        channels = self._channels
        return channels[-1].parallelism if channels else 0

    def open_connections(self) -> list[socket.socket]:
        """Return those that data may come over now."""
        return [connection for channel in self._channels for connection in channel.connections()]

    @property
    def has_connected(self) -> bool:
        """Whether a connection for the oldest retrieve has come in, most likely the server's."""
        return bool(self._channels and self._channels[0].reached)

    @property
    def is_switching(self) -> bool:
        """Whether nothing has come yet over the newest connections."""
        channels = self._channels
        return bool(channels) and channels[-1].totals().bytes == 0

    @property
    def is_changing(self) -> bool:
        """Whether retrieves are under way over connections that further ones will not use."""
        return len(self._channels) > 1

    @property
    def is_worn(self) -> bool:
        """Whether the connections that further retrieves would use are to be replaced."""
        return bool(self._channels) and any(map(is_worn, self._channels[-1].connections()))

    @property
    def data_port(self) -> str:
        """Where the server is to connect to, as shown to people."""
        return tcp.show(self._channels[0].address) if self._channels else "(closed)"

    def connect(self, connections: int) -> None:
        """Have the server open this number of connections, which further retrieves will use.

        Raises UsageError when no port is free to listen on.
        """
        channel = DownloadDataChannel(self._context, connections, self._control.peer_host, path=self._path)
        tells = open_channel(self._control, channel, self._path)
        with self._guard:
            self._channels += (channel,)
        number = _ONE_CONNECTION if connections == 1 else _MORE_CONNECTIONS
        self._answers.extend([number, channel if self._control.tickets else _OUR_PORT][: len(tells)])
        self._unsent += tells

    def congest(self, name: str) -> None:
        """Have the server send further retrieves with that congestion control, over the same connections."""
        self.congestion = name
        self._answers.append(_CONGESTION)
        self._unsent.append(command("OPTS", "RETR", f"Congestion={name};"))

    def _retire(self, channel: DownloadDataChannel) -> None:
        channel.cut()
        channel.join()
        for port in channel.ports:
            self._context.streams.paths.ended(port, "sink")
        with self._guard:
            self._past.add(channel.totals())
            self._past.streams = 0
            self._channels = tuple(each for each in self._channels if each is not channel)

    # --- retrieves -----------------------------------------------------------------------------------

    def proofs_needed(self, start: int, *, is_last: bool) -> int:
        """Return how often the end of a file has to be asked for before a part that begins at `start`.

        More than once in a session: what is honoured the first time may be forgotten then. And before a
        part that is itself the end: its offset may be just what the size was wrong by.
        """
        if not start:
            return 0
        return max(ENDS - self._ends_asked - is_last, int(start > self._asked_to and not is_last), 0)

    def retrieve(self, file: FileTransfer, start: int, end: int, fd: int, *, exact: bool = False) -> None:
        """Queue a retrieve of [start, end), to be written to `fd`; it goes out with the next `flush`.

        What reaches the end of the file is asked for with some bytes more, so that the server shows that the
        file ends there: this proves both the offset and the size. `exact`: it is not, and nothing is proven.
        """
        name = self._control.name(file.source)
        is_last = end == file.size_bytes and not file.is_streamed and not exact
        retrieve = PartialRetrieve(file, start, end, fd, self._channels[-1], is_last=is_last)
        retrieve.channel.add(retrieve)
        with self._guard:
            self.retrieves.append(retrieve)
        self._answers.append(retrieve)
        if retrieve.is_stream:
            self._unsent.append(command("RETR", name))
        else:
            self._unsent.append(command("ERET", "P", start, retrieve.most_bytes, name))
            if self._context.streams.is_short and is_last and not start:
                self._ask_behind(retrieve, name)
        if is_last:
            self._asked_to = max(self._asked_to, start)
            self._ends_asked += start > 0

    def _ask_behind(self, retrieve: PartialRetrieve, name: str) -> None:
        """Ask for the checksum of a file that is asked for whole; with the answer the retrieve is done."""
        if asked := checksum_behind(self._control, retrieve.file, name):
            retrieve.asked = asked
            self._answers.append(asked)
            self._unsent.append(asked.line)

    @property
    def brought_only_ends(self) -> bool:
        """Whether it has proven itself and has then brought nothing of a part of a file."""
        return self._ends_believed > 0 and not self.lengths_proven and not self._began_part

    def believe(self, retrieve: PartialRetrieve) -> None:
        """Take what a retrieve brought for what was asked for; to be called in their order."""
        if retrieve.is_last:
            self._ends_believed += retrieve.start > 0
            self.proven_to = max(self.proven_to, retrieve.start)
        elif not retrieve.is_stream:
            self.lengths_proven = True
        self.believed_bytes += retrieve.believe()

    def flush(self) -> None:
        """Send what is queued, in one write but for what has to be at the beginning of a segment."""
        lines, self._unsent = self._unsent, []
        for together in in_writes(lines):
            self._control.send(*together)

    def check(self) -> None:
        """Raise what broke a connection, if one is broken; what the server says of it comes first.

        Raises RetrieveRefused where a single file is to blame.
        """
        for channel in self._channels:
            if channel.broken and channel.spoiled:
                raise RetrieveRefused(channel.spoiled, channel.broken)
            if channel.broken:
                raise self._verdict(channel.broken)

    def hear(self, timeout_s: float) -> None:
        """Read replies, waiting for the first; raises RetrieveRefused, ConnectionLost, NoSpace."""
        if self._context.streams.is_short and self.retrieves and self.retrieves[0].is_answered:
            timeout_s = min(timeout_s, SOON_S)  # the last of its data is here, or on the way
        reply = self._control.poll_reply(timeout_s)
        while reply:
            try:
                self._heard(reply)
            except ConnectionLost as error:
                raise self._cause(error) from None
            reply = self._control.waiting_reply()

    def _cause(self, error: ConnectionLost) -> ConnectionLost:
        """Return why a connection was closed, by us, about which the server complains: it sent too much."""
        broken = (channel.broken for channel in self._channels)
        too_much = (each for each in broken if isinstance(each, SentTooMuch) and each.retrieve.begun)
        return next(too_much, error)

    def _verdict(self, error: MpxError) -> MpxError:
        deadline = time.monotonic() + VERDICT_S
        while error.may_retry and time.monotonic() < deadline:
            if isinstance(error, SentTooMuch) and error.retrieve.begun:
                break  # so it was not refused
            reply = self._control.poll_reply(0.1)
            if reply and (reply.is_preliminary or reply.is_ok):
                self._heard(reply)
            elif reply and isinstance(error, SentTooMuch):
                self._heard(reply)  # a retrieve was refused, and the data of the next were taken for its own
            elif reply:
                said = reply_error(reply, f"{self._control.peer} stopped sending", ConnectionLost)
                return said if isinstance(said, NoSpace) else ConnectionLost(str(said))
        return error

    def _heard(self, reply: Reply) -> None:
        """Match a reply with the oldest command that has none."""
        if reply.is_preliminary:
            if self._answers and isinstance(first := self._answers[0], PartialRetrieve):
                first.begun = True
            return
        if not self._answers:
            raise ConnectionLost(f"{self._host} sent a reply to no command: {reply.code} {reply.reason}")
        retrieve = self._answers.popleft()
        if isinstance(retrieve, ChecksumBehind):
            retrieve.heard(reply)
            return
        if isinstance(retrieve, DownloadDataChannel):
            retrieve.dial(ticket_port(self._control, reply, Direction.DOWN))
            return
        if reply.is_ok:
            if isinstance(retrieve, PartialRetrieve):
                retrieve.replied = True
            return
        if retrieve == _CONGESTION:
            self._context.supervisor.note(
                f"{self._host} refuses to send with {self.congestion}, and goes on unchanged: {reply.reason}"
            )
            self._context.controls[self._path].congestion_refused.set()
            return
        if retrieve == _ONE_CONNECTION:
            return  # one is what it opens without the option
        if retrieve == _MORE_CONNECTIONS:
            self._context.supervisor.note(
                f"one connection for each session: {self._host} refuses more: {reply.reason}"
            )
            self._context.events.one_connection.set()
            return
        if retrieve == _OUR_PORT and reply.code in _NEVER and not self._context.events.inbound.is_set():
            raise InboundBlocked(f"{self._host} refuses {retrieve}: {reply.reason}")
        if isinstance(retrieve, str):
            raise reply_error(reply, f"{self._host} refuses {retrieve}", ConnectionLost)
        error = cannot_send(reply, self._host, retrieve.file.source)
        if isinstance(error, ConnectionLost) and not self._context.events.inbound.is_set():
            raise InboundBlocked(str(error))
        if error.may_retry:
            raise error
        may_be_exact = retrieve.is_last and not self._cuts_short and not is_missing(reply)
        raise RetrieveRefused(retrieve.file, error, may_be_exact=may_be_exact)

    @property
    def _cuts_short(self) -> bool:
        """Whether this server is known to cut a retrieve short at the end of the file."""
        return not {"DSI", sink.FEATURE}.isdisjoint(self._control.features)  # a Globus server, or mpx serve

    def reap(self) -> Iterator[PartialRetrieve]:
        """Yield the retrieves that are done, in their order; connections that serve none any more go."""
        while self.retrieves and self.retrieves[0].is_answered and self.retrieves[0].is_done:
            with self._guard:
                retrieve = self.retrieves.popleft()
            retrieve.channel.forget(retrieve)
            while self._channels[0] is not retrieve.channel:
                self._retire(self._channels[0])
            yield retrieve

    @property
    def files(self) -> list[FileTransfer]:
        """The files that are under way."""
        return list({retrieve.file for retrieve in self.retrieves})

    # --- for the carrier, and the end ----------------------------------------------------------------

    def totals(self) -> StreamTotals:
        """Return the counters of all streams that there are and were.

        The server does one retrieve after the other, so those of the oldest that is not done carry bytes.
        """
        sums = StreamTotals()
        with self._guard:
            retrieves = list(self.retrieves)
            sums.add(self._past)
            for channel in self._channels:
                sums.add(channel.totals())
            is_single = len(self._channels) == 1  # as nearly always: it has all of the retrieves
        if not retrieves:
            sums.streams = 0
        elif not is_single:
            carrying = next(
                (retrieve.channel for retrieve in retrieves if not retrieve.is_done), retrieves[-1].channel
            )
            sums.streams = carrying.totals().streams
        return sums

    @property
    def is_busy(self) -> bool:
        """Whether retrieves are under way; from any thread."""
        with self._guard:
            return bool(self.retrieves)

    def pending(self, goodput: float) -> list[Pending]:
        """Return what is under way, and when it will have come at this goodput (bytes/s); from any thread."""
        with self._guard:
            retrieves = list(self.retrieves)
        ends = accumulate(each.left_bytes for each in retrieves)
        return [Pending(each, end / goodput, goodput) for each, end in zip(retrieves, ends, strict=True)]

    def cut(self) -> None:
        """Reset everything; from any thread."""
        self._control.abort()
        for channel in self._channels:
            channel.cut()

    @property
    def lost_bytes(self) -> int:
        """How many bytes that came would be lost with the session."""
        return lost_bytes(self.retrieves, self._certain_to)

    @property
    def _certain_to(self) -> int:
        return self.proven_to if self._ends_believed >= ENDS else 0

    @property
    def left_bytes(self) -> int:
        """How many bytes the server still has to send."""
        return sum(retrieve.left_bytes for retrieve in self.retrieves)

    def close(self) -> list[PartialRetrieve]:
        """Reset everything and wait until no stream writes any more; return what is left to be retrieved."""
        self._control.abort()
        self._control.close()
        is_sound = not any(isinstance(channel.broken, SentTooMuch) for channel in self._channels)
        for channel in self._channels:
            self._retire(channel)
        kept = list(certain(self.retrieves, self._certain_to))
        with self._guard:
            left = list(self.retrieves)
            self.retrieves.clear()
        self._began_part = any(not each.is_last and each.left_bytes < each.size_bytes for each in left)
        if is_sound:
            self.believed_bytes += sum(retrieve.believe() for retrieve in kept)
        for retrieve in left:
            retrieve.disbelieve()
        return left
