"""Files that are reached by SFTP, as an endpoint: whoever serves it, see SshFilesEndpoint and others."""

import posixpath
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence

from mpx.endpoints.sftp import wire
from mpx.endpoints.sftp.commit import SftpCommit
from mpx.endpoints.sftp.describe import info_of
from mpx.endpoints.sftp.lanes import LaneOptions, SftpLanes
from mpx.endpoints.sftp.listing import Listing
from mpx.endpoints.sftp.refusals import is_missing, is_ok, refused
from mpx.endpoints.sftp.session import MOST_QUESTIONS, Request, SftpSession, extended, request
from mpx.endpoints.sftp.wire import Attributes, Described, Extended, Names, PacketKind, Reply
from mpx.engine.capabilities import Capabilities, Question
from mpx.engine.endpoint import OPEN, Commit, FileInfo, Kind, Part, Protection, Rtt, Stamp
from mpx.errors import DestinationError, MpxError, SourceError, UsageError
from mpx.files.partial_names import partial_name
from mpx.location import Location
from mpx.report import Note, OnNote
from mpx.text import quoted

ROOM_S = 1.0  # that an answer counts: who lists many small files asks every few hundred
MOST_LINKS = 40  # that are followed one after the other


class SftpEndpoint(ABC):
    """Takes a session of the pool when first used."""

    def __init__(self, location: Location, lanes: SftpLanes, options: LaneOptions, *, writing: bool) -> None:
        self.location = location
        self._lanes = lanes
        self._options = options
        self._refusal: type[MpxError] = DestinationError if writing else SourceError
        self._session: SftpSession | None = None
        self._listing: Listing | None = None  # under way
        self._room: tuple[tuple[str | None, float], int | None] = (None, 0.0), None  # of a folder, when told

    @property
    def session(self) -> SftpSession:
        """The session, opened when first asked for."""
        session = self._session
        if session is not None and (session.has_ended or (session.is_outdated and self._listing is None)):
            session.close()
            self._session = None
        if self._session is None:
            self._session = self._lanes.open(self._options)
        return self._session

    def _ask(
        self, requests: Sequence[Request], *, at_once: int = MOST_QUESTIONS, timeout_s: float | None = None
    ) -> list[Reply]:
        if not requests:
            return []
        try:
            return self.session.ask(requests, at_once=at_once, timeout_s=timeout_s)
        except BaseException:
            self.close()  # its answers may be out of step
            raise

    def _refused(self, reply: Reply, what: str, name: str) -> MpxError:
        return refused(reply, self.location.host, what, name, self._refusal)

    protection = Protection()

    @property
    @abstractmethod
    def capabilities(self) -> Capabilities:
        """See Endpoint."""

    @abstractmethod
    def find_out(self, *questions: Question) -> Capabilities:
        """See Endpoint."""

    def foresee(self, names: Sequence[str]) -> None:  # noqa: B027  nothing is to be done
        """See Endpoint. A question costs no more than a round trip, as the session is there."""

    def check_name(self, name: str) -> None:
        """See Endpoint."""
        if "\0" in name:
            raise UsageError(f"the name {quoted(name)} contains a NUL byte; no file can have it")

    def measure_rtt(self) -> Rtt | None:
        """See Endpoint."""
        session = self.session
        try:
            return Rtt(session.measure_rtt(), None)
        except BaseException:
            self.close()
            raise

    info_of = staticmethod(info_of)  # what is told of a name

    # --- describing ----------------------------------------------------------------------------------

    def special_source(self, name: str) -> FileInfo:
        """See Endpoint."""
        raise SourceError(
            f"{name} is not a regular file at {self.location.host}, and SFTP transfers only these"
        )

    def stat(self, name: str, *, follow: bool = True) -> FileInfo | None:
        """See Endpoint."""
        (found,) = self.stats([name], follow=follow)
        if isinstance(found, MpxError):
            raise found
        return found

    def stats(self, names: Sequence[str], *, follow: bool = True) -> list[FileInfo | MpxError | None]:
        """See Endpoint. The questions go out together, and so do those for where links lead."""
        kind = PacketKind.STAT if follow else PacketKind.LSTAT
        replies = self._ask([request(kind, _name(name)) for name in names])
        found: list[FileInfo | MpxError | None] = []
        for name, reply in zip(names, replies, strict=True):
            if isinstance(reply, Described):
                found.append(self.info_of(reply.attributes, ""))
            else:
                found.append(None if is_missing(reply) else self._refused(reply, "describe", name))
        links = [i for i, info in enumerate(found) if isinstance(info, FileInfo) and info.kind is Kind.LINK]
        targets = self._ask([request(PacketKind.READLINK, _name(names[i])) for i in links])
        for i, target in zip(links, targets, strict=True):
            described = replies[i]
            if isinstance(target, Names) and target.entries and isinstance(described, Described):
                found[i] = self.info_of(described.attributes, wire.decoded(target.entries[0].name))
        return found

    def sizes(self, names: Sequence[str]) -> list[int | None]:
        """See Endpoint."""
        replies = self._ask([request(PacketKind.LSTAT, _name(name)) for name in names])
        return [each.attributes.size_bytes if isinstance(each, Described) else None for each in replies]

    def entries(self, name: str) -> Iterator[tuple[str, FileInfo | MpxError]]:
        """See Endpoint."""
        listing = Listing(
            self._ask, name or ".", lambda reply: self._refused(reply, "list", name), self.info_of
        )
        self._listing = listing
        yield from listing.found()
        self._listing = None

    def listing_note(self) -> Note | None:
        """See Endpoint."""
        return None

    # --- changing ------------------------------------------------------------------------------------

    def make_folders(
        self,
        names: Sequence[str],
        *,
        replace_links: bool = False,  # noqa: ARG002  a server answers for its own links
    ) -> list[bool | MpxError]:
        """See Endpoint. All go out together; only those that are refused are looked at one by one."""
        replies = self._ask([_make(name) for name in names])
        answers = [(name, reply) for name, reply in zip(names, replies, strict=True) if not is_ok(reply)]
        there = dict(zip([name for name, _ in answers], self.stats([n for n, _ in answers]), strict=True))
        results: list[bool | MpxError] = []
        for name, reply in zip(names, replies, strict=True):
            found = there.get(name)
            if is_ok(reply):
                results.append(True)
            elif isinstance(found, FileInfo):
                is_folder = found.kind is Kind.FOLDER
                results.append(False if is_folder else self._refused(reply, "make the folder", name))
            else:
                results.append(found or self._make_parents_too(name, reply))
        return results

    def _make_parents_too(self, name: str, refusal: Reply) -> bool | MpxError:
        """Make a folder that is missing, perhaps for want of the one that it is in."""
        parent = posixpath.dirname(name.rstrip("/"))
        if parent not in ("", "/") and self.stat(parent) is None:
            made = self._make_parents_too(parent, refusal)
            if isinstance(made, MpxError):
                return made
        (reply,) = self._ask([_make(name)])
        if is_ok(reply):
            return True
        found = self.stat(name)  # made meanwhile, as the parent of another
        is_folder = found is not None and found.kind is Kind.FOLDER
        return False if is_folder else self._refused(refusal, "make the folder", name)

    def unseal(self, names: Sequence[str]) -> dict[str, int]:
        """See Endpoint. What is no one's to change, the server refuses."""
        sealed = {
            name: info.mode
            for name, info in zip(names, self.stats(names), strict=True)
            if isinstance(info, FileInfo) and info.mode is not None and info.mode & OPEN != OPEN
        }
        replies = self._ask(
            [_set(name, Attributes(mode=(mode | OPEN) & 0o777)) for name, mode in sealed.items()]
        )
        return {
            name: mode for (name, mode), reply in zip(sealed.items(), replies, strict=True) if is_ok(reply)
        }

    def make_link(self, name: str, target: str) -> str:
        """See Endpoint. Where the server can, the new link replaces an old one in one step."""
        self.check_name(target)
        aside = partial_name(name, "link")
        # OpenSSH takes these two in the order of symlink(2), and so do those who follow it.
        names = (_name(target), _name(aside)) if self.session.is_open_ssh else (_name(aside), _name(target))
        _, made = self._ask([request(PacketKind.REMOVE, _name(aside)), request(PacketKind.SYMLINK, *names)])
        if not is_ok(made):
            raise self._refused(made, f"make the symbolic link to {target}", name)
        error = SftpCommit(self.session, self._ask, self._refused).rename(aside, name)
        if error is not None:
            self._ask([request(PacketKind.REMOVE, _name(aside))])
            raise error
        return target

    def remove(self, name: str) -> None:
        """See Endpoint."""
        (reply,) = self._ask([request(PacketKind.REMOVE, _name(name))])
        if not is_ok(reply) and not is_missing(reply) and self.stat(name, follow=False):
            raise self._refused(reply, "remove", name)

    def commit(self, files: Sequence[Commit], note: OnNote) -> list[Exception | None]:
        """See Endpoint."""
        return SftpCommit(self.session, self._ask, self._refused).commit(files, note)

    def set_times(self, folders: Sequence[Stamp], note: OnNote) -> None:
        """See Endpoint. All go out together."""
        SftpCommit(self.session, self._ask, self._refused).set_times(folders, note)

    # --- checking ------------------------------------------------------------------------------------

    @abstractmethod
    def checksums(
        self, algorithm: str, parts: Sequence[Part], stop: Callable[[], bool]
    ) -> list[str | Exception]:
        """See Endpoint."""

    def free_bytes(self, name: str) -> int | None:
        """See Endpoint. Asks the nearest folder that exists, if the server tells of any; not each time."""
        (folder, told_s), found = self._room
        if folder == name and time.monotonic() - told_s < ROOM_S:
            return found
        found = self._free_bytes(name)
        self._room = (name, time.monotonic()), found
        return found

    def _free_bytes(self, name: str) -> int | None:
        if wire.STATVFS not in self.session.extensions:
            return None
        folder = name.rstrip("/") or ("/" if name.startswith("/") else ".")
        while True:
            (reply,) = self._ask([extended(wire.STATVFS, _name(folder))])
            if isinstance(reply, Extended):
                try:
                    room = wire.parse_room(reply.content)
                except wire.WireError:
                    return None
                return room.free_bytes if room.size_bytes else None
            if folder in ("/", "."):
                return None
            folder = posixpath.dirname(folder) or "."

    def pause(self) -> None:
        """See Endpoint."""
        if self._lanes.is_wanted:
            self.let_go()

    def let_go(self) -> None:
        """See Endpoint."""
        if self._session is not None and self._listing is not None:
            self._listing.read_ahead()
        session, self._session = self._session, None
        if session is not None:
            self._lanes.give_back(session)

    def close(self) -> None:
        """See Endpoint."""
        self._listing = None
        if self._session is not None:
            self._session.close()
            self._session = None


def _name(name: str) -> bytes:
    """Return the field of a name; an empty one is the folder that a session begins in."""
    return wire.name(name or ".")


def _make(name: str) -> Request:
    return request(PacketKind.MKDIR, _name(name), wire.attributes(Attributes()))


def _set(name: str, attributes: Attributes) -> Request:
    return request(PacketKind.SETSTAT, _name(name), wire.attributes(attributes))
