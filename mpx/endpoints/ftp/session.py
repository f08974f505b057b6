"""One GridFTP control channel: connect, log in, send commands, read replies, measure the RTT."""

import socket
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from mpx import choices
from mpx.endpoints.ftp.asked_ahead import AskedAhead
from mpx.endpoints.ftp.command_window import MOST_COMMANDS, CommandWindow
from mpx.endpoints.ftp.control_connection import ControlWay, KernelView, connect_control
from mpx.endpoints.ftp.framing import MarkerProgress
from mpx.endpoints.ftp.gsi.options import GsiMemory, GsiOptions
from mpx.endpoints.ftp.known_servers import KnownServers
from mpx.endpoints.ftp.names import check_globus_name, check_name
from mpx.endpoints.ftp.refusals import ended_by, if_tls
from mpx.endpoints.ftp.reply_queue import ReplyQueue
from mpx.endpoints.ftp.secured import TicketedData
from mpx.endpoints.ftp.security import security_for
from mpx.endpoints.ftp.ssh.options import SshOptions
from mpx.endpoints.ftp.wire import Reply, command
from mpx.errors import ConnectionLost, Interrupted, NameNotCarried, SessionEnded, TransferTimeout
from mpx.location import Location
from mpx.net import tcp
from mpx.net.beyond_sockets import is_local, peer_host

RTT_WEIGHT = 0.25  # of a new command's time in the moving average
_IS_IN, _OF_A_CUT = 230, (225, 226, 426)  # nobody has to log in (any more); a transfer has ended, said twice
MOST_KEPT_BYTES = 8 * 1024 * 1024  # of replies that are kept until the last has come


class Sessions(Protocol):
    """The sessions of one copy with one server (session_pool.py)."""

    @property
    def is_wanted(self) -> bool:
        """Whether somebody waits for a session, so that whoever does not need one should give it back."""
        ...

    @property
    def takes_turns(self) -> bool:
        """Whether there are fewer sessions than there is work for."""
        ...

    @property
    def is_single(self) -> bool:
        """Whether the server admits one session at a time, as far as it is known."""
        ...

    def open(
        self, location: Location, options: "SessionOptions", ahead: Sequence[bytes] = ()
    ) -> "ClientSession":
        """Return a session that is logged in; `ahead`: see log_in."""
        ...

    def give_back(self, session: "ClientSession") -> None:
        """Take a session back from who does not need it now. No command of it may be unanswered."""
        ...


@dataclass(frozen=True, slots=True)
class SessionOptions:
    """How to reach a server."""

    connect_timeout_s: float = 30.0
    timeout_s: float = 60.0
    family: int = socket.AF_UNSPEC
    source_ports: choices.PortRange | None = None  # where data connections of ours come from
    data_address: str | None = None  # the address of ours that data connections use
    data_address_from_server: bool = False  # connect for data to where the server says, not to where it is
    address: tcp.Address | None = None  # of the server, where its name is known to have several
    stop: Callable[[], bool] = field(default=lambda: False)  # asked while waiting; True ends the wait
    bound: Callable[[int], None] | None = None  # is told the port of the control channel before it connects
    pool: "Sessions | None" = None  # of the sessions of one copy, where it has one
    unreached: set[bytes] = field(default_factory=set, compare=False)  # asked for ports in vain
    known: KnownServers | None = None  # from earlier runs
    ssh: SshOptions = field(default_factory=SshOptions)
    gsi: GsiOptions = field(default_factory=GsiOptions)
    gsi_memory: GsiMemory = field(default_factory=GsiMemory, compare=False)
    waits_for_turn: bool = True  # where the server admits no more; else SessionsFull is raised
    # Is called again and again meanwhile, to let go of what others may wait for.
    while_waiting: Callable[[], None] = field(default=lambda: None)


class ClientSession:
    """A control channel, logged in by `log_in`. One thread uses it, except for `abort`."""

    def __init__(self, location: Location, options: SessionOptions) -> None:
        self.location = location
        self.options = options
        self.features: dict[str, str] = {}
        self.banner = ""
        self.rtt_s: float | None = None
        self.is_rtt_new = False  # the login has measured it, and nobody has asked for it since
        self.home = "/"
        self.is_aborted = False
        self.doubles_escapes = False  # 0xFF is sent twice (telnet_escape.py)
        self.has_restarted = False  # REST was said, and some servers keep an offset for all that follows
        self.closed: Callable[[], None] = lambda: None  # is called once it is closed
        self.passive: tuple[bytes, ...] = ()  # what asks for a port, the best first (data_address.py)
        self.is_in = self.is_greeted = False  # both by its greeting
        self.is_one_by_one = False  # the server takes no command before the last is answered
        self.ahead = AskedAhead()
        self._was_cut = False  # a transfer, by us or before its data, and nothing was asked since
        self._early: Reply | None = None  # the reply that was put back
        # None: in the clear.
        self.security = security_for(location, options.ssh, options.gsi, options.gsi_memory)
        try:
            self._socket = self._connect()
            self._replies = ReplyQueue(self._socket, self.peer)
            self._peer_host = peer_host(self._socket) or location.host
        except BaseException as error:
            if self.security:
                self.security.close()
            if isinstance(error, OSError):
                raise ConnectionLost(f"{self.peer} closed the connection: {error.strerror}") from None
            raise

    def __enter__(self) -> "ClientSession":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- opening -------------------------------------------------------------------------------------

    @property
    def peer(self) -> str:
        """The server, as shown to people."""
        host, port = self.location.host, self.location.port
        return f"{self.location.scheme}://{tcp.show((host, port)) if port else host}"

    @property
    def peer_host(self) -> str:
        """The address of the server, for control and data."""
        hosts = self.security.hosts if self.security else None
        return hosts.server if hosts else self._peer_host

    @property
    def local_host(self) -> str:
        """The address of our end, for control and data; empty if it is not known, as both go through ssh."""
        if self.security and (hosts := self.security.hosts):
            return hosts.ours
        return "" if is_local(self._socket) else str(self._socket.getsockname()[0])

    @property
    def tickets(self) -> TicketedData | None:
        """What opens data connections of both directions, at `mpx serve`; else they are at ports."""
        return self.security.tickets if self.security else None

    @property
    def is_ipv6(self) -> bool:
        """Whether the server is reached over IPv6."""
        return ":" in self.peer_host and not self.peer_host.startswith("::ffff:")

    def _connect(self) -> socket.socket:
        options = self.options
        way = ControlWay(
            options.connect_timeout_s, options.family, options.data_address, options.bound, options.stop
        )
        return connect_control(self.location, way, options.address, self.security)

    @property
    def connection(self) -> socket.socket:
        """The socket, for whoever goes on talking over it alone."""
        return self._socket

    def greet(self, timeout_s: float | None = None) -> None:
        """Read the banner; raises TransferTimeout if none comes, ConnectionLost if it is no welcome.

        The first word is part of connecting, and has as long as that. A server that asks us to wait (120) has
        as long as any reply.
        """
        began_s, wait_s = time.monotonic(), min(self.options.connect_timeout_s, self.options.timeout_s)
        wait_s = wait_s if timeout_s is None else min(wait_s, timeout_s)
        try:
            while (banner := self._read_by(began_s + wait_s, wait_s)).is_preliminary:
                wait_s = self.options.timeout_s
                if self.options.stop():
                    raise Interrupted
        except TransferTimeout:
            raise TransferTimeout(
                f"{self.peer} accepted the connection but sent no greeting within {wait_s:g} s; it hangs, or "
                f"is not a GridFTP or FTP server: check host and port{if_tls(self.peer)}"
            ) from None
        if banner.code not in (220, _IS_IN):
            raise SessionEnded(f"{self.peer} refused the connection: {banner.reason}")
        self.banner, self.is_greeted = banner.text, True
        self.is_in = banner.code == _IS_IN

    def name(self, name: str) -> str:
        """Return `name` as an absolute one: relative names are below the login directory.

        Raises UsageError, or NameNotCarried, for a name that this server would not understand as it is.
        """
        check_name(name)
        full = name if name.startswith("/") else f"{self.home.rstrip('/')}/{name}"
        if self.security is None and "DSI" in self.features:
            check_globus_name(name, self.peer)
        elif self.security and not self.security.carries_any_name:
            check_globus_name(full, self.peer, NameNotCarried)
        return full

    # --- talking -------------------------------------------------------------------------------------

    def send(self, *commands: bytes) -> None:
        """Send commands in one write; raises ConnectionLost."""
        self.ahead.sent(commands)
        try:
            self._socket.settimeout(self.options.timeout_s)
            data = b"".join(commands)
            self._socket.sendall(data.replace(b"\xff", b"\xff\xff") if self.doubles_escapes else data)
        except TimeoutError:
            raise TransferTimeout(
                f"{self.peer} did not accept a command within {self.options.timeout_s:g} s"
            ) from None
        except OSError as error:
            raise ConnectionLost(f"the connection to {self.peer} was lost: {error.strerror}") from None

    def poll_reply(self, wait_s: float) -> Reply | None:
        """Return the next reply, None if none comes within `wait_s`; raises ConnectionLost."""
        if not self._replies:
            self._replies.receive(wait_s)
        if not self._replies:
            return None
        reply = self._replies.popleft()
        if reply.code == 421:
            raise ended_by(reply, self.peer)
        return reply

    @property
    def is_answered(self) -> bool:
        """Whether a reply that ends a command, or the session, has come and was not read; does not wait."""
        return self._replies.is_answered

    def put_back(self, reply: Reply) -> None:
        """Have a reply that ends a command be read once more, as the next; another may follow it."""
        self._replies.appendleft(reply)
        self._early = reply

    def waiting_reply(self) -> Reply | None:
        """Return the next reply if it has been received already."""
        return self.poll_reply(1.0) if self._replies else None

    def read_reply(self, timeout_s: float | None = None) -> Reply:
        """Return the next reply of any kind.

        Raises TransferTimeout when none comes in time, Interrupted soon after the copy is stopped.
        """
        timeout_s = self.options.timeout_s if timeout_s is None else timeout_s
        return self._read_by(time.monotonic() + timeout_s, timeout_s)

    def _read_by(self, deadline: float, timeout_s: float) -> Reply:
        while (left := deadline - time.monotonic()) > 0:
            reply = self.poll_reply(min(left, tcp.STOP_INTERVAL_S))
            if reply:
                return reply
            if self.options.stop():
                raise Interrupted
        raise TransferTimeout(f"{self.peer} did not answer within {timeout_s:g} s")

    def final_reply(self, timeout_s: float | None = None, work_bytes: int = 0) -> Reply:
        """Return the next reply that ends a command, for which there is one time-out.

        It begins anew only with markers that show progress of a command that works on so many bytes: what
        else may precede a reply (1xx) can be sent without end. Raises as `read_reply`.
        """
        if self._replies and self._early is None and not self._was_cut and self._replies[0].ends_a_command:
            return self._replies.popleft()
        timeout_s = self.options.timeout_s if timeout_s is None else timeout_s
        deadline, progress = time.monotonic() + timeout_s, MarkerProgress(work_bytes)
        while (reply := self._read_by(deadline, timeout_s)).is_preliminary:
            if self.options.stop():
                raise Interrupted
            if reply.is_marker and progress.is_made(reply):
                deadline = time.monotonic() + timeout_s
        was_cut, self._was_cut = self._was_cut, reply is self._early
        self._early = None
        return self.final_reply(timeout_s) if was_cut and reply.code in _OF_A_CUT else reply

    def reply_to_cut(self) -> Reply:
        """Return the reply that ends a transfer whose data connection was closed from our side.

        Pure-FTPD says one more 1xx instead. Whether a final reply follows that is found out by a command
        whose answer has a code of its own. Others say 426, and then 226 as well: see final_reply.
        """
        deadline = time.monotonic() + self.options.timeout_s
        while (reply := self._read_by(deadline, self.options.timeout_s)).is_marker:
            pass
        if reply.is_preliminary:
            self.send(command("PWD"))
            for _ in range(2):
                reply = self.final_reply()
                if reply.code == 257:
                    return reply
            raise ConnectionLost(f"{self.peer} did not confirm the end of a transfer: {reply.reason}")
        self._was_cut = True
        return reply

    def call(self, line: bytes) -> Reply:
        """Send one command, return its final reply, and let its time count for the RTT.

        Nothing is sent where it was asked ahead.
        """
        if (known := self.ahead.answer(line)) is not None:
            return known
        self.check_step()
        began = time.monotonic()
        self.send(line)
        reply = self.final_reply()
        self.saw_rtt(time.monotonic() - began)
        return reply

    def replies(
        self, commands: Sequence[bytes], extra_s: float = 0.0, work_bytes: int = 0
    ) -> Iterator[Reply]:
        """Send many commands without waiting between them; yield their final replies in order.

        Further ones go out while replies come in, so that the server never runs out of work. Each reply may
        take the time-out and `extra_s`, and begins them anew as `final_reply` does.
        """
        self.check_step()
        window = CommandWindow(commands, 1 if self.is_one_by_one else MOST_COMMANDS)
        for _ in commands:
            if due := window.due():
                self.send(*due)
            yield self.final_reply(self.options.timeout_s + extra_s, work_bytes)
            window.answered()

    def check_step(self) -> None:
        """Raise ConnectionLost where a reply is left over: the next command would have it for its own."""
        while self._replies:
            reply = self._replies.popleft()
            if self._was_cut and reply.code in _OF_A_CUT:
                self._was_cut = False
            elif not reply.is_preliminary:
                raise ConnectionLost(f"{self.peer} sent an unexpected reply: {reply.code} {reply.reason}")

    def pipeline(self, commands: Sequence[bytes]) -> list[Reply]:
        """As `replies`, all at once, but for what was asked ahead.

        Raises ConnectionLost too where they are longer than we ask for.
        """
        known = [self.ahead.answer(line) for line in commands]
        asked = [line for line, answer in zip(commands, known, strict=True) if answer is None]
        kept, most = [], self._replies.taken_bytes + MOST_KEPT_BYTES
        for reply in self.replies(asked) if asked else ():
            kept.append(reply)
            if self._replies.taken_bytes > most:
                raise ConnectionLost(f"{self.peer} answers more than {MOST_KEPT_BYTES} bytes at once")
        fresh = iter(kept)
        return [next(fresh) if answer is None else answer for answer in known]

    def protected(self, commands: Sequence[bytes], *, is_listing: bool = False) -> list[Reply]:
        """As `pipeline`, where data connections follow: say before how these are protected, if that changes.

        Raises AuthenticationError where that is refused.
        """
        before = self.security.protect(is_listing=is_listing) if self.security else ()
        replies = self.pipeline([*before, *commands])
        if self.security:
            self.security.protected(replies[: len(before)])
        return replies[len(before) :]

    def measure_rtt(self) -> float:
        """Return the smoothed RTT in seconds after one more exchange: that of the login, or else a NOOP."""
        if not self.is_rtt_new:
            self.call(command("NOOP"))
        self.is_rtt_new = False
        return self.rtt_s or 0.0

    @property
    def kernel(self) -> KernelView:
        """What the kernel knows of the control channel."""
        return KernelView(self._socket)

    def saw_rtt(self, took_s: float) -> None:
        """Smooth as the paper does (Inoue et al., section III.B); the weight is not given there."""
        self.rtt_s = took_s if self.rtt_s is None else (1 - RTT_WEIGHT) * self.rtt_s + RTT_WEIGHT * took_s

    # --- ending --------------------------------------------------------------------------------------

    def close(self) -> None:
        """Say QUIT and close, without waiting for the answer."""
        try:
            self._socket.settimeout(0.2)
            self._socket.sendall(command("QUIT"))
        except OSError:
            pass  # it was gone already
        self._socket.close()
        if self.security:
            self.security.close()
        closed, self.closed = self.closed, lambda: None
        closed()

    def abort(self) -> None:
        """Cut the connection from any thread; a thread that waits on it gets ConnectionLost."""
        self.is_aborted = True
        tcp.reset(self._socket)
