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
from collections.abc import Callable
from datetime import timedelta

from mpx.choices import PortRange
from mpx.endpoints.ftp.extensions import stdio
from mpx.endpoints.ftp.extensions.dialing import CONTROL_PROTOCOL, DATA_PROTOCOL
from mpx.endpoints.ftp.extensions.stdio import LaneRequest, Ready, ServeRequest
from mpx.endpoints.ftp.ssh.bundle import bundle
from mpx.endpoints.ftp.ssh.lane import LaneSocket, first_session
from mpx.endpoints.ftp.ssh.loader import loader_words
from mpx.endpoints.ftp.ssh.server_process import ServerProcess
from mpx.endpoints.ftp.wire import command
from mpx.endpoints.ssh.command_line import RemoteProgram, serve_command
from mpx.endpoints.ssh.login import SshLogin
from mpx.errors import AuthenticationError, ConnectionLost, MpxError
from mpx.location import Location
from mpx.net import tcp, tls
from mpx.net.reach import believed_host
from mpx.net.self_signed import self_signed

_LOGIN_S = 120.0  # somebody may have to type a password, or to look for a second factor
_CERTIFICATE_DAYS = 3650  # both ways: clocks may differ, and only this copy knows it
_LANE_ENDS_S = 60.0
_FIRST_PORT = 1024  # that is connected to
_READ_BYTES = 4096


class RemoteServer:
    """One server at one host, for one copy. For any thread."""

    def __init__(self, location: Location, program: RemoteProgram, ports: PortRange | None) -> None:
        self.login = SshLogin(location)
        self._program = program
        self._ports = ports
        self.secret = secrets.token_urlsafe(32)
        self._lock = threading.Lock()
        self._first: ServerProcess | None = None  # the server lives as long as this; guarded, as what follows
        self._unused: socket.socket | None = None  # its first control channel, which nobody has asked for yet
        self._path = ""  # where it takes lanes
        self._sent = b""  # the server, where it is sent
        self._lanes: list[ServerProcess] = []
        self._pem = ""
        self._closed = threading.Event()
        self._was_tried = threading.Event()  # whether it can be reached directly
        self.direct: tcp.Address | None = None  # where the server answers

    @property
    def is_direct(self) -> bool:
        """Whether connections need not go through ssh."""
        return self.direct is not None

    def start(self, timeout_s: float, stop: Callable[[], bool]) -> None:
        """Start the server, if it does not run; raises as ServerProcess.begin."""
        with self._lock:
            if self._first is None or self._first.has_ended:
                self._unused = self._start(timeout_s, stop)

    def control(self, timeout_s: float, stop: Callable[[], bool]) -> socket.socket:
        """Return a control channel; the first starts the server, anew where it has ended.

        Raises as ServerProcess.begin.
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
        direct = self.direct
        if direct is not None:
            try:
                made = self._context(DATA_PROTOCOL)
                return self._checked(
                    tls.secured(connect(direct), made, self.login.name, timeout_s, stop=stop)
                )
            except (AuthenticationError, ConnectionLost):
                self.direct = None
        return self.lane(stdio.DATA, timeout_s, stop)

    def lane(self, use: str, timeout_s: float, stop: Callable[[], bool]) -> socket.socket:
        """Return a connection through ssh, for control or data. Raises as ServerProcess.begin."""
        if self._was_tried.is_set() and use == stdio.DATA and self.login.may_log_in:
            try:
                return self._lane(use, self.login.alone(), timeout_s, stop)  # several connections carry more
            except (AuthenticationError, ConnectionLost):
                # It needs somebody who types, and is not to be tried for each stream.
                self.login.may_log_in = False
        return self._lane(use, self.login.shared(), timeout_s, stop)

    def _lane(self, use: str, words: list[str], timeout_s: float, stop: Callable[[], bool]) -> socket.socket:
        process = ServerProcess(words, self._command(), self.login.name)
        with self._lock:
            path = self._path
            self._lanes.append(process)
        try:
            process.begin(LaneRequest(path, use), timeout_s, stop, lambda: self._sent)
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
        for lane in lanes:
            lane.close()
        self.login.close()

    # --- starting ------------------------------------------------------------------------------------

    def _start(self, timeout_s: float, stop: Callable[[], bool]) -> socket.socket:
        """Start the server, and return its first control channel. The lock is held."""
        self._end_first()
        making = None if self._pem else _Making()
        if making:
            making.start()
            self.login.share()
        words = self.login.first(persists=self._program.is_looked_for)
        process = ServerProcess(words, self._command(), self.login.name)
        try:
            if making:
                self._pem = making.pem()
            request = ServeRequest(self._pem, self.secret, self._ports)
            ready = process.begin(request, max(timeout_s, _LOGIN_S), stop, lambda: self._sent)
            if ready is None:
                raise ConnectionLost(f"{self.login.name} started something else than mpx serve --stdio")
        except BaseException:
            process.close()
            raise
        self._first, self._path = process, ready.path
        self._was_tried.clear()
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

    def _command(self) -> str:
        if not self._program.bootstrap:
            return serve_command(self._program)
        self._sent = self._sent or bundle()
        return serve_command(self._program, loader_words(self._sent, keep=self._program.keep))

    # --- direct connections --------------------------------------------------------------------------

    def _try_directly(self, ready: Ready, timeout_s: float) -> None:
        """Find out where the server can be reached, if anywhere."""
        for host in self._candidates(ready) if ready.port >= _FIRST_PORT else ():
            with contextlib.suppress(MpxError, OSError):
                if self._answers((host, ready.port), timeout_s):
                    return
        self._was_tried.set()

    def _candidates(self, ready: Ready) -> list[str]:
        """Return the addresses to try: those of the host, and the one that the server names.

        Not one that reaches less far than where ssh has come to: that is no business of a server.
        """
        try:
            found = [
                address[0]
                for _, address in tcp.resolve(self.login.host, 1, socket.AF_UNSPEC, self._closed.is_set)
            ]
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
            tls.secured(connection, self._context(protocol), self.login.name, timeout_s, stop=stop)
        )

    def _context(self, protocol: str) -> ssl.SSLContext:
        made = tls.context(server=False, protocols=[protocol])
        tls.load_pem(made, self._pem)
        return made

    def _checked(self, connection: tls.TlsSocket) -> tls.TlsSocket:
        if connection.getpeercert(binary_form=True) != ssl.PEM_cert_to_DER_cert(_certificate(self._pem)):
            connection.close()
            raise AuthenticationError(f"another server answers for {self.login.name}; nothing was sent")
        return connection

    def _end(self, process: ServerProcess) -> None:
        """Have a lane end in its own time: it may still have to send what it was given."""
        with self._lock:
            if process not in self._lanes:
                return
            self._lanes.remove(process)
        threading.Thread(target=process.close, args=(_LANE_ENDS_S,), name="mpx-ssh-end", daemon=True).start()


class _Making(threading.Thread):
    """Makes the certificate while ssh logs in."""

    def __init__(self) -> None:
        super().__init__(name="mpx-certificate", daemon=True)
        self._pem = ""
        self._failed: Exception | None = None

    def run(self) -> None:
        try:
            certificate, key = self_signed(
                "mpx copy", timedelta(days=_CERTIFICATE_DAYS), since=timedelta(days=_CERTIFICATE_DAYS)
            )
            self._pem = (certificate + key).decode("ascii")
        except Exception as error:  # told by `pem`
            self._failed = error

    def pem(self) -> str:
        """Return it."""
        self.join()
        if self._failed is not None:
            raise MpxError(f"cannot make a certificate: {self._failed}")
        return self._pem


def _certificate(pem: str) -> str:
    end = "-----END CERTIFICATE-----"
    return pem[: pem.index(end) + len(end)]
