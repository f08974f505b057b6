"""The listener of `mpx serve`: who may connect, how many at a time, and a clean end."""

import ipaddress
import logging
import select
import socket
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Union

from mpx.engine.token_bucket import TokenBucket
from mpx.errors import UsageError
from mpx.net.tls import TlsSocket
from mpx.serve import admission
from mpx.serve.buffers import ConnectionBudget
from mpx.serve.commands import COMMANDS
from mpx.serve.control import Control, ControlClosed
from mpx.serve.echo import Echo
from mpx.serve.listener import listen
from mpx.serve.pacing_requests import PulseService
from mpx.serve.root import Root
from mpx.serve.secure_control import SecureControl
from mpx.serve.secure_serving import SecureServing
from mpx.serve.session import Limits, Session
from mpx.serve.turns import Share, Turn, Turns
from mpx.text import quoted

_CLOSE_TIMEOUT_S = 1.0
_DRAIN_TICK_S = 0.05
_CONNECTIONS_RATE, _CONNECTIONS_BURST = 300.0, 20  # a flood of connections is to leave time for others
_FULL = b"421 Too many sessions, try later.\r\n"

_log = logging.getLogger(__name__)


class Server:
    """Serves one directory over GridFTP from the moment it is made until `close` (or the end of `with`).

    It runs in threads of its own. `port` 0 takes a free one. `secure` serves inside TLS who has a token.
    Without it a `host` that is not a loopback address needs `insecure` and the networks in `allow_from`
    (CIDR): there is no encryption and no password. Raises UsageError when that is missing, or the directory
    or the port cannot be had. `secure` is closed with the server.
    """

    def __init__(
        self,
        root: str | Path,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        writable: bool = False,
        insecure: bool = False,
        allow_from: Iterable[str] = (),
        limits: Limits | None = None,
        secure: SecureServing | None = None,
        over_ssh: str = "",
        home: str = "/",
        listener: socket.socket | None = None,
    ) -> None:
        """`over_ssh`: the address of a client whose ssh sessions are adopted; `home`: where they begin.

        `listener`: what listens at `host` already.
        """
        self._place = (host, over_ssh)
        self._home = home
        self._secure = secure
        self._allowed = _who_may_connect(host, insecure, tuple(allow_from), is_secure=secure is not None)
        self._writable = writable
        self._limits = limits or Limits()
        try:
            self._root = Root(root)
        except OSError as error:
            raise UsageError(f"cannot serve {quoted(str(root))}: {error.strerror}") from error
        try:
            self._listener = listener or listen(host, port, over_mptcp=secure is not None)
        except OSError as error:
            self._root.close()
            raise UsageError(f"cannot listen at {host} port {port}: {error.strerror}") from error
        self._budget = ConnectionBudget()
        self._turns = Turns()
        self._sessions: dict[Session, threading.Thread] = {}
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self.host, self.port = self._listener.getsockname()[:2]
        self._pulses = PulseService(self._sending_to)
        self._echo = self._open_echo()
        if secure:
            secure.start(self._begin)
        self._thread = threading.Thread(target=self._accept, name="mpx-serve", daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """Where the root of the tree is served."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'mpx' if self._secure else 'ftp'}://{host}:{self.port}/"

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self, *, drain_s: float = 0.0) -> None:
        """Stop: no new sessions, running ones are cut off, what they received so far stays.

        `drain_s`: for so long a command that is being done, as a transfer, may go on to its end.
        """
        if self._stopping.is_set():
            return
        self._stopping.set()
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listener.close()
        if self._secure:
            self._secure.stop()
        self._drain(time.monotonic() + drain_s)
        with self._lock:
            left = dict(self._sessions)
        for session in left:
            session.stop()
        until_s = time.monotonic() + _CLOSE_TIMEOUT_S
        for thread in left.values():
            thread.join(max(0.0, until_s - time.monotonic()))
        if self._echo:
            self._echo.close()
        if self._secure:
            self._secure.close()
        self._root.close()

    def _drain(self, until_s: float) -> None:
        """Wait until no session does a command; those that do none are ended."""
        while (left_s := until_s - time.monotonic()) > 0:
            with self._lock:
                left = dict(self._sessions)
            for session in left:
                if not session.busy:
                    session.stop()
            if not left:
                return
            next(iter(left.values())).join(min(left_s, _DRAIN_TICK_S))

    def _open_echo(self) -> Echo | None:
        try:
            return Echo(self.host, self.port, self._pulses.begin)
        except (OSError, RuntimeError) as error:
            _log.warning("no echo for probes: %s", error)
            return None

    def adopt(self, sock: socket.socket) -> threading.Thread | None:
        """Begin a session over a connection that there is; return its thread, None if there is no room."""
        return self._start(sock)

    def _accept(self) -> None:
        poll = select.poll()
        poll.register(self._listener, select.POLLIN)
        turn = Turn(self._turns, Share())
        calm = TokenBucket(_CONNECTIONS_RATE, _CONNECTIONS_BURST)
        while not self._stopping.is_set():
            poll.poll()
            try:
                sock, address = self._listener.accept()
            except OSError as error:
                if not self._stopping.is_set():
                    _log.warning("cannot accept: %s", error)
                    self._stopping.wait(0.1)  # out of descriptors, most likely: others will end
                continue
            if not calm.take(time.monotonic()):
                self._stopping.wait(1 / _CONNECTIONS_RATE)  # the others wait in the kernel meanwhile
            if not _contains(self._allowed, address[0]):
                _log.warning("%s: refused, not in the networks of --allow-from", address[0])
                sock.close()
                continue
            with turn:
                self._take(sock, address[0])

    def _begin(self, sock: TlsSocket) -> None:
        self._start(sock)

    def _take(self, sock: socket.socket, host: str) -> None:
        if self._secure is None:
            self._start(sock)
            return
        try:
            self._secure.take(sock, host)
        except (OSError, MemoryError):
            sock.close()  # the client has gone already, or there is no room for it
        except Exception:  # of one client; others are to get in all the same
            _log.exception("%s: cannot take the connection", host)
            sock.close()

    def _start(self, sock: socket.socket) -> threading.Thread | None:
        try:
            place = self._place if sock.family == socket.AF_UNIX else None
            if not self._make_room(admission.party(place[1] if place else sock.getpeername()[0])):
                sock.send(_FULL, socket.MSG_DONTWAIT)
                sock.close()
                return None
            login_s = self._limits.login_s
            control: Control
            if isinstance(sock, TlsSocket):
                control = SecureControl(sock, login_s)
            else:
                control = Control(sock, login_s, place)
            session = Session(
                control,
                self._root,
                writable=self._writable,
                limits=self._limits,
                admit=self._admit,
                admit_to_echo=self._admit_to_echo,
                budget=self._budget,
                turns=self._turns,
                access=self._secure.access if self._secure else None,
                home=self._home,
            )
        except (OSError, MemoryError):
            sock.close()  # the client has gone already, or there is no room for it
            return None
        thread = threading.Thread(target=self._run, args=(session,), name="mpx-serve-session", daemon=True)
        with self._lock:
            self._sessions[session] = thread
        try:
            thread.start()
        except (RuntimeError, MemoryError) as error:  # no more threads are to be had
            _log.warning("cannot start a session: %s", error)
            self._forget(session)
            sock.close()
            return None
        return thread

    def _make_room(self, party: str) -> bool:
        """Make room for one more connection of a party; return False if it could not even log in."""
        with self._lock:
            here = [session for session in self._sessions if not session.gave_way]
            strangers = [session for session in here if not session.logged_in]
            sessions = [session for session in here if session.logged_in]
            leaves = admission.stranger_to_drop(strangers, party, self._limits.room)
            if leaves:
                leaves.give_way()
            try:
                admission.session_to_drop(sessions, party, self._limits.room, time.monotonic())
            except admission.Full:
                return False
            return True

    def _admit(self, session: Session) -> None:
        """Have a session logged in, for which another one may leave. Raises ControlClosed."""
        with self._lock:
            others = [other for other in self._sessions if other.logged_in and not other.gave_way]
            of_token = sum(other.grant == session.grant for other in others) if session.grant else 0
            try:
                if of_token >= self._limits.room.of_token:
                    raise admission.Full
                leaves = admission.session_to_drop(others, session.party, self._limits.room, time.monotonic())
            except admission.Full:
                raise ControlClosed("too many sessions", (421, "Too many sessions, try later.")) from None
            if leaves:
                leaves.give_way()
            session.logged_in = True

    def _admit_to_echo(self, session: Session) -> None:
        if self._echo:
            session.echo = self._echo.admit(session.control.peer)

    def _run(self, session: Session) -> None:
        _log.info("%s: session begins", session.control.peer)
        try:
            session.run(COMMANDS)
        finally:
            with session.turn:
                self._forget(session)

    def _forget(self, session: Session) -> None:
        with self._lock:
            del self._sessions[session]
            is_last = all(other.control.peer != session.control.peer for other in self._sessions)
        if self._echo and session.echo:
            self._echo.dismiss(session.echo)
        if is_last:
            self._pulses.forget(session.control.peer)

    def _sending_to(self, host: str) -> list[socket.socket]:
        """Return the connections over which data go to a client."""
        with self._lock:
            theirs = [session for session in self._sessions if session.control.peer == host]
        sending = [connection for session in theirs for connection in session.channel.sending()]
        return [connection for connection in sending if connection.family != socket.AF_UNIX]


_Network = Union[ipaddress.IPv4Network, ipaddress.IPv6Network]  # noqa: UP007  it runs on Python 3.9, too


def _who_may_connect(
    host: str, insecure: bool, allow_from: tuple[str, ...], *, is_secure: bool
) -> list[_Network]:
    try:
        address = ipaddress.ip_address(host)
        allowed = [ipaddress.ip_network(network) for network in allow_from]
    except ValueError as error:
        raise UsageError(f"not an IP address or network: {error}") from error
    if is_secure:
        if insecure:
            raise UsageError("--insecure is for a server in the clear; this one is inside TLS")
        return allowed or [ipaddress.ip_network("0.0.0.0/0"), ipaddress.ip_network("::/0")]
    if address.is_loopback:
        if insecure or allow_from:
            raise UsageError(
                f"--insecure and --allow-from are not for {host}, which only this machine reaches"
            )
        return [ipaddress.ip_network("127.0.0.0/8"), ipaddress.ip_network("::1")]
    if not insecure or not allowed:
        raise UsageError(
            f"{host} can be reached from other machines, and there is no password and no encryption: "
            "serve with --tls and tokens, or on 127.0.0.1, or say both --insecure and --allow-from NETWORK"
        )
    return allowed


def _contains(networks: list[_Network], host: str) -> bool:
    address = ipaddress.ip_address(host.partition("%")[0])
    return any(address.version == network.version and address in network for network in networks)
