"""Walks a folder and all that is below it, and yields what there is to copy: each thing, or why it cannot be.

Depth first. What is kept meanwhile is bounded: the folders and links that wait to be visited in bytes, the
depth, and the number of branches that go beyond it. A tree beyond these bounds is an error, never cut off
in silence.
"""

import marshal
import posixpath
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from mpx.engine.endpoint import FileInfo, Kind
from mpx.errors import (
    AuthenticationError,
    ConnectionLost,
    MpxError,
    NoSpace,
    PartialFailure,
    SourceError,
    TransferTimeout,
    UsageError,
)
from mpx.options import CopyOptions
from mpx.report import OnNote, Severity, Skip, no_note
from mpx.transfer.folder_loops import FolderLoops, Place
from mpx.transfer.listed_names import ListedNames, Repeat

DEEPEST = 1000  # folders within folders
LONGEST_PATH = 8192  # characters; no system takes longer ones
MOST_TOO_DEEP = 100  # branches that go deeper, after which the tree has no end
MOST_WAITING_BYTES = 40 * 1024 * 1024  # folders and links still to be visited, some 300,000 or more
MANY_ENTRIES = 1_000_000  # of one folder, after which that is noted
MOST_ENTRIES = 100_000_000  # of one folder; file systems of today hold 10 million, and a few of them more
MOST_REPEATS = 10_000  # names of one folder that are listed again, beyond twice the whole of it
MOST_LOST = 3  # folders, one after the other, whose listing is lost although the server answers
GROUP = 200  # links that are asked about together
_WAITING_COSTS_BYTES = 41  # beside what stands in it
LISTS_MANY = f"lists more than {MANY_ENTRIES} entries"


@dataclass(frozen=True, slots=True)
class Task:
    """One thing to do. `info` describes the source."""

    source: str
    target: str
    info: FileInfo
    skip: Skip | None = None  # why it is skipped
    error: MpxError | None = None  # why it cannot be copied
    is_folded: bool = False  # a name came before in its folder that differs only in case
    there: FileInfo | None = None  # what the target is, if it is there


class Walkable(Protocol):
    """What walk() asks of an endpoint; see there."""

    def check_name(self, name: str) -> None:
        """See Endpoint."""

    def stat(self, name: str, *, follow: bool = True) -> FileInfo | None:
        """See Endpoint."""

    def stats(self, names: Sequence[str], *, follow: bool = True) -> list[FileInfo | MpxError | None]:
        """See Endpoint."""
        ...

    def entries(self, name: str) -> Iterator[tuple[str, FileInfo | MpxError]]:
        """See Endpoint."""
        ...


def walk(
    source: str,
    target: str,
    info: FileInfo,
    end: Walkable,
    options: CopyOptions,
    avoid: frozenset[tuple[int, int]] = frozenset(),
    *,
    is_folded: bool = False,
    note: OnNote = no_note,
) -> Iterator[Task]:
    """Yield a source and everything below it, folders before what is in them; skip the folders `avoid`.

    Links are followed, kept or skipped by option, never silently dropped. A folder that is met again within
    itself, by a link or otherwise, is skipped with that reason. What cannot be read is a task with an error:
    also a folder whose listing is lost again and again while the server answers otherwise. `note` takes
    a line about very long listings. Raises ConnectionLost, TransferTimeout and AuthenticationError where the
    server answers nothing any more.
    """
    if info.kind is Kind.LINK:
        yield replace(_unfollowed(_Link(source, target, info, ""), options), is_folded=is_folded)
    elif info.kind is Kind.FOLDER:
        yield from _TreeWalk(end, options, avoid, note).walk(source, target, info, is_folded=is_folded)
    else:
        yield _task(source, target, info, is_folded=is_folded)


@dataclass(slots=True)
class _Folder(Place):
    """A folder that is walked."""

    target: str
    depth: int
    is_folded: bool = False
    links: list[bytes] = field(default_factory=list)  # in it, to be followed once all is listed, packed
    waiting: list[bytes] = field(default_factory=list)  # folders in it, or where its links lead to, packed


@dataclass(frozen=True, slots=True)
class _Link:
    source: str
    target: str
    info: FileInfo
    real: str
    top: str = ""  # the real name of the folder that the walk began with
    is_folded: bool = False


class _NoEnd(Exception):
    """The tree goes beyond what a walk can keep in mind."""


class _TreeWalk:
    """The state of one walk."""

    def __init__(
        self, end: Walkable, options: CopyOptions, avoid: frozenset[tuple[int, int]], note: OnNote
    ) -> None:
        self._end = end
        self._options = options
        self._avoid = avoid
        self._note = note
        self._path: list[_Folder] = []  # from the top down
        self._loops: FolderLoops | None = None
        self._waiting_bytes = 0
        self._too_deep = 0
        self._listed_before = False  # some folder could be listed
        self._lost = 0  # listings that were lost, one after the other

    def walk(self, source: str, target: str, info: FileInfo, *, is_folded: bool) -> Iterator[Task]:
        top = _Folder(source, info, posixpath.normpath(source), False, target, 0, is_folded)
        self._loops = FolderLoops(top, self._end)
        try:
            yield from self._visit(top)
            while self._path:
                if self._path[-1].waiting:
                    yield from self._visit(self._next(self._path[-1]))
                else:
                    self._path.pop()
        except _NoEnd as error:
            yield Task(source, target, info, error=PartialFailure(str(error)))

    def _visit(self, folder: _Folder) -> Iterator[Task]:
        """Yield a folder and what is in it; folders within wait in it."""
        if folder.info.identity in self._avoid:
            yield Task(folder.source, folder.target, folder.info, Skip.DESTINATION)
        elif folder.depth > DEEPEST or len(folder.source) > LONGEST_PATH:
            self._too_deep += 1
            deep = PartialFailure(
                f"{folder.source}: nested deeper than {DEEPEST} folders or {LONGEST_PATH} characters; does a "
                "folder contain itself?"
            )
            yield Task(folder.source, folder.target, folder.info, error=deep)
            if self._too_deep >= MOST_TOO_DEEP:
                raise _NoEnd(
                    f"{self._path[0].source}: {self._too_deep} branches are nested too deep, so it seems to "
                    "have no end; the rest was not listed"
                )
        elif folder.depth and self._loops and self._loops.leads_back(folder, self._path):
            reason = Skip.LINK_TO_ABOVE if folder.is_link else Skip.CONTAINS_ITSELF
            yield Task(folder.source, folder.target, folder.info, reason)
        else:
            yield Task(folder.source, folder.target, folder.info, is_folded=folder.is_folded)
            self._path.append(folder)
            yield from self._listed(folder)
            yield from self._followed(folder)
            folder.waiting.reverse()  # so that they are taken in the order of the listing

    # --- listing -------------------------------------------------------------------------------------

    def _listed(self, folder: _Folder) -> Iterator[Task]:
        """Yield what a folder holds but folders and links that are followed, and what cannot be listed."""
        try:
            self._end.check_name(folder.source)
        except UsageError:
            return  # making the folder raises the same
        names = ListedNames()
        try:
            for name, info in self._end.entries(folder.source):
                yield from self._entry(folder, names, name, info)
        except (SourceError, PartialFailure, UsageError, NoSpace) as error:
            yield Task(folder.source, folder.target, folder.info, error=error)
        except (ConnectionLost, TransferTimeout, AuthenticationError) as error:
            if not self._answers(folder.source):
                raise
            yield Task(folder.source, folder.target, folder.info, error=error)
        else:
            self._listed_before, self._lost = True, 0

    def _entry(
        self, folder: _Folder, names: ListedNames, name: str, info: FileInfo | MpxError
    ) -> Iterator[Task]:
        if isinstance(info, MpxError):
            yield Task(f"{folder.source.rstrip('/')}/{name}", folder.target, FileInfo(Kind.OTHER), error=info)
            return
        source, target = posixpath.join(folder.source, name), posixpath.join(folder.target, name)
        facts = info.kind, info.size_bytes, info.modified_s
        repeat = names.add(name, is_folder=info.kind is Kind.FOLDER, facts=facts)
        is_folded = repeat is Repeat.FOLDED
        self._check_end(folder, names)
        if repeat is Repeat.TWICE:
            yield Task(source, target, info, Skip.REPEATED)
        elif repeat is Repeat.DIFFERS:
            two = f"{source} is listed twice, with other sizes or times; what comes second is not copied"
            yield Task(source, folder.target, FileInfo(Kind.OTHER), error=PartialFailure(two))
        elif repeat is Repeat.OTHER_KIND:
            two = f"{source} is listed twice, once as a folder; what comes second is not copied"
            yield Task(source, folder.target, FileInfo(Kind.OTHER), error=PartialFailure(two))
        elif info.kind is Kind.FOLDER:
            self._wait(folder, name, info, is_folded=is_folded)
        elif info.kind is Kind.LINK and self._options.links == "follow":
            self._keep(folder, folder.links, (name, info.size_bytes, info.link_target, is_folded))
        elif info.kind is Kind.LINK:
            link = _Link(source, target, info, posixpath.join(folder.real, name), self._path[0].real)
            yield replace(_unfollowed(link, self._options), is_folded=is_folded)
        else:
            yield _task(source, target, info, is_folded=is_folded)

    def _check_end(self, folder: _Folder, names: ListedNames) -> None:
        """Raise PartialFailure for a listing that repeats itself or that no file system can have."""
        if names.count == MANY_ENTRIES:
            self._note(
                f"{folder.source} {LISTS_MANY}; if that is unexpected, interrupt the copy: what has "
                "arrived is kept, and the same SRC and DST continue it",
                Severity.NOTICE,
            )
        if names.repeats > MOST_REPEATS + 2 * names.count:
            raise PartialFailure(
                f"{folder.source} lists the same {names.count} names again and again; the rest was not listed"
            )
        if names.count > MOST_ENTRIES:
            raise PartialFailure(
                f"{folder.source} lists more than {MOST_ENTRIES} entries, and so seems to have no end; the "
                "rest was not listed"
            )

    def _answers(self, name: str) -> bool:
        """Tell whether a folder whose listing was lost can be described, so that only its listing fails."""
        self._lost += 1
        if not self._listed_before or self._lost > MOST_LOST:
            return False
        try:
            self._end.stat(name)
        except SourceError:
            return True
        except MpxError:
            return False
        return True

    # --- what waits ----------------------------------------------------------------------------------

    def _wait(self, folder: _Folder, name: str, info: FileInfo, *, is_folded: bool, led_to: str = "") -> None:
        """Keep a folder until its turn; `led_to`: the real name of where the link of this name leads."""
        self._keep(
            folder,
            folder.waiting,
            (name, info.size_bytes, info.modified_s, info.mode, info.identity, is_folded, led_to),
        )

    def _keep(self, folder: _Folder, where: list[bytes], record: tuple[Any, ...]) -> None:
        """Pack what waits; raises _NoEnd when too much does."""
        kept = marshal.dumps(record)
        self._waiting_bytes += len(kept) + _WAITING_COSTS_BYTES
        if self._waiting_bytes > MOST_WAITING_BYTES:
            raise _NoEnd(
                f"{folder.source} holds too many folders and links for one copy ({len(where)} were "
                "listed); the rest was not listed; copy its parts separately"
            )
        where.append(kept)

    def _take(self, where: list[bytes]) -> Any:
        kept = where.pop()
        self._waiting_bytes -= len(kept) + _WAITING_COSTS_BYTES
        return marshal.loads(kept)

    def _next(self, folder: _Folder) -> _Folder:
        """Return the next of the folders that wait in one."""
        name, size, modified_s, mode, identity, is_folded, led_to = self._take(folder.waiting)
        return _Folder(
            posixpath.join(folder.source, name),
            FileInfo(Kind.FOLDER, size, modified_s, mode, identity=identity),
            led_to or posixpath.join(folder.real, name),
            bool(led_to),
            posixpath.join(folder.target, name),
            folder.depth + 1,
            is_folded,
        )

    # --- links ---------------------------------------------------------------------------------------

    def _followed(self, folder: _Folder) -> Iterator[Task]:
        """Yield what the links in a folder lead to, asked for together; folders wait as the others do."""
        folder.links.reverse()
        while folder.links:
            links = []
            for _ in range(min(GROUP, len(folder.links))):
                name, size, where, is_folded = self._take(folder.links)
                info = FileInfo(Kind.LINK, size, link_target=where)
                source, target = posixpath.join(folder.source, name), posixpath.join(folder.target, name)
                link = _Link(source, target, info, posixpath.join(folder.real, name), is_folded=is_folded)
                try:
                    self._end.check_name(source)
                except UsageError as error:
                    yield Task(source, target, info, error=error)
                else:
                    links.append(link)
            for link, found in zip(links, self._end.stats([link.source for link in links]), strict=True):
                yield from self._led_to(folder, link, found)

    def _led_to(self, folder: _Folder, link: _Link, found: FileInfo | MpxError | None) -> Iterator[Task]:
        if isinstance(found, MpxError):
            yield Task(link.source, link.target, link.info, error=found)
        elif found is None:
            yield Task(link.source, link.target, link.info, Skip.LINK_TO_NOTHING)
        elif found.kind is Kind.FOLDER:
            real, where = link.real, link.info.link_target
            if where:  # some servers say only that it is a link
                real = posixpath.normpath(posixpath.join(posixpath.dirname(real), where))
            name = posixpath.basename(link.source)
            self._wait(folder, name, found, is_folded=link.is_folded, led_to=real)
        else:
            yield _task(link.source, link.target, found, is_folded=link.is_folded)


def _task(source: str, target: str, info: FileInfo, *, is_folded: bool = False) -> Task:
    skip = Skip.NOT_REGULAR if info.kind is Kind.OTHER else None
    return Task(source, target, info, skip, is_folded=is_folded)


def _unfollowed(link: _Link, options: CopyOptions) -> Task:
    """Keep or skip a link. Where it leads within the copied tree is kept relative, as the tree moves."""
    if options.links == "skip":
        return Task(link.source, link.target, link.info, Skip.LINK)
    info = link.info
    if not info.link_target:
        untold = SourceError(
            f"{link.source}: the server does not say where this link leads; give --links follow"
        )
        return Task(link.source, link.target, info, error=untold)
    if link.top and info.link_resolved and f"{info.link_target}/".startswith(f"{link.top}/"):
        relative = posixpath.relpath(info.link_target, posixpath.dirname(link.real))
        info = replace(info, link_target=relative)
    return Task(link.source, link.target, info)
