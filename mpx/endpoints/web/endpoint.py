"""The files of a web server as an endpoint: by WebDAV (PROPFIND and the like), else by HEAD and GET."""

import posixpath
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

from mpx.endpoints.web.access import WebAccess
from mpx.endpoints.web.capabilities import SCHEMES
from mpx.endpoints.web.changes import FOLDER_TIMES, WebChanges
from mpx.endpoints.web.connection import HttpConnection
from mpx.endpoints.web.describing import WebDescriber
from mpx.endpoints.web.dialogue import WebDialogue
from mpx.endpoints.web.digests import MOST_AT_ONCE, WebDigests
from mpx.endpoints.web.read_back import ReadBack
from mpx.endpoints.web.room import WebRoom
from mpx.endpoints.web.slashes import SlashedNames
from mpx.endpoints.web.storing_parts import StoringParts
from mpx.endpoints.web.third_party.possible import third_party_of
from mpx.endpoints.web.url import WebUrl
from mpx.engine.capabilities import CHECKSUMS, Capabilities, PartsUp, Question, RangeReads
from mpx.engine.endpoint import Commit, FileInfo, Kind, Part, Protection, Rtt, Stamp
from mpx.errors import DestinationError, MpxError, NoChecksum, SourceError, UsageError
from mpx.location import Location
from mpx.net import congestion_control
from mpx.report import Note, OnNote, Severity
from mpx.text import quoted

SOON_READ_BYTES = 128 * 1024  # which come back in less time than it takes until two digests are told
Found = TypeVar("Found", bound=FileInfo | MpxError | None)


class WebEndpoint:
    """Connects when first asked."""

    def __init__(
        self, location: Location, access: WebAccess, *, writing: bool, stop: Callable[[], bool] | None = None
    ) -> None:
        self.location = replace(location, query="")
        self._access = access
        self._stop = stop
        self._refusal: type[MpxError] = DestinationError if writing else SourceError
        self._dialogue = WebDialogue(access, stop, kind=self._refusal)
        self._describer = WebDescriber(self._dialogue, SlashedNames(location.name))
        self._digests = WebDigests(self._dialogue)
        self._room = WebRoom(access, self._dialogue)
        self._foreseen = ""  # what is described first
        self._names_folder = False  # the location, as far as it was described

    def _url(self, name: str) -> WebUrl:
        return self._access.url_of(name)

    @property
    def protection(self) -> Protection:
        """See Endpoint."""
        return Protection(admission=self._access.admission)

    @property
    def capabilities(self) -> Capabilities:
        """See Endpoint."""
        server, speaks_dav = self._access.server, bool(self._access.speaks_dav)
        takes_ranges = self._describer.takes_ranges
        sums = (
            name for name in CHECKSUMS if server.offers(name, speaks_dav=speaks_dav) or self._reads_back(name)
        )
        return replace(
            SCHEMES[self.location.scheme],
            reads=RangeReads.STATED if takes_ranges else RangeReads.NONE,
            sends_parts=takes_ranges,
            checksums=tuple(sums),
            third_party=third_party_of(self._access),
            keeps_times=self._changes.keeps_times,
            lists=self._access.speaks_dav is not False,
        )

    def find_out(self, *questions: Question) -> Capabilities:
        """See Endpoint. What a server says that it is tells most; so it is asked what it is asked anyway."""
        if Question.CHECKSUMS in questions and not self._access.server.is_known:
            self._describer.look(self._foreseen or self.location.name)
        if Question.THIRD_PARTY in questions and not self._access.server.is_known:
            self.stat(self.location.name)
        can = self.capabilities
        if Question.RENAMES in questions:
            can = replace(can, renames=self._changes.can_rename(self.location.name))
        if Question.PARTS_UP in questions:
            can = replace(can, parts_up=PartsUp.OFFSETS if self._stores_parts() else PartsUp.NONE)
        return can

    def _stores_parts(self) -> bool:
        """Have it tried on a small file of ours whether parts of files are stored."""
        origin, name = self._access.origin, self.location.name.rstrip("/") or "/"
        storing = StoringParts(
            self._access,
            lambda: self._dialogue.connection(origin),
            lambda: self._dialogue.drop(origin),
            self._stop or (lambda: False),
        )
        # A folder that only its slash shows, where nothing is described but by HEAD: never what is above it.
        is_written_so = not self._access.speaks_dav and self.location.name.endswith("/")
        is_folder = self._names_folder or is_written_so
        return storing.is_proven_at_or_above(name if is_folder else posixpath.dirname(name))

    def foresee(self, names: Sequence[str]) -> None:
        """See Endpoint. Of one file the beginning comes with the first answer."""
        self._foreseen = next(iter(names), "")
        if len(names) == 1 and self._refusal is SourceError:
            self._describer.begins = names[0]

    def check_name(self, name: str) -> None:
        """See Endpoint."""
        if "\0" in name:
            raise UsageError(f"the name {quoted(name)} contains a NUL byte; no file can have it")
        if any(part in (".", "..") for part in name.split("/")):
            raise UsageError(
                f"the name {quoted(name)} has . or .. in it, which servers resolve; name it without"
            )
        self._access.given.check_name(name)

    def measure_rtt(self) -> Rtt | None:
        """See Endpoint. The handshake of TCP is an exchange; the kernel measures later ones."""
        connection = self._dialogue.connection(self._access.origin)
        return rtt_of(connection)

    # --- describing ----------------------------------------------------------------------------------

    def special_source(self, name: str) -> FileInfo:
        """See Endpoint."""
        raise SourceError(f"{self._url(name)}: not a regular file at the server")

    def stat(self, name: str, *, follow: bool = True) -> FileInfo | None:  # noqa: ARG002  there are no links
        """See Endpoint."""
        found = self._checked(name, self._describer.stat(name))
        if name.rstrip("/") == self.location.name.rstrip("/"):
            self._names_folder = found is not None and found.kind is Kind.FOLDER
        return found

    def stats(self, names: Sequence[str], *, follow: bool = True) -> list[FileInfo | MpxError | None]:  # noqa: ARG002
        """See Endpoint."""
        found = self._describer.stats(names)
        return [self._checked(name, each) for name, each in zip(names, found, strict=True)]

    def _checked(self, name: str, found: Found) -> Found:
        """Return what was found of a name; raises UsageError for a folder that is no use."""
        if isinstance(found, FileInfo) and found.kind is Kind.FOLDER:
            given = self._access.given
            given.check_tree(name, self._url(name))
            if self._refusal is SourceError:
                given.check_apart(name, self._url(name))
        return found

    def sizes(self, names: Sequence[str]) -> list[int | None]:
        """See Endpoint."""
        infos = self.stats(names)
        return [info.size_bytes if isinstance(info, FileInfo) else None for info in infos]

    def entries(self, name: str) -> Iterator[tuple[str, FileInfo | MpxError]]:
        """See Endpoint. The listing comes whole before it is read."""
        return self._describer.entries(name)

    def listing_note(self) -> Note | None:
        """See Endpoint."""
        return None

    # --- changing ------------------------------------------------------------------------------------

    @property
    def _changes(self) -> WebChanges:
        return WebChanges(self._dialogue, self.stat, self.stats)

    def make_folders(
        self,
        names: Sequence[str],
        *,
        replace_links: bool = False,  # noqa: ARG002  there are none
    ) -> list[bool | MpxError]:
        """See Endpoint."""
        for name in names:
            self._access.given.check_tree(name, self._url(name))
        return self._changes.make_folders(names)

    def unseal(self, names: Sequence[str]) -> dict[str, int]:  # noqa: ARG002  there are no modes
        """See Endpoint."""
        return {}

    def make_link(self, name: str, target: str) -> str:
        """See Endpoint."""
        raise DestinationError(f"cannot make the symbolic link {name} to {target}: HTTP has none")

    def remove(self, name: str) -> None:
        """See Endpoint."""
        self._changes.remove(name)

    def commit(self, files: Sequence[Commit], note: OnNote) -> list[Exception | None]:
        """See Endpoint."""
        return self._changes.commit(files, note)

    def set_times(self, folders: Sequence[Stamp], note: OnNote) -> None:
        """See Endpoint. None can be set of folders."""
        gives_times = self._changes.gives_times
        if gives_times and any(folder.modified_s is not None for folder in folders):
            note(FOLDER_TIMES)
        WebChanges.note_unkept(folders, note, gives_times=gives_times)

    # --- checking ------------------------------------------------------------------------------------

    def _reads_back(self, algorithm: str) -> bool:
        """Tell whether what is stored is read back for a checksum: where one was asked for by name."""
        return self._refusal is DestinationError and algorithm == self._access.options.asked_checksum

    def checksums(
        self, algorithm: str, parts: Sequence[Part], stop: Callable[[], bool]
    ) -> list[str | Exception]:
        """See Endpoint. Of whole files only."""
        sums: list[str | Exception | None] = [None] * len(parts)
        short = self._soon_read_back(parts)
        if short:
            self._read_back(algorithm, parts, short, sums, stop)
            origin = self._access.origin
            self._access.note(
                f"small files are verified by reading back: {origin} computes few digests at once"
            )
        asked = [i for i, each in enumerate(sums) if each is None]
        told = self._digests.ask(algorithm, [parts[i] for i in asked], stop)
        for i, digest in zip(asked, told, strict=True):
            sums[i] = digest
        missing = [i for i, each in enumerate(sums) if isinstance(each, NoChecksum) and not each.is_of_file]
        if missing and self._reads_back(algorithm):
            self._read_back(algorithm, parts, missing, sums, stop)
            why = f"{self._access.origin} computes no {algorithm}"
            self._access.note(f"verified by reading back: {why}", Severity.NOTICE)
        return [each for each in sums if each is not None]

    def _soon_read_back(self, parts: Sequence[Part]) -> list[int]:
        """Return which files are read back sooner than their digests are told, of which few are at once."""
        if self._refusal is not DestinationError or not self._access.server.hangs:
            return []
        short = [i for i, part in enumerate(parts) if part.is_whole and part.end <= SOON_READ_BYTES]
        return short if len(short) > MOST_AT_ONCE else []

    def _read_back(
        self,
        algorithm: str,
        parts: Sequence[Part],
        which: Sequence[int],
        sums: list[str | Exception | None],
        stop: Callable[[], bool],
    ) -> None:
        """Compute digests of what is stored, from what is read back."""
        reading = ReadBack(self._dialogue, self._access.read_back_limiter)
        for i, digest in zip(which, reading.sums(algorithm, [parts[i] for i in which], stop), strict=True):
            sums[i] = digest

    def free_bytes(self, name: str) -> int | None:
        """See Endpoint."""
        return None if self._access.given.is_unknown(name) else self._room.free_bytes(name)

    def pause(self) -> None:
        """See Endpoint. A connection that nobody uses costs the server little, and it may close it."""

    def let_go(self) -> None:
        """See Endpoint. Who moves the data need not open it, which takes several round trips."""
        connection = self._dialogue.let_go(self._access.origin)
        if connection is not None:
            self._access.give_back(connection)

    def close(self) -> None:
        """See Endpoint."""
        self._dialogue.close()


def rtt_of(connection: HttpConnection) -> Rtt:
    """Return the round-trip time of a connection: that of its handshake, or what the kernel has measured."""
    name = congestion_control.congestion_of(connection.socket)
    address = connection.socket.getpeername()
    return Rtt(
        connection.kernel_rtt_s or connection.connected_s,
        connection.kernel_rtt_s,
        name,
        congestion_control.is_congestion_fixed(connection.socket),
        (str(address[0]), int(address[1])),
        str(connection.socket.getsockname()[0]),
    )
