"""One SFTP session: requests that go out without waiting for the answers of those before.

Used by one thread at a time; only `abort` may be called by others.
"""

import contextlib
import select
import socket
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from mpx.endpoints.child_process import ChildProcess
from mpx.endpoints.sftp import wire
from mpx.endpoints.sftp.inbox import Inbox
from mpx.endpoints.sftp.wire import (
    Data,
    Described,
    Extended,
    Handle,
    Names,
    PacketKind,
    Reply,
    ServerLimits,
    Status,
    WireError,
)
from mpx.errors import ConnectionLost, Interrupted, MpxError, TransferTimeout
from mpx.text import quoted

STOP_INTERVAL_S = 0.2
MOST_OUTSTANDING = 512  # requests for data, of one session
MOST_QUESTIONS = 1000  # of those whose answers are short
USUAL_BLOCK_BYTES = 32 * 1024  # that every server reads and writes at once
LARGEST_BLOCK_BYTES = 255 * 1024
LARGEST_WRITE_BYTES = 1024 * 1024 - 64  # of a program of ours: fewer requests have to be under way
HANDLES_LEFT = 16  # of those that a server has, for others
MOST_UNTOLD = 64  # handles at once where the server does not tell how many it admits
_COPIED_BYTES = 32 * 1024  # of a write, at most: it goes out with what else is short
_SENT_AT_ONCE = 256 * 1024  # bytes of short packets, or when answers are waited for
AHEAD_S = 2.0  # that an answer counts which was asked for as a session began
_RTT_WEIGHT = 0.25  # of the newest

_ANSWERS: dict[PacketKind, type[Reply]] = {
    PacketKind.OPEN: Handle,
    PacketKind.OPENDIR: Handle,
    PacketKind.READ: Data,
    PacketKind.READDIR: Names,
    PacketKind.REALPATH: Names,
    PacketKind.READLINK: Names,
    PacketKind.STAT: Described,
    PacketKind.LSTAT: Described,
    PacketKind.FSTAT: Described,
}
# Extensions that are answered by more than a status:
_TELLING = (wire.LIMITS, wire.STATVFS, wire.CHECKSUM, wire.COPIED, wire.RTT, wire.SENDING, wire.GFAL)

Then = Callable[[Reply], None]


@dataclass(frozen=True, slots=True)
class Request:
    """A request without its number: its kind and its fields, or the name of an extension before them."""

    kind: PacketKind
    fields: tuple[bytes, ...]
    extension: str = ""


def request(kind: PacketKind, *fields: bytes) -> Request:
    """Return a request."""
    return Request(kind, fields)


def extended(extension: str, *fields: bytes) -> Request:
    """Return a request of an extension."""
    return Request(PacketKind.EXTENDED, fields, extension)


class SftpSession:
    """A session through an ssh, or with a program of ours, that was started for it."""

    def __init__(self, process: ChildProcess, timeout_s: float, stop: Callable[[], bool]) -> None:
        """`timeout_s`: for how long nothing may move; `stop` is asked while waiting (Interrupted)."""
        self.host = process.host
        self.stop = stop
        self.extensions: frozenset[str] = frozenset()
        self.limits = ServerLimits()
        self.begins_in = ""  # the folder that relative names are in: home, or another; empty: not told
        self.is_open_ssh = False
        self.closed: Callable[[], None] = lambda: None  # is called once it has been closed
        self.process = process
        self._timeout_s = timeout_s
        self._patience_s = timeout_s  # what counts now
        self._socket = process.socket
        self._inbox = Inbox()
        self._short = bytearray()  # packets that go out together
        self._unsent: deque[memoryview] = deque()  # before those
        self._waiting: dict[int, tuple[type[Reply] | None, Then]] = {}
        self._number = 0
        self._moved_s = time.monotonic()  # when anything was sent or received last
        self._is_closed = False
        self.rtt_s: float | None = None  # of short questions, smoothed
        self._ahead: dict[Request, Reply] = {}  # that were asked as it began
        self._ahead_until_s = 0.0

    # --- beginning -----------------------------------------------------------------------------------

    def begin(self, wait_s: float, ahead: Sequence[Request] = ()) -> None:
        """Begin the dialogue, within so many seconds, as somebody may have to type a password.

        `ahead`: questions that go out with it, see `known`.
        Raises as ChildProcess.peek, and ConnectionLost for what is no SFTP.
        """
        until_s = time.monotonic() + wait_s
        self.process.send(wire.init())
        self.process.peek(until_s, wait_s, self.stop)
        self._socket.setblocking(False)
        self._moved_s = time.monotonic()
        version: list[wire.Version] = []
        while not version:
            try:
                for packet in self._inbox.packets():
                    version.append(wire.parse_version(packet))
            except WireError:
                raise ConnectionLost(self._noise()) from None
            if not version and time.monotonic() >= until_s:
                raise ConnectionLost(self._noise())
            if not version:
                self._exchange(STOP_INTERVAL_S)
        if version[0].number < wire.VERSION:
            raise ConnectionLost(f"{self.host} speaks version {version[0].number} of SFTP, which is too old")
        of_others = (wire.POSIX_RENAME, wire.FSYNC, wire.LIMITS, wire.STATVFS)
        known = (*of_others, wire.GFAL, wire.CHECKSUM, wire.CONGESTION, wire.RTT, wire.SENDING)
        self.extensions = frozenset(each for each in known if wire.offers(version[0], each))
        self.is_open_ssh = wire.POSIX_RENAME in self.extensions
        limits = [extended(wire.LIMITS)] if wire.LIMITS in self.extensions else []
        where, *told = self.ask([request(PacketKind.REALPATH, wire.name(".")), *ahead, *limits])
        answers, told = told[: len(ahead)], told[len(ahead) :]
        self._ahead = dict(zip(ahead, answers, strict=True))
        self._ahead_until_s = time.monotonic() + AHEAD_S
        if isinstance(where, Names) and where.entries and where.entries[0].name.startswith(b"/"):
            self.begins_in = wire.decoded(where.entries[0].name)
        for each in told:
            if isinstance(each, Extended):
                with contextlib.suppress(WireError):
                    self.limits = wire.parse_limits(each.content)

    def _noise(self) -> str:
        heard = quoted(self._inbox.heard[:40].decode("utf-8", "replace"))
        return (
            f"{self.host} answers {heard} instead of SFTP; does a start-up file of the shell there print "
            "something? Have it print nothing where nobody types"
        )

    @property
    def read_bytes(self) -> int:
        """How much is read at once."""
        return min(self.limits.read_bytes or USUAL_BLOCK_BYTES, LARGEST_BLOCK_BYTES)

    @property
    def write_bytes(self) -> int:
        """How much is written at once."""
        largest = LARGEST_WRITE_BYTES if wire.CHECKSUM in self.extensions else LARGEST_BLOCK_BYTES
        return min(self.limits.write_bytes or USUAL_BLOCK_BYTES, largest)

    # --- asking --------------------------------------------------------------------------------------

    @property
    def outstanding(self) -> int:
        """How many requests have no answer yet."""
        return len(self._waiting)

    @property
    def is_clear(self) -> bool:
        """Whether all that was to be sent is sent: whoever has lent a buffer has it back."""
        return not self._unsent

    @property
    def has_ended(self) -> bool:
        """Whether it can be used no longer."""
        return self._is_closed or self.process.has_ended

    @property
    def is_outdated(self) -> bool:
        """Whether a new one is to take its place when nothing is under way."""
        return self.process.is_outdated

    def submit(self, asked: Request, then: Then) -> None:
        """Have a request sent, soon or by `pump`, which calls `then` with its answer."""
        wanted = Extended if asked.extension in _TELLING else _ANSWERS.get(asked.kind)
        number = self._next(wanted, then)
        if asked.extension:
            self._short += wire.extension(asked.extension, number, *asked.fields)
        else:
            self._short += wire.packet(asked.kind, number, *asked.fields)
        if len(self._short) >= _SENT_AT_ONCE:
            self._flush()

    def write(self, handle: bytes, offset: int, data: memoryview, then: Then) -> None:
        """Have bytes written; `data` is lent until `is_clear`."""
        self._short += wire.write_header(self._next(None, then), handle, offset, len(data))
        if len(data) <= _COPIED_BYTES:
            self._short += data
            if len(self._short) < _SENT_AT_ONCE:
                return
        else:
            self._close_short()
            self._unsent.append(data)
        self._flush()

    def _next(self, kind: type[Reply] | None, then: Then) -> int:
        if not self._waiting:
            self._moved_s = time.monotonic()  # nothing was to be waited for until now
        while self._number in self._waiting:
            self._number = (self._number + 1) % 2**32
        number, self._number = self._number, (self._number + 1) % 2**32
        self._waiting[number] = kind, then
        return number

    def _close_short(self) -> None:
        """Have what is short sent before what follows."""
        if self._short:
            self._unsent.append(memoryview(self._short))
            self._short = bytearray()

    def pump(self, wait_s: float = STOP_INTERVAL_S) -> None:
        """Send what can be sent, and call `then` of the answers that have come; waits for so long at most.

        Raises ConnectionLost, TransferTimeout, Interrupted, and what `then` raises.
        """
        self._exchange(wait_s)
        try:
            for packet in self._inbox.packets():
                self._answer(packet)
        except WireError as error:
            raise self._nonsense(str(error)) from None

    def drain(self) -> None:
        """Wait for all that has no answer yet; raises as `pump`."""
        while self._waiting:
            self.pump()

    def _answer(self, packet: memoryview) -> None:
        number, reply = wire.parse_reply(packet)
        if number not in self._waiting:
            raise WireError("an answer to what was not asked")
        wanted, then = self._waiting.pop(number)
        if not isinstance(reply, Status) and (wanted is None or not isinstance(reply, wanted)):
            raise WireError("an answer of the wrong kind")
        if isinstance(reply, Status) and reply.code == wire.Code.OK and wanted is not None:
            raise WireError("no more than that all is well, where something was asked")
        then(reply)

    def _nonsense(self, what: str) -> ConnectionLost:
        return ConnectionLost(f"{self.host} sends {what}; its SFTP server is broken, or something on the way")

    def _exchange(self, wait_s: float) -> None:
        if self.stop():
            raise Interrupted
        self._flush()
        poll = select.poll()
        poll.register(self._socket, select.POLLIN | (select.POLLOUT if self._unsent else 0))
        events = poll.poll(max(0.0, 1000 * wait_s))
        if not events:
            if wait_s and self._waiting and time.monotonic() - self._moved_s > self._patience_s:
                raise TransferTimeout(f"nothing has come from {self.host} for {self._patience_s:g} s")
            return
        if events[0][1] & select.POLLOUT:
            self._flush()
        if events[0][1] & ~select.POLLOUT:
            self._receive()

    def _receive(self) -> None:
        try:
            got = self._socket.recv_into(self._inbox.room())
        except BlockingIOError:
            return
        except OSError:
            raise self._lost() from None
        if not got:
            raise self._lost()
        self._inbox.received(got)
        self._moved_s = time.monotonic()

    def _flush(self) -> None:
        self._close_short()
        while self._unsent:
            try:
                sent = self._socket.sendmsg(list(self._unsent)[:64])
            except BlockingIOError:
                return
            except OSError:
                raise self._lost() from None
            self._moved_s = time.monotonic()
            while sent and sent >= len(self._unsent[0]):
                sent -= len(self._unsent.popleft())
            if sent:
                self._unsent[0] = self._unsent[0][sent:]
                return

    def _lost(self) -> MpxError:
        return self.process.ended()

    def ask(
        self, requests: Sequence[Request], *, at_once: int = MOST_QUESTIONS, timeout_s: float | None = None
    ) -> list[Reply]:
        """Send many requests and return their answers, in this order; raises as `pump`.

        Nothing may be under way but what calls no `ask` itself. Data of files are copied. `at_once`: that are
        not answered yet; `timeout_s`: for what takes longer than others.
        """
        self._patience_s = timeout_s or self._timeout_s
        try:
            return self._asked(requests, at_once)
        finally:
            self._patience_s = self._timeout_s

    def known(self, asked: Request) -> Reply | None:
        """Return what was answered as the session began, a moment ago; None: ask."""
        return self._ahead.get(asked) if time.monotonic() < self._ahead_until_s else None

    def forget(self) -> None:
        """Have nothing `known` any more, as something is changed."""
        self._ahead = {}

    def _asked(self, requests: Sequence[Request], at_once: int) -> list[Reply]:
        answers: list[Reply | None] = [None] * len(requests)
        count = 0

        def keep(index: int, reply: Reply) -> None:
            nonlocal count
            count += 1
            # What comes next takes the place of data in the buffer.
            answers[index] = Data(memoryview(bytes(reply.content))) if isinstance(reply, Data) else reply

        asked = 0
        while count < len(requests):
            while asked < len(requests) and self.outstanding < at_once:
                index, asked = asked, asked + 1
                self.submit(requests[index], partial(keep, index))
            self.pump()
        return [each for each in answers if each is not None]

    def measure_rtt(self) -> float:
        """Return the round-trip time in seconds, smoothed: after one more exchange, if no kernel knows."""
        took_s = self._known_rtt_s()
        if not took_s:
            began_s = time.monotonic()
            self.ask([request(PacketKind.REALPATH, wire.name("."))])
            took_s = time.monotonic() - began_s
        before_s = took_s if self.rtt_s is None else self.rtt_s
        self.rtt_s = before_s + _RTT_WEIGHT * (took_s - before_s)
        return self.rtt_s

    def _known_rtt_s(self) -> float:
        if wire.RTT not in self.extensions:
            return 0.0
        (told,) = self.ask([extended(wire.RTT)])
        return int.from_bytes(told.content, "big") / 1e6 if isinstance(told, Extended) else 0.0

    # --- ending --------------------------------------------------------------------------------------

    def abort(self) -> None:
        """Cut it, from any thread; whoever uses it gets ConnectionLost."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self, wait_s: float = 1.0) -> None:
        """End it, at once where nothing of it is unanswered; closing twice is fine."""
        if self._is_closed:
            return
        self._is_closed = True
        with contextlib.suppress(MpxError):
            self._flush()
        self.process.close(wait_s if self._waiting or self._unsent else 0.0)
        self._waiting.clear()
        self._unsent.clear()
        self.closed()
