"""A storing server whose answers about files and offsets a test bends by functions of its own."""

import itertools
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from interop.storing_server import StoringDialogue, StoringServer

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


class LyingDialogue(StoringDialogue):
    """One control connection. It has PASV only."""

    server: "LyingServer"

    def __init__(self, server: "LyingServer", control: socket.socket) -> None:
        super().__init__(server, control)
        self.told = Heard(next(server.numbers))
        self._held_back = ""  # an answer

    def answer(self, verb: str, argument: str) -> str | None:
        line = f"{verb} {argument}".rstrip()
        self.server.commands.append(line)
        answer = self.server.refuses(line) or super().answer(verb, argument)
        self.told.commands.append(verb)
        if verb == "PASV" and self.server.waits_for_rest and self.told.retrieves:
            self._held_back, answer = answer or "", None
        return answer

    def _epsv(self, argument: str) -> str:
        return "502 not implemented"

    def _rest(self, argument: str) -> str:
        self.told.rest = int(argument)
        if self._held_back:
            self.say(self._held_back)
            self._held_back = ""
        return "350 restarting"

    def start(self) -> int:
        start = self.server.begins(self.told, self.told.rest)
        self.told.rest = 0 if start == self.told.rest else self.told.rest
        self.told.retrieves += 1
        return start

    def part(self, argument: str) -> tuple[int, int, str]:
        start, size, name = super().part(argument)
        first, count = self.server.part(self.told, start, size)
        self.told.retrieves += 1
        return first, count, name

    def content(self, name: str) -> bytes | bytearray | None:
        return self.server.sends(name) if name in self.server.files else None

    def facts(self, name: str) -> str:
        bent = self.server.facts
        return bent(name) if bent and name in self.server.files else super().facts(name)

    def _size(self, argument: str) -> str:
        bent, name = self.server.size, self.name(argument)
        return bent(name) if bent and name in self.server.files else super()._size(argument)

    def _retr(self, argument: str) -> str | None:
        said = super()._retr(argument)
        if self.server.cuts(self.told):
            raise ConnectionError("cut")
        return said


class LyingServer(StoringServer):
    """Serves `files` while in the `with` block; what it is not told to bend is true.

    `facts(name)` are those of MLST and MLSD, `size(name)` the answer to SIZE, `sends(name)` what is sent.
    """

    dialogue = LyingDialogue

    def __init__(
        self,
        files: Mapping[str, bytes],
        *,
        mode_e: bool = False,
        checksums: bool = False,
        begins: Begins = lambda _, offset: offset,
        part: Part = lambda _, offset, length: (offset, length),
        facts: Callable[[str], str] | None = None,
        size: Callable[[str], str] | None = None,
        sends: Callable[[str], bytes] | None = None,
        refuses: Callable[[str], str] = lambda _: "",
        cuts: Callable[[Heard], bool] = lambda _: False,
        waits_for_rest: bool = False,
    ) -> None:
        super().__init__(files=files, features=FEATURES, checksums=checksums, mode_e=mode_e)
        self.begins = begins
        self.part = part
        self.facts = facts
        self.size = size
        self.sends = sends or self.files.__getitem__
        self.refuses = refuses  # a command: the reply that refuses it, or nothing
        self.cuts = cuts  # whether the session ends with the data of a retrieve
        self.waits_for_rest = waits_for_rest  # before it answers PASV, but for the first retrieve
        self.commands: list[str] = []  # of every session
        self.numbers = itertools.count()  # of its sessions
