"""A scripted FTP server over files in memory: truthful, unless a test replaces its answers.

It knows MODE S and MODE E, offsets (REST, ERET), MLSD and LIST, checksums of parts, and renames. Each answer
may be replaced as with ScriptedServer.
"""

import posixpath
import select
import socket
import zlib
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath

from interop.scripted_server import PATIENCE_S, Dialogue, Script, ScriptedServer

from mpx.endpoints.ftp.framing import CLOSE, EOD, EOF, HEADER_BYTES, BlockHeader, unpack_header

FEATURES = ("MLST type*;size*;modify*;", "SIZE", "MDTM", "MFMT", "REST STREAM")
BLOCK_BYTES = 64 * 1024
MISSING = "550 No such file or directory"


class StoringDialogue(Dialogue):
    """One control connection; names are absolute, or below the folder that was entered."""

    server: "StoringServer"
    folder = "/"
    asked: str | None = None  # what is to be renamed
    rest = 0  # where the next transfer begins

    def __init__(self, server: "StoringServer", control: socket.socket) -> None:
        super().__init__(server, control)
        self._uploads: list[socket.socket] = []  # connections over which blocks come; they outlive a file

    def name(self, argument: str) -> str:
        """Return the absolute name of an argument."""
        return posixpath.normpath(posixpath.join(self.folder, argument))

    def _feat(self, argument: str) -> str:
        return "\r\n".join(["211-Features", *(f" {line}" for line in self.server.features), "211 End"])

    def _mode(self, argument: str) -> str:
        if argument == "E" and not self.server.mode_e:
            return "504 only S"
        self.blocks = argument == "E"
        return "200 ok"

    def _rest(self, argument: str) -> str:
        self.rest = int(argument) if argument.isdecimal() else 0
        return "350 ok"

    def start(self) -> int:
        """Return where the transfer under way begins."""
        start, self.rest = self.rest, 0
        return start

    # --- what it says of files -----------------------------------------------------------------------

    def _cwd(self, argument: str) -> str:
        if self.name(argument) not in self.server.folders:
            return "550 Failed to change directory."
        self.folder = self.name(argument)
        return "250 ok"

    def _size(self, argument: str) -> str:
        name = self.name(argument)
        return f"213 {self.size(name)}" if name in self.server.files else "550 No such file"

    def size(self, name: str) -> int:
        """Return how many bytes a file has."""
        return len(self.server.files[name])

    def _mdtm(self, argument: str) -> str:
        if self.name(argument) not in self.server.files:
            return "550 No such file"
        return f"213 {self.server.times.get(self.name(argument), self.server.modified)}"

    def _mfmt(self, argument: str) -> str:
        when, _, name = argument.partition(" ")
        if self.name(name) not in {*self.server.files, *self.server.folders}:
            return MISSING
        self.server.times[self.name(name)] = when
        return f"213 Modify={when}; {name}"

    def facts(self, name: str) -> str:
        if name in self.server.folders:
            return "type=dir;"
        when = self.server.times.get(name, self.server.modified)
        return f"type=file;size={self.size(name)};modify={when};"

    def _mlst(self, argument: str) -> str:
        name = self.name(argument)
        if name not in self.server.files and name not in self.server.folders:
            return MISSING
        return f"250-facts\r\n {self.facts(name)} {argument}\r\n250 end"

    def _cksm(self, argument: str) -> str:
        _, start, size, name = argument.split(" ", 3)
        if self.name(name) not in self.server.files:
            return MISSING
        content = (self.content(self.name(name)) or b"")[int(start) :]
        part = content if int(size) < 0 else content[: int(size)]
        return f"213 {zlib.adler32(part):08x}"

    def children(self, folder: str) -> list[str]:
        """Return the absolute names of what is in a folder."""
        names = [*self.server.files, *self.server.folders]
        return [name for name in names if name != "/" and posixpath.dirname(name) == folder]

    def _mlsd(self, argument: str) -> str | None:
        folder = self.name(argument)
        if folder not in self.server.folders:
            return MISSING
        lines = [f"{self.facts(each)} {posixpath.basename(each)}\r\n" for each in self.children(folder)]
        return self.send_lines(lines)

    def _list(self, argument: str) -> str | None:
        lines = []
        for each in self.children(self.folder):
            is_file = each in self.server.files
            about = (
                f"{'-' if is_file else 'd'}rw-r--r-- 1 u g {self.size(each) if is_file else 0} Jan  2  2020"
            )
            lines.append(f"{about} {posixpath.basename(each)}\r\n")
        return self.send_lines(lines)

    def send_lines(self, lines: list[str]) -> str | None:
        """Send a listing, which is always in MODE S."""
        return self.send_stream("".join(lines).encode("utf-8", "surrogateescape"))

    # --- data --------------------------------------------------------------------------------------

    def send(self, content: bytes) -> str:
        """Send (a part of) a file; return the last reply."""
        if not self.blocks:
            return self.send_stream(content)
        if self._kept is None:  # which stays for the next transfer
            self._kept = self.open_data()
        self.say("150 go")
        return self.transmit(self._kept, content)

    def send_stream(self, content: bytes) -> str:
        with self.open_data() as data:
            self.say("150 go")
            return self.transmit(data, content)

    def transmit(self, data: socket.socket, content: bytes) -> str:
        """Send over a data connection; return the last reply."""
        try:
            data.sendall(framed(content) if self.blocks else content)
        except OSError:
            return "426 you closed it"
        return "226 done"

    def receive(self, content: bytearray | None = None, start: int = 0) -> bytes:
        """Take what comes over the data connections, to its end, into `content` from `start` on."""
        content = bytearray() if content is None else content
        if self.blocks:
            self._receive_blocks(content, start)
            return bytes(content)
        with self.open_data() as data:
            self.say("150 go")
            while more := data.recv(1 << 16):
                content += more
                self.took(len(content) - len(more), len(content), [data])
        return bytes(content)

    def took(self, start: int, end: int, connections: Sequence[socket.socket]) -> None:
        """Called whenever a part of a file has come over one of these connections."""

    def _receive_blocks(self, content: bytearray, start: int) -> None:
        """Take the blocks of one transfer over as many connections as join it."""
        going, ended, total = list(self._uploads), 0, None
        self.say("150 go")
        while total is None or ended < total:
            joins = [self._listener] if self._listener else []
            ready = select.select([*going, *joins], [], [], PATIENCE_S)[0]
            if not ready:
                raise ConnectionError("no data has come")
            for connection in ready:
                if connection is self._listener:
                    going.append(connection.accept()[0])
                    self._uploads.append(going[-1])
                    continue
                header = self._receive_block(connection, content, start)
                total = header.total_streams or total
                if header.ends_data:
                    going.remove(connection)
                    ended += 1
                if header.descriptor & CLOSE:
                    self._uploads.remove(connection)
                    connection.close()

    def _receive_block(self, connection: socket.socket, content: bytearray, start: int) -> BlockHeader:
        header = unpack_header(self._exactly(connection, HEADER_BYTES))
        if block := self._exactly(connection, header.count):  # else the offset is no offset
            at = start + header.offset
            content += bytes(max(0, at - len(content)))
            content[at : at + len(block)] = block
            self.took(at, at + len(block), self._uploads)
        return header

    @staticmethod
    def _exactly(connection: socket.socket, size_bytes: int) -> bytes:
        got = connection.recv(size_bytes, socket.MSG_WAITALL) if size_bytes else b""
        if len(got) < size_bytes:
            raise ConnectionError("the data connection has ended before the data")
        return got

    def close(self) -> None:
        super().close()
        for connection in self._uploads:
            connection.close()
        self._uploads.clear()

    def cut(self) -> None:
        """Be gone, as after a reset of a firewall."""
        self.control.shutdown(socket.SHUT_RDWR)

    def content(self, name: str) -> bytes | bytearray | None:
        """Return what is sent of a file."""
        return self.server.files.get(name)

    def _retr(self, argument: str) -> str | None:
        content, start = self.content(self.name(argument)), self.start()
        return MISSING if content is None else self.send(bytes(content[start:]))

    def _eret(self, argument: str) -> str | None:
        start, size, name = self.part(argument)
        content = self.content(self.name(name))
        return MISSING if content is None else self.send(bytes(content[start : start + size]))

    def part(self, argument: str) -> tuple[int, int, str]:
        """Read the offset, the length and the name of ERET P."""
        _, start, size, name = argument.split(" ", 3)
        return int(start), int(size), name

    def _stor(self, argument: str) -> str | None:
        return self._store(self.name(argument), bytearray(), 0)

    def _esto(self, argument: str) -> str | None:
        _, start, name = argument.split(" ", 2)
        return self._store(
            self.name(name), bytearray(self.server.files.get(self.name(name), b"")), int(start)
        )

    def _store(self, name: str, content: bytearray, start: int) -> str | None:
        if name in self.server.folders or posixpath.dirname(name) not in self.server.folders:
            return "553 Could not create file."
        self.server.files[name] = content  # what comes is there at once
        self.receive(content, start)
        return "226 done"

    # --- changes -----------------------------------------------------------------------------------

    def _mkd(self, argument: str) -> str:
        name = self.name(argument)
        if name in self.server.folders or name in self.server.files:
            return "550 exists"
        if posixpath.dirname(name) not in self.server.folders:
            return MISSING
        self.server.folders.add(name)
        return f'257 "{argument}"'

    def _dele(self, argument: str) -> str:
        gone = self.server.files.pop(self.name(argument), None)
        return "550 No such file" if gone is None else "250 ok"

    def _rnfr(self, argument: str) -> str:
        name = self.name(argument)
        self.asked = name if name in self.server.files else None
        return "550 No such file" if self.asked is None else "350 to?"

    def _rnto(self, argument: str) -> str:
        name = self.name(argument)
        if self.asked not in self.server.files:
            return "503 RNFR first"
        self.server.files[name] = self.server.files.pop(self.asked)
        self.server.times.pop(name, None)
        if self.asked in self.server.times:
            self.server.times[name] = self.server.times.pop(self.asked)
        self.asked = None
        return "250 ok"


def framed(content: bytes) -> bytes:
    """Return the blocks of a transfer that uses one connection."""
    sent = bytearray()
    for at in range(0, len(content), BLOCK_BYTES):
        block = content[at : at + BLOCK_BYTES]
        sent += BlockHeader(0, len(block), at).pack() + block
    return bytes(sent + BlockHeader(EOD | EOF, 0, 1).pack())


class StoringServer(ScriptedServer):
    """Runs while in the `with` block. `files` holds what it has, by absolute name."""

    dialogue = StoringDialogue
    modified = "20200102030405"  # when all was, but what `times` has

    def __init__(
        self,
        script: Script | None = None,
        *,
        files: Mapping[str, bytes] | None = None,
        features: tuple[str, ...] = FEATURES,
        checksums: bool = False,
        mode_e: bool = False,
    ) -> None:
        super().__init__(script)
        self.mode_e = mode_e
        self.features = (*features, "CKSM ADLER32:10;") if checksums else features
        self.files: dict[str, bytes | bytearray] = dict(files or {})
        self.folders = {"/", *(str(folder) for name in self.files for folder in PurePosixPath(name).parents)}
        self.times: dict[str, str] = {}
