"""Our server at the other end of the user's ssh, shared by all sessions of a copy with that host.

The first session goes through ssh, and so do data at first; meanwhile it is tried whether the server can be
reached directly. From then on connections are direct, inside TLS, in which both ends show the one certificate
that was made for this copy and sent through ssh.
"""

import contextlib
import secrets
import socket
import threading
from collections.abc import Callable

from mpx.choices import PortRange
from mpx.endpoints.ftp.extensions import stdio
from mpx.endpoints.ftp.extensions.stdio import LaneRequest, ServeRequest
from mpx.endpoints.ftp.ssh.answer import NoServer, begin
from mpx.endpoints.ftp.ssh.certificates import CertificateMaker, CopyCertificates
from mpx.endpoints.ftp.ssh.direct import DirectWay
from mpx.endpoints.ftp.ssh.lane import Lanes, first_session
from mpx.endpoints.ftp.ssh.start import EarlySsh, first_ssh, server_command
from mpx.endpoints.ssh.command_line import RemoteProgram
from mpx.endpoints.ssh.login import SshLogin
from mpx.endpoints.ssh.process import CommandEnded, SessionRefused, SshProcess
from mpx.errors import AuthenticationError, ConnectionLost
from mpx.location import Location
from mpx.net import tcp
from mpx.net.dial import Dial

_LOGIN_S = 120.0  # somebody may have to type a password, or to look for a second factor


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
        self._trying_alone = threading.Lock()  # held while it is not known whether a login asks for anything
        self._lock = threading.Lock()
        self._command = early.command if early else None  # guarded, as what follows
        self._early = early.process if early else None
        self._first: SshProcess | None = None  # the server lives as long as this
        self._unused: socket.socket | None = None  # its first control channel, which nobody has asked for yet
        self._path = ""  # where it takes lanes
        self._lanes = Lanes()
        self._certificates: CopyCertificates | None = None  # from the first start on
        self._direct: DirectWay | None = None  # once the server is there

    @property
    def direct(self) -> tcp.Address | None:
        """Where the server answers without ssh, if that is known."""
        way = self._direct
        return way.address if way else None

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
        way = self._direct
        direct = way.control(timeout_s, stop) if way else None
        return direct or self.lane(stdio.CONTROL, timeout_s, stop)

    def data(self, dial: Dial, timeout_s: float, stop: Callable[[], bool]) -> socket.socket:
        """Return a connection for data, before its opening: directly, else through ssh; see `control`."""
        way = self._direct
        direct = way.data(dial, timeout_s, stop) if way else None
        return direct or self.lane(stdio.DATA, timeout_s, stop)

    def addresses(self) -> tuple[tcp.Address, ...]:
        """Return where others may reach the server directly, the best first; none where that is not known."""
        way = self._direct
        return way.addresses() if way else ()

    def guest(self) -> tuple[str, str]:
        """Return the name of the server's key, and the certificate with its key that it takes of others."""
        return self._shown.key_name, self._shown.guest

    @property
    def _shown(self) -> CopyCertificates:
        assert self._certificates  # as it has started
        return self._certificates

    def lane(self, use: str, timeout_s: float, stop: Callable[[], bool]) -> socket.socket:
        """Return a connection through ssh, for control or data. Raises as answer.begin."""
        way = self._direct
        all_go_through = way is not None and way.was_tried.is_set() and way.address is None
        is_alone_first = all_go_through and use == stdio.DATA  # several connections carry more
        if is_alone_first and (lane := self._lane_alone(use, timeout_s, stop)):
            return lane
        try:
            return self._lane(use, self.login.shared(), timeout_s, stop)
        except SessionRefused:
            if is_alone_first or not (lane := self._lane_alone(use, timeout_s, stop)):
                raise
            return lane

    def _lane_alone(self, use: str, timeout_s: float, stop: Callable[[], bool]) -> socket.socket | None:
        """Return a connection through an ssh with a login of its own; None where that is not to be had."""
        with contextlib.nullcontext() if self.login.may_log_in else self._trying_alone:
            if self.login.may_log_in is False:
                return None
            try:
                lane = self._lane(use, self.login.alone(), timeout_s, stop)
            except (AuthenticationError, ConnectionLost):
                # It needs somebody who types, and is not to be tried for each stream.
                self.login.may_log_in = False
                return None
            self.login.may_log_in = True
            return lane

    def _lane(self, use: str, words: list[str], timeout_s: float, stop: Callable[[], bool]) -> socket.socket:
        with self._lock:
            path, command_there = self._path, self._command
        assert command_there  # that of the first session
        process, is_data = SshProcess(words, command_there.text, self.name), use == stdio.DATA

        def ask(process: SshProcess) -> bytes:
            begin(process, LaneRequest(path, use), timeout_s, stop, lambda: command_there.sent)
            return b""

        return self._lanes.begun(process, ask, lambda: is_data and self.direct is not None)

    def close(self) -> None:
        """End the server and each ssh to it."""
        with self._lock:
            self._end_first()
            early, self._early = self._early, None
        if early is not None:
            early.close(0.0)
        self._lanes.close()
        self.login.close()

    # --- starting ------------------------------------------------------------------------------------

    def _start(self, timeout_s: float, stop: Callable[[], bool]) -> socket.socket:
        """Start the server, and return its first control channel. The lock is held."""
        self._end_first()
        making = CertificateMaker() if self._certificates is None else None
        if making:
            making.start()
        self.login.share()
        self.login.check()
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
            self.login.passed(process.said(), is_in=True)
        except BaseException as error:
            self.login.passed(process.said(), is_in=isinstance(error, (CommandEnded, NoServer)))
            process.close(0.0)
            if isinstance(error, AuthenticationError):
                raise self.login.refused(error) from None
            raise
        self._first, self._path = process, ready.path
        self._direct = DirectWay(self.name, self.login.host, self._shown, ready)
        self._direct.start(timeout_s)
        return first_session(process)  # the server ends with that

    def _end_first(self) -> None:
        """End the server; the lock is held."""
        if self._direct is not None:
            self._direct.close()
        if self._first is not None:
            self._first.close()
            self._first = None
