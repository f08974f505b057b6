"""Files that a task has copied: they are looked at at both ends before they count as arrived."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from mpx.endpoints.globus.access import GlobusAccess
from mpx.endpoints.globus.folder_search import ListedPlaces
from mpx.endpoints.globus.listing import GlobusListing
from mpx.engine.endpoint import FileInfo
from mpx.engine.file_transfer import FileTransfer
from mpx.engine.retry import Retry
from mpx.engine.source_change import why_changed
from mpx.errors import (
    ConnectionLost,
    DestinationError,
    IntegrityError,
    MpxError,
    SourceError,
    TransferTimeout,
)
from mpx.units import counted

KEPT_WITHIN_S = 1.0  # times are told in whole seconds
Found = list[FileInfo | MpxError | None]


@dataclass(frozen=True, slots=True)
class ArrivalCheck:
    """Looks at files that have been copied. For any thread, each of which brings a `retry` of its own."""

    source: GlobusAccess
    destination: GlobusAccess
    stop: Callable[[], bool]
    source_places: ListedPlaces = field(default_factory=ListedPlaces)
    destination_places: ListedPlaces = field(default_factory=ListedPlaces)

    def there(self, files: Sequence[FileTransfer], retry: Retry) -> Found:
        """Return what has the final names of files now."""
        self.destination.changed()
        now = GlobusListing(self.destination, DestinationError, self.stop)
        return _asked(lambda: now.stats([file.final for file in files], follow=True), retry)

    def outcomes(self, files: Sequence[FileTransfer], retry: Retry) -> list[MpxError | None]:
        """Return for each file None, or what is wrong with it: an IntegrityError, or that of an end.

        They are looked for anew, as older listings say nothing of what has come, and of a long folder on
        those pages of its listing on which the files of a task are likely to be: see GlobusListing.stats.
        """
        self.source.changed()
        self.destination.changed()
        before = GlobusListing(self.source, SourceError, self.stop, self.source_places)
        after = GlobusListing(self.destination, DestinationError, self.stop, self.destination_places)
        sources = _asked(lambda: before.stats([file.source for file in files], follow=True), retry)
        stored = _asked(lambda: after.stats([file.final for file in files], follow=True), retry)
        found = {
            file.final: info for file, info in zip(files, stored, strict=True) if isinstance(info, FileInfo)
        }
        if any(not _keeps_time(file, found[file.final]) for file in files if file.final in found):
            self.destination.keeps_no_times()
        self.destination.settled(found)
        return [_outcome(*each) for each in zip(files, sources, stored, strict=True)]


def _asked(question: Callable[[], Found], retry: Retry) -> Found:
    while True:
        try:
            found = question()
        except (ConnectionLost, TransferTimeout) as error:
            retry.again(error)
        else:
            retry.progressed()
            return found


def _outcome(
    file: FileTransfer, source: FileInfo | MpxError | None, stored: FileInfo | MpxError | None
) -> MpxError | None:
    for told in (source, stored):
        if isinstance(told, MpxError):
            return told
    if (isinstance(source, FileInfo) or source is None) and (
        change := why_changed(source, file, file.size_bytes)
    ):
        return change
    there = stored.size_bytes if isinstance(stored, FileInfo) else None
    if there == (file.listed_bytes or 0):
        return None
    what = (
        "it is not there"
        if there is None
        else f"{there} of {counted(file.listed_bytes or 0, 'byte')} are there"
    )
    return IntegrityError(f"{file.named()}: Globus says that it is copied, and {what}")


def _keeps_time(file: FileTransfer, stored: FileInfo) -> bool:
    if file.modified_s is None or stored.modified_s is None:
        return True
    return abs(stored.modified_s - file.modified_s) <= KEPT_WITHIN_S
