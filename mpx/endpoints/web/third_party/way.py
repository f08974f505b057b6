"""Which of two web servers is told to copy, and what it is told."""

from dataclasses import dataclass

from mpx.endpoints.web.access import WebAccess
from mpx.endpoints.web.file_put import only_new
from mpx.endpoints.web.third_party.handed import Handed
from mpx.endpoints.web.url import WebUrl
from mpx.engine.file_transfer import FileTransfer
from mpx.errors import DestinationError, MpxError, SourceError
from mpx.text import shown

LARGE_BYTES = 16 << 20  # a file of more is worth several streams: servers ask for about so much at a time


@dataclass(frozen=True, slots=True)
class CopyWay:
    """By pull the destination is told where to read from, by push the source where to write to."""

    source: WebAccess
    destination: WebAccess
    is_pull: bool
    streams: int  # of one large file

    @property
    def active(self) -> WebAccess:
        """The server that is told."""
        return self.destination if self.is_pull else self.source

    @property
    def passive(self) -> WebAccess:
        """The other one."""
        return self.source if self.is_pull else self.destination

    @property
    def hosts(self) -> str:
        """Both, as shown to people."""
        return f"{self.source.origin.authority} and {self.destination.origin.authority}"

    def asked_at(self, file: FileTransfer) -> WebUrl:
        """Return the URL at the active server."""
        return self.active.url_of(file.partial if self.is_pull else file.source)

    def other(self, file: FileTransfer) -> WebUrl:
        """Return the URL at the passive server."""
        return self.passive.url_of(file.source if self.is_pull else file.partial)

    def why_not_told(self, file: FileTransfer) -> str:
        """Return why a server is not told to copy a file; nothing where it may be.

        One that knows no others copies within itself, where another file may have the final name.
        """
        if self.is_pull or file.partial != file.final or self.active.server.is_of_grids:
            return ""
        own = f"{self.active.origin.authority} might write over its own {shown(file.final)}"
        return f"{own}: it is not known to write to other servers, and nothing is renamed (in place)"

    def is_only_new(self, file: FileTransfer) -> bool:
        """Tell whether a file is to replace none, as it is written under its final name at once."""
        return bool(only_new(self.destination, file))

    @property
    def activities(self) -> str:
        """What the active server is to do at the other one, as macaroons name it.

        XRootD wants the last two for a file that replaces one, as what an attempt has left.
        """
        return "DOWNLOAD,LIST" if self.is_pull else "UPLOAD,LIST,DELETE,MANAGE"

    def headers(self, file: FileTransfer, handed: Handed) -> dict[str, str]:
        """Return what COPY says; the checksum is compared by us."""
        url = self.other(file)
        told = {
            "Source" if self.is_pull else "Destination": f"{url.origin}{url.target}",
            "Credential": "none",
            "Overwrite": "F" if self.is_only_new(file) else "T",
            "RequireChecksumVerification": "false",
        }
        if handed.secret:
            told["TransferHeaderAuthorization"] = handed.authorization
        if file.size_bytes > LARGE_BYTES and self.streams > 1:
            told["X-Number-Of-Streams"] = str(self.streams)
        return told

    @property
    def does(self) -> str:
        """In words what the active server does at the other one."""
        what = "reads from" if self.is_pull else "writes to"
        return f"{self.active.origin.authority} {what} {self.passive.origin.authority}"

    def error_there(self, text: str) -> MpxError:
        """Return the error of a file that the passive server refuses."""
        return SourceError(text) if self.is_pull else DestinationError(text)

    @property
    def kind_here(self) -> type[MpxError]:
        """The kind of error of a file that the active server refuses."""
        return DestinationError if self.is_pull else SourceError
