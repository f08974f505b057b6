"""An FTP server on loopback whose every answer a test may replace, for peers that lie.

It sends one file, in MODE S and MODE E, and lists one folder. Where a script has an entry for a verb, that
is called instead of what the server would do: it gets the dialogue and the argument, and returns the reply,
or None when it has said all itself.
"""

import contextlib
import socket
import threading
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Self

from mpx.endpoints.ftp.framing import EOD, EOF, BlockHeader
from mpx.endpoints.ftp.wire import parse_host_port

Script = Mapping[str, Callable[["Dialogue", str], str | None]]
FEATURES = (
    "MLST Type*;Size*;Modify*;",
    "REST STREAM",
    "SIZE",
    "ERET",
    "ESTO",
    "PARALLEL",
    "CKSM ADLER32:10;",
)
PATIENCE_S = 60.0  # of the server, longer than any client's here


class Dialogue:
    """One control connection, and the data connection that was asked for last."""

    def __init__(self, server: "ScriptedServer", control: socket.socket) -> None:
        self.server = server
        self.control = control
        self.blocks = False
        self.verb = "greeting"  # what is being answered
        self._listener: socket.socket | None = None
        self._client: tuple[str, int] | None = None
        self._kept: socket.socket | None = None

    def say(self, text: str) -> None:
        """Send a reply."""
        self.control.sendall(text.encode("utf-8", "surrogateescape") + b"\r\n")

    def open_data(self) -> socket.socket:
        """Return the data connection for the command under way."""
        if self._client:
            return socket.create_connection(self._client, PATIENCE_S)
        if self._listener is None:
            raise ConnectionError("no port was asked for")
        return self._listener.accept()[0]

    def listen(self) -> int:
        """Return the port of a new listener for data."""
        self.close()
        self._listener = socket.create_server((self.server.host, 0), family=self.control.family)
        self._listener.settimeout(PATIENCE_S)
        self._client = None
        return int(self._listener.getsockname()[1])

    def close(self) -> None:
        """Stop listening."""
        if self._listener:
            self._listener.close()
        self._listener = None

    def _keep_nothing(self) -> None:
        if self._kept:
            self._kept.close()
        self._kept = None

    def run(self) -> None:
        """Answer until the client goes."""
        script = self.server.script
        with contextlib.suppress(OSError), self.control, self.control.makefile("rb") as lines:
            if (banner := script.get("banner", lambda *_: "220 ready")(self, "")) is not None:
                self.say(banner)
            for line in lines:
                verb, _, argument = line.decode("utf-8", "surrogateescape").strip("\r\n").partition(" ")
                self.server.heard.append(verb)
                self.verb = verb
                reply = script[verb](self, argument) if verb in script else self.answer(verb, argument)
                if reply is not None:
                    self.say(reply)
        self._keep_nothing()
        self.close()

    def answer(self, verb: str, argument: str) -> str | None:
        """Do what a command says; return the reply, or None when all is said."""
        known = getattr(self, f"_{verb.lower()}", None)
        return known(argument) if known else "502 not implemented"

    def _user(self, argument: str) -> str:
        return "230 welcome"

    def _feat(self, argument: str) -> str:
        return "\r\n".join(["211-Features", *(f" {line}" for line in FEATURES), "211 End"])

    def _ok(self, argument: str) -> str:
        return "200 ok"

    _type = _noop = _opts = _trev = _ok

    def _rest(self, argument: str) -> str:
        return "350 ok"

    def _pwd(self, argument: str) -> str:
        return '257 "/"'

    def _mode(self, argument: str) -> str:
        self.blocks = argument == "E"
        return "200 ok"

    def _size(self, argument: str) -> str:
        return f"213 {len(self.server.content)}" if argument.endswith("/file") else "550 no such file"

    def _mlst(self, argument: str) -> str:
        file = f"Type=file;Size={len(self.server.content)};"
        kind = {"/file": file, "/folder/file": file, "/folder": "Type=dir;", "/": "Type=dir;"}.get(argument)
        return f"250-facts\r\n {kind} {argument}\r\n250 end" if kind else "550 no such file"

    def _epsv(self, argument: str) -> str:
        return f"229 go (|||{self.listen()}|)"

    def _pasv(self, argument: str) -> str:
        port = self.listen()
        return f"227 go (127,0,0,1,{port // 256},{port % 256})"

    def _port(self, argument: str) -> str:
        self._client = parse_host_port(argument)
        self._keep_nothing()
        return "200 ok"

    def _mlsd(self, argument: str) -> str:
        with self.open_data() as data:
            self.say("150 go")
            data.sendall(f"Type=file;Size={len(self.server.content)}; file\r\n".encode())
        return "226 done"

    def _retr(self, argument: str) -> str:
        with self.open_data() as data:
            self.say("150 go")
            data.sendall(self.server.content)
        return "226 done"

    def _cksm(self, argument: str) -> str:
        _, start, size, _ = argument.split(" ", 3)
        return f"213 {zlib.adler32(self.server.content[int(start) : int(start) + int(size)]):08x}"

    def _eret(self, argument: str) -> str:
        _, start, size, _ = argument.split(" ", 3)
        part = self.server.content[int(start) : int(start) + int(size)]
        if self._kept is None:  # without CLOSE the connection serves the next retrieve too
            self._kept = self.open_data()
        self.say("150 go")
        self._kept.sendall(BlockHeader(0, len(part), 0).pack() + part + BlockHeader(EOD | EOF, 0, 1).pack())
        return "226 done"


class ScriptedServer:
    """Runs while in the `with` block. `heard` holds the verbs of all commands, in their order."""

    dialogue = Dialogue  # of each control connection

    def __init__(
        self, script: Script | None = None, content: bytes = b"x" * 300_000, host: str = "127.0.0.1"
    ) -> None:
        self.script: Script = script or {}
        self.content = content
        self.host = host
        self.heard: list[str] = []
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._listener = socket.create_server((host, 0), family=family)
        self._open: list[socket.socket] = []
        self._accepting = threading.Thread(target=self._accept, daemon=True)

    @property
    def url(self) -> str:
        """Of its root, without a slash at the end."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"ftp://{host}:{self._listener.getsockname()[1]}"

    def __enter__(self) -> Self:
        self._accepting.start()
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):  # it may be closed; to close it alone would not end who accepts
            self._listener.shutdown(socket.SHUT_RDWR)
        self._accepting.join()
        self._listener.close()
        for connection in self._open:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                control, _ = self._listener.accept()
                control.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._open.append(control)
                threading.Thread(target=self.dialogue(self, control).run, daemon=True).start()


def without_end(connection: socket.socket, pieces: Iterator[bytes]) -> None:
    """Send for as long as the other side is there."""
    with contextlib.suppress(OSError):
        for piece in pieces:
            connection.sendall(piece)
