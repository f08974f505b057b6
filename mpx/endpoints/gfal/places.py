"""Where a file comes from and goes to, as gfal2 is told: servers by URLs, this host by open files of ours."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from mpx.choices import NEVER, ONLY
from mpx.endpoints.gfal.process import GfalProcess, server_of
from mpx.endpoints.gfal.settings import CopyOrder
from mpx.endpoints.gfal.urls import url_of
from mpx.endpoints.xrootd.names import why_not_straight
from mpx.engine.file_transfer import FileTransfer
from mpx.errors import DestinationError, MpxError, SourceError
from mpx.files.local_error import local_error
from mpx.location import ROOT_PORTS, Location


@dataclass(frozen=True, slots=True)
class GfalPlaces:
    """Both ends of a copy; None: this host."""

    source: Location | None
    destination: Location | None
    streams: int  # of a file between two servers of GridFTP
    straight: str = ""  # see CopyOrder
    congestion: str = ""

    @property
    def hosts(self) -> str:
        """The servers, as shown to people."""
        return " and ".join(each.authority for each in (self.source, self.destination) if each)

    @property
    def is_between(self) -> bool:
        """Whether both are servers."""
        return self.source is not None and self.destination is not None

    @property
    def _is_of_root(self) -> bool:
        """Whether both are servers by XRootD's own protocol, of which one reads from the other."""
        schemes = (server_of(each).partition(":")[0] for each in (self.source, self.destination) if each)
        return self.is_between and all(scheme in ROOT_PORTS for scheme in schemes)

    def why_not_by(self, how: str) -> str:
        """Return why a file may not be copied as gfal2 does it, in its words; empty where it may."""
        if self.is_between and self.straight == ONLY and how == "streamed":
            return f"--third-party {ONLY} is not possible here: gfal2 has the data pass through this host"
        if self.is_between and self.straight == NEVER and how.startswith("3rd"):
            return f"--third-party {NEVER} is not possible here: gfal2 has these servers copy themselves"
        return ""

    @property
    def default_error(self) -> type[MpxError]:
        """What a failure is that gfal2 does not say more of: one of the server, where there is one."""
        return DestinationError if self.destination else SourceError

    @contextmanager
    def opened(self, file: FileTransfer, process: GfalProcess) -> Iterator[tuple[CopyOrder, int | None]]:
        """Yield what gfal2 is told of a file, and the descriptor of what it writes, where this host has it.

        gfal2 opens what is open here once more, so that no name leads it to another file: `process` is
        handed what is read. Raises MpxError.
        """
        if self.source and self.destination:
            if self._is_of_root and (why := why_not_straight(file.source)):
                raise SourceError(f"{why}, and gfal2 knows no other way; copy it without --via gfal2")
            source, destination = _url(self.source, file.source), _url(self.destination, file.partial)
            yield CopyOrder(source, destination, self.streams, straight=self.straight), None
        elif self.source:
            try:
                fd = file.open(file.partial, os.O_RDWR | os.O_CREAT)
            except OSError as error:
                raise local_error(error, file.final, writing=True) from None
            try:
                os.ftruncate(fd, 0)
                yield CopyOrder(_url(self.source, file.source), _open_url(fd), is_here=True), fd
            finally:
                file.close()
        else:
            assert self.destination is not None
            fd = _opened_source(file)
            try:
                url = _url(self.destination, file.partial)
                process.hand(fd)
                told = CopyOrder("file:", url, handed_by=process.handed_by, congestion=self.congestion)
                yield told, None
            finally:
                os.close(fd)


def _opened_source(file: FileTransfer) -> int:
    try:
        fd = file.open_source()
        is_file = stat.S_ISREG(os.fstat(fd).st_mode)
    except OSError as error:
        raise local_error(error, file.source, writing=False) from None
    if not is_file:
        os.close(fd)
        raise SourceError(f"{file.source} is not a regular file, and gfal2 copies only these")
    return fd


def _url(location: Location, name: str) -> str:
    return url_of(server_of(location), name)


def _open_url(fd: int) -> str:
    return f"file:///proc/{os.getpid()}/fd/{fd}"
