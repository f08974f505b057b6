"""A GridFTP server with GSI whose every answer a test may replace: for servers that nobody can install here.

It has an account for everybody, lists one folder, and begins data connections with the certificate that it
was sent (DCSC), encrypted or not as it was told (PROT).
"""

import base64
import contextlib
import socket
import ssl
import threading
from collections.abc import Callable, Mapping
from typing import Self

from mpx_lab.private_grid import PrivateGrid

from mpx.endpoints.ftp.gsi.data import GsiData
from mpx.net.tls import load_pem, show_key

Answer = Callable[["FakeSession", str], str | None]
PATIENCE_S = 60.0
LISTED = "Type=file;Size=3; one\r\n"


class FakeSession:
    """One control connection; `heard`: its commands, without what is secret of them."""

    def __init__(self, server: "FakeGrid", control: socket.socket) -> None:
        self.server, self.control = server, control
        self.heard: list[str] = []
        self.level = "C"
        self.knows_client = False  # it has seen a certificate
        self.pem = ""
        self._lines = control.makefile("rb")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.num_tickets = 0
        show_key(context, server.grid.host.pem + server.grid.host.key_pem)
        context.load_verify_locations(cadata=server.grid.ca.pem)
        context.verify_mode = ssl.CERT_REQUIRED
        context.verify_flags = ssl.VerifyFlags(context.verify_flags | 0x40)
        context.maximum_version = server.version
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.incoming, self.outgoing, server_side=True)
        self._listener: socket.socket | None = None

    @property
    def data_port(self) -> socket.socket:
        """The listener that was asked for last."""
        assert self._listener
        return self._listener

    def say_clear(self, text: str) -> None:
        self.control.sendall(text.encode() + b"\r\n")

    def say(self, text: str) -> None:
        """Send a reply, encrypted."""
        self.tls.write(text.encode() + b"\r\n")
        self.say_clear(f"632 {base64.b64encode(self.outgoing.read()).decode()}")

    def run(self) -> None:
        with contextlib.suppress(OSError, StopIteration), self.control:
            if self.server.loses_early:
                self.control.settimeout(0.3)
                with contextlib.suppress(TimeoutError):
                    while self.control.recv(65536):
                        pass
                self.control.settimeout(None)
                self._lines = self.control.makefile("rb")
            self.say_clear("220 ready")
            assert next(self._lines) == b"AUTH GSSAPI\r\n"
            self.say_clear("334 go on")
            self._authenticate()
            while True:
                line = next(self._lines)
                self.incoming.write(base64.b64decode(line.removeprefix(b"ENC ")))
                verb, _, argument = self.tls.read(1 << 16).decode("utf-8", "replace").strip().partition(" ")
                self.heard.append(verb if verb in ("DCSC", "PASS") else f"{verb} {argument}".strip())
                own = self.server.answers.get(verb, FakeSession.answer)
                answered = (
                    own(self, argument) if own is not FakeSession.answer else self.answer(verb, argument)
                )
                if answered is not None:
                    self.say(answered)

    def _authenticate(self) -> None:
        while True:
            self._hear()
            try:
                self.tls.do_handshake()
                self.knows_client = True
                break
            except ssl.SSLWantReadError:
                self._adat()
        if self.tls.version() != "TLSv1.2":
            if not self.server.is_terse:
                self.tls.write(b"\0")
            self._adat()
        elif rest := self.outgoing.read():
            self.say_clear(f"335 ADAT={base64.b64encode(rest).decode()}")
        self._hear()
        assert self.tls.read(10) == b"0"
        self.say_clear("235 in")

    def _hear(self) -> None:
        self.incoming.write(base64.b64decode(next(self._lines).split(b" ", 1)[1]))

    def _adat(self) -> None:
        self.say_clear(f"335 ADAT={base64.b64encode(self.outgoing.read()).decode()}")

    def answer(self, verb: str, argument: str) -> str | None:
        """What a sound server says."""
        if verb == "USER":
            return "331 password"
        if verb == "PASS":
            return "230 in"
        if verb == "FEAT":
            for line in ("211-Features", " MLST Type*;Size*;", " DCSC P,D", "211 End"):
                self.say(line)
            return None
        if verb == "PWD":
            return '257 "/"'
        if verb == "PROT":
            self.level = argument
        if verb == "DCSC":
            self.pem = base64.b64decode(argument.split()[1]).decode()
        if verb == "EPSV":
            self._listener = socket.create_server(("127.0.0.1", 0))
            return f"229 (|||{self._listener.getsockname()[1]}|)"
        if verb == "MLST":
            self.say("250-here")
            self.say(f" Type=dir; {argument}")
            return "250 end"
        if verb == "MLSD":
            return self._list()
        return "200 ok" if verb in ("TYPE", "DCAU", "PBSZ", "PROT", "DCSC", "MODE", "NOOP") else "500 what?"

    def _list(self) -> str:
        self.say("150 here")
        plain, _ = self.data_port.accept()
        data = GsiData(
            "the client", lambda made: load_pem(made, self.pem), lambda _: None, is_private=self.level == "P"
        )
        with data.accept(plain, PATIENCE_S, lambda: False) as connection:
            connection.sendall(LISTED.encode())
            connection.shutdown(socket.SHUT_WR)
        return "226 done"


class FakeGrid:
    """Listens on loopback, as a host of a grid."""

    def __init__(
        self,
        grid: PrivateGrid,
        answers: Mapping[str, Answer] | None = None,
        *,
        loses_early: bool = False,
        is_terse: bool = False,
        version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3,
    ) -> None:
        """`loses_early`: what comes before the greeting. `is_terse`: it says nothing that it need not say."""
        self.grid, self.answers = grid, dict(answers or {})
        self.loses_early, self.is_terse, self.version = loses_early, is_terse, version
        self.sessions: list[FakeSession] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._threads: list[threading.Thread] = []

    @property
    def url(self) -> str:
        return f"gsiftp://localhost:{self._listener.getsockname()[1]}/"

    @property
    def heard(self) -> list[str]:
        return [line for session in self.sessions for line in session.heard]

    def __enter__(self) -> Self:
        self._start(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        for session in self.sessions:
            with contextlib.suppress(OSError):
                session.control.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        self._listener.close()

    def _start(self, run: Callable[[], None]) -> None:
        thread = threading.Thread(target=run)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                control, _ = self._listener.accept()
                session = FakeSession(self, control)
                self.sessions.append(session)
                self._start(session.run)
