"""A scripted server with a tree in memory, whose listings a test writes line by line."""

from collections.abc import Callable, Mapping

from interop.scripted_server import Script
from interop.storing_server import StoringDialogue, StoringServer

Lines = Mapping[str, bytes | Callable[["ListingDialogue"], str | None]]
NO_MLST = {"FEAT": lambda *_: "211-Features\r\n SIZE\r\n MDTM\r\n REST STREAM\r\n211 End"}
MODIFIED = "20260101120000"


class ListingDialogue(StoringDialogue):
    """Lists what the test says that it does."""

    server: "ListingServer"

    def _listing(self, name: str) -> str | None:
        lines = self.server.listings.get(name, b"")
        return lines(self) if callable(lines) else self.send_stream(lines)

    def _mlsd(self, argument: str) -> str | None:
        return self._listing(self.name(argument))

    def _list(self, argument: str) -> str | None:
        return self._listing(self.name("" if argument.startswith("-") else argument))


class ListingServer(StoringServer):
    """`files` by name; `listings` by folder: bytes that are sent, or who answers instead."""

    dialogue = ListingDialogue
    modified = MODIFIED

    def __init__(self, files: Mapping[str, bytes], listings: Lines, script: Script | None = None) -> None:
        super().__init__(script, files=files)
        self.listings = dict(listings)
        self.folders |= {*listings}
