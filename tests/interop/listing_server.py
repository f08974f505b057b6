"""A scripted server with a tree in memory, whose listings a test writes line by line."""

import posixpath
from collections.abc import Callable, Mapping

from interop.scripted_server import Dialogue, Script, ScriptedServer

Lines = Mapping[str, bytes | Callable[["ListingDialogue"], str | None]]
NO_MLST = {"FEAT": lambda *_: "211-Features\r\n SIZE\r\n MDTM\r\n REST STREAM\r\n211 End"}
MODIFIED = "20260101120000"


class ListingDialogue(Dialogue):
    """Serves files of `server.files` in MODE S; a folder is what files or other folders are in."""

    server: "ListingServer"
    folder = "/"

    def _name(self, argument: str) -> str:
        return posixpath.normpath(posixpath.join(self.folder, argument))

    def _mode(self, argument: str) -> str:
        return "200 ok" if argument == "S" else "504 no"

    def _feat(self, argument: str) -> str:
        return "211-Features\r\n MLST Type*;Size*;Modify*;\r\n SIZE\r\n MDTM\r\n REST STREAM\r\n211 End"

    def _cwd(self, argument: str) -> str:
        if self._name(argument) not in self.server.folders:
            return "550 no such directory"
        self.folder = self._name(argument)
        return "250 ok"

    def _size(self, argument: str) -> str:
        content = self.server.files.get(self._name(argument))
        return "550 no such file" if content is None else f"213 {len(content)}"

    def _mdtm(self, argument: str) -> str:
        return f"213 {MODIFIED}" if self._name(argument) in self.server.files else "550 no such file"

    def _mlst(self, argument: str) -> str:
        name = self._name(argument)
        if name in self.server.folders:
            return f"250-facts\r\n Type=dir; {argument}\r\n250 end"
        if (content := self.server.files.get(name)) is None:
            return "550 no such file or directory"
        return f"250-facts\r\n Type=file;Size={len(content)};Modify={MODIFIED}; {argument}\r\n250 end"

    def _listing(self, name: str) -> str | None:
        lines = self.server.listings.get(name, b"")
        if callable(lines):
            return lines(self)
        with self.open_data() as data:
            self.say("150 go")
            data.sendall(lines)
        return "226 done"

    def _mlsd(self, argument: str) -> str | None:
        return self._listing(self._name(argument))

    def _list(self, argument: str) -> str | None:
        return self._listing(self._name("" if argument.startswith("-") else argument))

    def _retr(self, argument: str) -> str:
        content = self.server.files.get(self._name(argument))
        if content is None:
            return "550 no such file"
        rest, self.rest = self.rest, 0
        with self.open_data() as data:
            self.say("150 go")
            data.sendall(content[rest:])
        return "226 done"

    rest = 0

    def _rest(self, argument: str) -> str:
        self.rest = int(argument)
        return "350 ok"


class ListingServer(ScriptedServer):
    """`files` by name; `listings` by folder: bytes that are sent, or who answers instead."""

    dialogue = ListingDialogue

    def __init__(self, files: Mapping[str, bytes], listings: Lines, script: Script | None = None) -> None:
        super().__init__(script)
        self.files = dict(files)
        self.listings = dict(listings)
        self.folders = {"/", *listings}
        for name in files:
            while (name := posixpath.dirname(name)) != "/":
                self.folders.add(name)
