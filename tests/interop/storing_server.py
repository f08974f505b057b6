"""A scripted FTP server that also takes files: each answer may be replaced, as with ScriptedServer."""

import posixpath
import socket
import zlib
from typing import BinaryIO

from interop.scripted_server import Dialogue, Script, ScriptedServer

from mpx.gridftp_wire import CLOSE, HEADER_BYTES, unpack_header

FEATURES = ("MLST type*;size*;modify*;", "SIZE", "MDTM", "MFMT", "REST STREAM")


class StoringDialogue(Dialogue):
    """One control connection; names are absolute."""

    server: "StoringServer"
    asked: str | None = None  # what is to be renamed
    blocks_come: BinaryIO | None = None  # where those of MODE E do

    def _feat(self, argument: str) -> str:
        return "\r\n".join(["211-Features", *(f" {line}" for line in self.server.features), "211 End"])

    def _mode(self, argument: str) -> str:
        if argument == "E" and not self.server.mode_e:
            return "504 only S"
        self.blocks = argument == "E"
        return "200 ok"

    def _cwd(self, argument: str) -> str:
        return "250 ok" if argument in self.server.folders else "550 Failed to change directory."

    def _size(self, argument: str) -> str:
        content = self.server.files.get(argument)
        return "550 No such file" if content is None else f"213 {len(content)}"

    def _mdtm(self, argument: str) -> str:
        if argument not in self.server.files:
            return "550 No such file"
        return f"213 {self.server.times.get(argument, '20200102030405')}"

    def _mfmt(self, argument: str) -> str:
        when, _, name = argument.partition(" ")
        self.server.times[name] = when
        return f"213 Modify={when}; {name}"

    def facts(self, name: str) -> str:
        if name in self.server.folders:
            return "type=dir;"
        when = self.server.times.get(name, "20200102030405")
        return f"type=file;size={len(self.server.files[name])};modify={when};"

    def _mlst(self, argument: str) -> str:
        if argument not in self.server.files and argument not in self.server.folders:
            return "550 No such file or directory"
        return f"250-facts\r\n {self.facts(argument)} {argument}\r\n250 end"

    def _mlsd(self, argument: str) -> str:
        if argument not in self.server.folders:
            return "550 No such file or directory"
        names = [*self.server.files, *self.server.folders]
        with self.open_data() as data:
            self.say("150 go")
            for name in names:
                if name != "/" and posixpath.dirname(name) == argument:
                    line = f"{self.facts(name)} {posixpath.basename(name)}\r\n"
                    data.sendall(line.encode("utf-8", "surrogateescape"))
        return "226 done"

    def receive(self) -> bytes:
        """Take what comes over the data connection, to its end."""
        if self.blocks:
            return self._receive_blocks()
        content = bytearray()
        with self.open_data() as data:
            self.say("150 go")
            while more := data.recv(1 << 18):
                content += more
        return bytes(content)

    def _receive_blocks(self) -> bytes:
        """Take the blocks of one transfer over one connection, which stays for the next."""
        content = bytearray()
        self.blocks_come = self.blocks_come or self.open_data().makefile("rb")
        self.say("150 go")
        while True:
            header = unpack_header(self.blocks_come.read(HEADER_BYTES))
            content[header.offset : header.offset + header.count] = self.blocks_come.read(header.count)
            if header.descriptor & CLOSE:
                self.blocks_come = None
            if header.ends_data:
                return bytes(content)

    def cut(self) -> None:
        """Be gone, as after a reset of a firewall."""
        self.control.shutdown(socket.SHUT_RDWR)

    def _stor(self, argument: str) -> str:
        self.server.files[argument] = b""
        self.server.files[argument] = self.receive()
        return "226 done"

    def _retr(self, argument: str) -> str:
        with self.open_data() as data:
            self.say("150 go")
            data.sendall(self.server.files[argument])
        return "226 done"

    def _mkd(self, argument: str) -> str:
        if argument in self.server.folders:
            return "550 exists"
        if posixpath.dirname(argument) not in self.server.folders:
            return "550 No such file or directory"
        self.server.folders.add(argument)
        return f'257 "{argument}"'

    def _dele(self, argument: str) -> str:
        return "550 No such file" if self.server.files.pop(argument, None) is None else "250 ok"

    def _rnfr(self, argument: str) -> str:
        self.asked = argument if argument in self.server.files else None
        return "550 No such file" if self.asked is None else "350 to?"

    def _rnto(self, argument: str) -> str:
        if self.asked is None:
            return "503 RNFR first"
        self.server.files[argument] = self.server.files.pop(self.asked)
        if self.asked in self.server.times:
            self.server.times[argument] = self.server.times.pop(self.asked)
        self.asked = None
        return "250 ok"

    def _cksm(self, argument: str) -> str:
        _, start, size, name = argument.split(" ", 3)
        content = self.server.files[name][int(start) :]
        part = content if int(size) < 0 else content[: int(size)]
        return f"213 {zlib.adler32(part):08x}"


class StoringServer(ScriptedServer):
    """Runs while in the `with` block. `files` holds what it has, by absolute name."""

    dialogue = StoringDialogue

    def __init__(
        self,
        script: Script | None = None,
        *,
        features: tuple[str, ...] = FEATURES,
        checksums: bool = False,
        mode_e: bool = False,
    ) -> None:
        super().__init__(script)
        self.mode_e = mode_e
        self.features = (*features, "CKSM ADLER32:10;") if checksums else features
        self.files: dict[str, bytes] = {}
        self.folders = {"/"}
        self.times: dict[str, str] = {}
