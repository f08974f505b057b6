"""A scripted FTP and GridFTP server whose answers about files and offsets can be bent, for one test."""

import contextlib
import re
import socket
import struct
import threading
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field

HEADER = struct.Struct(">BQQ")
EOD_EOF = 0x48
FEATURES = ("REST STREAM", "SIZE", "MDTM", "ERET", "PARALLEL", "MLST type*;size*;modify*;")


@dataclass
class Heard:
    """What a session has been told that matters for where the next transfer begins."""

    number: int  # of the session, from 0
    retrieves: int = 0  # before this one
    commands: list[str] = field(default_factory=list)  # verbs, the latest last
    rest: int = 0  # the latest REST


Begins = Callable[[Heard, int], int]  # where a transfer begins, and where it should
Part = Callable[[Heard, int, int], tuple[int, int]]  # likewise offset and length of ERET


class LyingServer:
    """Serves `files` to anonymous users while in the `with` block; what it is not told to bend is true.

    `facts(name)` are those of MLST and MLSD, `size(name)` the answer to SIZE, `sends(name)` what is sent.
    """

    def __init__(
        self,
        files: dict[str, bytes],
        *,
        mode_e: bool = False,
        checksums: bool = False,
        features: tuple[str, ...] = FEATURES,
        begins: Begins = lambda _, offset: offset,
        part: Part = lambda _, offset, length: (offset, length),
        facts: Callable[[str], str] | None = None,
        size: Callable[[str], str] | None = None,
        sends: Callable[[str], bytes] | None = None,
        refuses: Callable[[str], str] = lambda _: "",
        cuts: Callable[[Heard], bool] = lambda _: False,
        waits_for_rest: bool = False,
    ) -> None:
        self.files = files
        self.mode_e = mode_e
        self.features = (*features, "CKSM ADLER32:10;") if checksums else features
        self.begins = begins
        self.part = part
        self.facts = facts or (lambda name: f"type=file;size={len(files[name])};modify=20240101000000;")
        self.size = size or (lambda name: f"213 {len(files[name])}")
        self.sends = sends or files.__getitem__
        self.refuses = refuses  # a command: the reply that refuses it, or nothing
        self.cuts = cuts  # whether the session ends with the data of a retrieve
        self.waits_for_rest = waits_for_rest  # before it answers PASV, but for the first retrieve
        self.heard: list[str] = []  # every command of every session
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._sessions = 0
        self._open: list[socket.socket] = []

    @property
    def url(self) -> str:
        return f"ftp://127.0.0.1:{self._listener.getsockname()[1]}"

    def __enter__(self) -> "LyingServer":
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()
        for connection in self._open:
            connection.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                self._open.append(connection)
                session = _Session(self, connection, self._sessions)
                self._sessions += 1
                threading.Thread(target=session.run, daemon=True).start()


class _Session:
    def __init__(self, server: LyingServer, control: socket.socket, number: int) -> None:
        self.server = server
        self.control = control
        self.heard = Heard(number)
        self.blocks = False
        self.target: tuple[str, int] | None = None
        self.connections: list[socket.socket] = []
        self.streams = 1
        self.passive: socket.socket | None = None
        self.held_back = ""  # an answer

    def say(self, text: str) -> None:
        self.control.sendall(text.encode() + b"\r\n")

    def run(self) -> None:
        with contextlib.suppress(OSError), self.control:
            self.say("220 ready")
            for line in self.control.makefile("r", encoding="utf-8", newline="\r\n"):
                command = line.rstrip("\r\n")
                self.server.heard.append(command)
                verb, _, argument = command.partition(" ")
                refusal = self.server.refuses(command)
                answer = refusal or self.answer(verb.upper(), argument)
                if verb == "PASV" and self.server.waits_for_rest and self.heard.retrieves:
                    self.held_back = answer
                else:
                    self.say(answer)
                self.heard.commands.append(verb.upper())
        for connection in self.connections:
            connection.close()

    def answer(self, verb: str, argument: str) -> str:
        server = self.server
        match verb:
            case "USER" | "PASS":
                return "230 in"
            case "FEAT":
                return "211-Features\r\n" + "".join(f" {each}\r\n" for each in server.features) + "211 End"
            case "PWD":
                return '257 "/"'
            case "MODE":
                if argument == "E" and not server.mode_e:
                    return "504 no"
                self.blocks = argument == "E"
            case "OPTS":
                if found := re.search(r"Parallelism=(\d+)", argument):
                    self.streams = int(found.group(1))
            case "PASV":
                self.passive = socket.create_server(("127.0.0.1", 0))
                port = self.passive.getsockname()[1]
                return f"227 Entering Passive Mode (127,0,0,1,{port >> 8},{port & 255})"
            case "PORT":
                numbers = [int(each) for each in argument.split(",")]
                self.target = ".".join(map(str, numbers[:4])), numbers[4] * 256 + numbers[5]
                for connection in self.connections:
                    connection.close()
                self.connections = []
            case "REST":
                self.heard.rest = int(argument)
                if self.held_back:
                    self.say(self.held_back)
                    self.held_back = ""
                return "350 restarting"
            case "CWD":
                return "250 there" if argument.rstrip("/") in self.folders() else "550 no such folder"
            case "SIZE" | "MDTM" | "MLST" | "CKSM" | "RETR" | "ERET":
                return self.about(verb, argument)
            case "MLSD":
                lines = [f"{server.facts(name)} {name.rsplit('/', 1)[1]}" for name in server.files]
                return self.send("".join(f"{line}\r\n" for line in lines).encode())
            case "QUIT":
                raise OSError("over")
        return "200 fine"

    def folders(self) -> set[str]:
        return {name.rsplit("/", 1)[0] for name in self.server.files}

    def about(self, verb: str, argument: str) -> str:
        """Answer what names a file, as the last word."""
        server, name = self.server, argument.rsplit(" ", 1)[-1]
        if verb == "MLST" and name.rstrip("/") in self.folders():
            return f"250-Listing\r\n type=dir; {name}\r\n250 End"
        if name not in server.files:
            return "550 No such file or directory"
        match verb:
            case "SIZE":
                return server.size(name)
            case "MDTM":
                return "213 20240101000000"
            case "MLST":
                return f"250-Listing\r\n {server.facts(name)} {name}\r\n250 End"
            case "CKSM":
                _, start, length, _ = argument.split(" ", 3)
                return f"213 {zlib.adler32(server.sends(name)[int(start) :][: int(length)]):08x}"
            case "RETR":
                start = server.begins(self.heard, self.heard.rest)
                self.heard.rest = 0 if start == self.heard.rest else self.heard.rest
                self.heard.retrieves += 1
                said = self.send(server.sends(name)[start:])
                if server.cuts(self.heard):
                    raise OSError("cut")
                return said
        _, offset, length, _ = argument.split(" ", 3)
        first, count = server.part(self.heard, int(offset), int(length))
        self.heard.retrieves += 1
        return self.send(server.sends(name)[first : first + count])

    def send(self, data: bytes) -> str:
        self.say("150 here it comes")
        return self.send_blocks(data) if self.blocks else self.send_stream(data)

    def send_stream(self, data: bytes) -> str:
        assert self.passive is not None
        connection, _ = self.passive.accept()
        self.passive.close()
        with connection:
            try:
                connection.sendall(data)
            except OSError:
                return "426 you closed it"
        return "226 sent"

    def send_blocks(self, data: bytes) -> str:
        assert self.target is not None
        while len(self.connections) < self.streams:
            self.connections.append(socket.create_connection(self.target))
        first = self.connections[0]
        for offset in range(0, len(data), 65536):
            block = data[offset : offset + 65536]
            first.sendall(HEADER.pack(0, len(block), offset) + block)
        for connection in self.connections[1:]:
            connection.sendall(HEADER.pack(8, 0, 0))
        first.sendall(HEADER.pack(EOD_EOF, 0, len(self.connections)))
        return "226 sent"
