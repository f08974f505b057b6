"""Our server at the other end of the user's ssh, shared by all sessions of a copy with that host.

The first session goes through ssh, and so do data at first; meanwhile it is tried whether the server can be
reached directly. From then on connections are direct, inside TLS, in which both ends show the one certificate
that was made for this copy and sent through ssh.
"""

import contextlib
import ipaddress
import secrets
import socket
import ssl
import threading
import time
from collections.abc import Callable

from mpx.choices import PortRange
from mpx.endpoints.ftp.extensions import stdio
from mpx.endpoints.ftp.extensions.dialing import CONTROL_PROTOCOL, DATA_PROTOCOL
from mpx.endpoints.ftp.extensions.stdio import LaneRequest, Ready, ServeRequest
from mpx.endpoints.ftp.ssh.answer import begin
from mpx.endpoints.ftp.ssh.certificates import CertificateMaker, CopyCertificates
from mpx.endpoints.ftp.ssh.lane import LaneSocket, first_session
from mpx.endpoints.ftp.ssh.start import EarlySsh, first_ssh, server_command
from mpx.endpoints.ftp.wire import command
from mpx.endpoints.ssh.command_line import RemoteProgram
from mpx.endpoints.ssh.login import SshLogin
from mpx.endpoints.ssh.process import SshProcess
from mpx.errors import AuthenticationError, ConnectionLost, MpxError
from mpx.location import Location
from mpx.net import tcp, tls
from mpx.net.reach import believed_host

_LOGIN_S = 120.0  # somebody may have to type a password, or to look for a second factor
_LANE_ENDS_S = 60.0
_FIRST_PORT = 1024  # that is connected to
_READ_BYTES = 4096
_SOON_S, _NOT_SOON_S = 0.03, 1.0


class RemoteServer:
    """One server at one host, for one copy. For any thread."""

    def __init__(
        self,
        location: Location,
        program: RemoteProgram,
        ports: PortRange | None,
        early: EarlySsh | None = None,
    ) -> None:
        """`early`: an ssh that was started before; it is the first one, and ours to end."""
        self.login = early.login if early else SshLogin(location)
        self.name = self.login.name
        self._program = program
        self._ports = ports
        self.secret = secrets.token_urlsafe(32)
        self._lock = threading.Lock()
        self._command = early.command if early else None  # guarded, as what follows
        self._early = early.process if early else None
        self._first: SshProcess | None = None  # the server lives as long as this
        self._unused: socket.socket | None = None  # its first control channel, which nobody has asked for yet
        self._path = ""  # where it takes lanes
        self._lanes: list[SshProcess] = []
        self._certificates: CopyCertificates | None = None  # from the first start on
        self._ready: Ready | None = None  # what the server has said when it started
        self._closed = threading.Event()
        self._was_tried = threading.Event()  # whether it can be reached directly, so that `direct` tells
        self._there_s = 0.0  # since when the server is there
        self.direct: tcp.Address | None = None  # where the server answers

    @property
    def is_direct(self) -> bool:
        """Whether connections need not go through ssh."""
        return self.direct is not None

    def start(self, timeout_s: float, stop: Callable[[], bool]) -> None:
        """Start the server, if it does not run; raises as answer.begin."""
        with self._lock:
            if self._first is None or self._first.has_ended:
                self._unused = self._start(timeout_s, stop)

    def control(self, timeout_s: float, stop: Callable[[], bool]) -> socket.socket:
        """Return a control channel; the first starts the server, anew where it has ended.

        Raises as answer.begin.
        """
        self.start(timeout_s, stop)
        with self._lock:
            unused, self._unused = self._unused, None
        if unused is not None:
            return unused
        if (direct := self.direct) is not None:
            try:
                return self._secured(direct, CONTROL_PROTOCOL, timeout_s, stop)
            except (AuthenticationError, ConnectionLost):
                self.direct = None  # all goes through ssh from now on
        return self.lane(stdio.CONTROL, timeout_s, stop)

    def data(
        self, connect: Callable[[tcp.Address], socket.socket], timeout_s: float, stop: Callable[[], bool]
    ) -> socket.socket:
        """Return a connection for data, before its opening: directly, else through ssh; see `control`."""
        self._was_tried.wait(worth_waiting_s(time.monotonic() - self._there_s))
        direct = self.direct
        if direct is not None:
            try:
                made = self._context(DATA_PROTOCOL)
                return self._checked(tls.secured(connect(direct), made, self.name, timeout_s, stop=stop))
            except (AuthenticationError, ConnectionLost):
                self.direct = None
        return self.lane(stdio.DATA, timeout_s, stop)

    def addresses(self) -> tuple[tcp.Address, ...]:
        """Return where others may reach the server directly, the best first; none where that is not known."""
        ready, direct = self._ready, self.direct
        if ready is None or ready.port < _FIRST_PORT:
            return ()
        found = [(host, ready.port) for host in self._candidates(ready)]
        return tuple(dict.fromkeys([direct, *found] if direct else found))

    def guest(self) -> tuple[str, str]:
        """Return the name of the server's key, and the certificate with its key that it takes of others."""
        return self._shown.key_name, self._shown.guest

    @property
    def _shown(self) -> CopyCertificates:
        assert self._certificates  # as it has started
        return self._certificates

    def lane(self, use: str, timeout_s: float, stop: Callable[[], bool]) -> socket.socket:
        """Return a connection through ssh, for control or data. Raises as answer.begin."""
        all_go_through = self._was_tried.is_set() and not self.is_direct
        if all_go_through and use == stdio.DATA and self.login.may_log_in:
            try:
                return self._lane(use, self.login.alone(), timeout_s, stop)  # several connections carry more
            except (AuthenticationError, ConnectionLost):
                # It needs somebody who types, and is not to be tried for each stream.
                self.login.may_log_in = False
        return self._lane(use, self.login.shared(), timeout_s, stop)

    def _lane(self, use: str, words: list[str], timeout_s: float, stop: Callable[[], bool]) -> socket.socket:
        with self._lock:
            path, command_there = self._path, self._command
        assert command_there  # that of the first session
        process = SshProcess(words, command_there.text, self.name)
        with self._lock:
            self._lanes.append(process)
        try:
            begin(process, LaneRequest(path, use), timeout_s, stop, lambda: command_there.sent)
        except BaseException:
            self._end(process)
            raise
        is_data = use == stdio.DATA
        return LaneSocket(
            process.socket,
            lambda: is_data and self.is_direct,
            lambda: self._end(process),
            process.has_ended_well,
        )

    def close(self) -> None:
        """End the server and each ssh to it."""
        self._closed.set()
        with self._lock:
            lanes, self._lanes = self._lanes, []
            self._end_first()
            early, self._early = self._early, None
        if early is not None:
            early.close(0.0)
        for lane in lanes:
            lane.close()
        self.login.close()

    # --- starting ------------------------------------------------------------------------------------

    def _start(self, timeout_s: float, stop: Callable[[], bool]) -> socket.socket:
        """Start the server, and return its first control channel. The lock is held."""
        self._end_first()
        making = CertificateMaker() if self._certificates is None else None
        if making:
            making.start()
        self.login.share()
        command_there = self._command = self._command or server_command(self._program)
        early, self._early = self._early, None
        process = early or first_ssh(self.login, command_there, self._program)
        try:
            if making:
                self._certificates = making.made()
            certificates = self._shown
            request = ServeRequest(certificates.own, self.secret, self._ports, certificates.guest_certificate)
            ready = begin(process, request, max(timeout_s, _LOGIN_S), stop, lambda: command_there.sent)
            if ready is None:
                raise ConnectionLost(f"{self.name} started something else than mpx serve --stdio")
        except BaseException:
            process.close(0.0)
            raise
        self._first, self._path, self._ready = process, ready.path, ready
        self._was_tried.clear()
        self._there_s = time.monotonic()
        trying = threading.Thread(target=self._try_directly, args=(ready, timeout_s), name="mpx-direct")
        trying.daemon = True
        trying.start()
        return first_session(process.socket)  # the server ends with that

    def _end_first(self) -> None:
        """End the server; the lock is held."""
        self.direct = None
        if self._first is not None:
            self._first.close()
            self._first = None

    # --- direct connections --------------------------------------------------------------------------

    def _try_directly(self, ready: Ready, timeout_s: float) -> None:
        """Find out where the server can be reached, if anywhere."""
        for host in self._candidates(ready) if ready.port >= _FIRST_PORT else ():
            with contextlib.suppress(MpxError, OSError):
                if self._answers((host, ready.port), timeout_s):
                    break
        self._was_tried.set()

    def _candidates(self, ready: Ready) -> list[str]:
        """Return the addresses to try: those of the host, and the one that the server names.

        Not one that reaches less far than where ssh has come to: that is no business of a server.
        """
        try:
            resolved = tcp.resolve(self.login.host, 1, socket.AF_UNSPEC, self._closed.is_set)
            found = [address[0] for _, address in resolved]
            named = believed_host(str(ipaddress.ip_address(ready.host)), found[0])
        except (MpxError, ValueError, IndexError):
            return []
        return list(dict.fromkeys((named, *found)))

    def _answers(self, address: tcp.Address, timeout_s: float) -> bool:
        """Tell whether the server greets us there: only then it has taken our certificate."""
        with self._secured(address, CONTROL_PROTOCOL, timeout_s, self._closed.is_set) as connection:
            connection.settimeout(timeout_s)
            is_there = connection.recv(_READ_BYTES).startswith(b"220")
            connection.sendall(command("QUIT"))
        with self._lock:
            if is_there and self._first is not None and not self._closed.is_set():
                self.direct = address
        return is_there

    def _secured(
        self, address: tcp.Address, protocol: str, timeout_s: float, stop: Callable[[], bool]
    ) -> tls.TlsSocket:
        connection = tcp.connect(address, timeout_s, stop=stop)
        return self._checked(
            tls.secured(connection, self._context(protocol), self.name, timeout_s, stop=stop)
        )

    def _context(self, protocol: str) -> ssl.SSLContext:
        made = tls.context(server=False, protocols=[protocol])
        tls.load_pem(made, self._shown.own)
        return made

    def _checked(self, connection: tls.TlsSocket) -> tls.TlsSocket:
        if connection.getpeercert(binary_form=True) != self._shown.own_der:
            connection.close()
            raise AuthenticationError(f"another server answers for {self.name}; nothing was sent")
        return connection

    def _end(self, process: SshProcess) -> None:
        """Have a lane end in its own time: it may still have to send what it was given."""
        with self._lock:
            if process not in self._lanes:
                return
            self._lanes.remove(process)
        threading.Thread(target=process.close, args=(_LANE_ENDS_S,), name="mpx-ssh-end", daemon=True).start()


def worth_waiting_s(there_s: float) -> float:
    """Return how long data wait to see whether they can go directly, if the server is there since `there_s`.

    That shows after three round trips. Who wants to send data has made two of them since, and to begin
    through ssh takes two more and a process at either end.
    """
    return _SOON_S + there_s * 0.6 if there_s < _NOT_SOON_S else 0.0
