"""Walks a folder and all that is below it, and yields what there is to copy: each thing, or why it cannot be.

Depth first. What is kept meanwhile is bounded: the folders and links that wait to be visited in bytes, the
depth, and the number of branches that go beyond it. A tree beyond these bounds is an error, never cut off
in silence.
"""

import marshal
import posixpath
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from mpx.endpoint import FileInfo, Kind
from mpx.errors import MpxError, PartialFailure, SourceError, UsageError
from mpx.listed_names import ListedNames, Repeat
from mpx.options import CopyOptions

DEEPEST = 1000  # folders within folders
LONGEST_PATH = 8192  # characters; no system takes longer ones
MOST_TOO_DEEP = 100  # branches that go deeper, after which the tree has no end
MOST_WAITING_BYTES = 40 * 1024 * 1024  # folders and links still to be visited, some 300,000 or more
_WAITING_COSTS_BYTES = 41  # beside what stands in it
_MOST_PARENTS = 100
INSIDE_ITSELF = "a folder that it is in, met once more"
LEADS_BACK = "a symbolic link to a folder that it is in"


@dataclass(frozen=True, slots=True)
class Task:
    """One thing to do. `info` describes the source."""

    source: str
    target: str
    info: FileInfo
    skip: str = ""  # why it is left alone; empty if it is not
    error: MpxError | None = None  # why it cannot be copied
    is_folded: bool = False  # a name came before in its folder that differs only in case


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
) -> Iterator[Task]:
    """Yield a source and everything below it, folders before what is in them; skip the folders `avoid`.

    Links are followed, kept or skipped by option, never silently dropped. A folder that is met again within
    itself, by a link or otherwise, is skipped with that reason. What cannot be read is a task with an error.
    """
    if info.kind is Kind.LINK:
        yield replace(_unfollowed(_Link(source, target, info, ""), options), is_folded=is_folded)
    elif info.kind is Kind.FOLDER:
        yield from _TreeWalk(end, options, avoid).walk(source, target, info, is_folded=is_folded)
    else:
        yield _task(source, target, info, is_folded=is_folded)


@dataclass(slots=True)
class _Folder:
    """A folder on the way from the top to where the walk is."""

    source: str
    target: str
    info: FileInfo
    real: str  # its name without the links that led to it
    depth: int
    is_folded: bool = False
    is_link: bool = False  # a link led to it
    waiting: list[bytes] = field(default_factory=list)  # folders and links in it, packed


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

    def __init__(self, end: Walkable, options: CopyOptions, avoid: frozenset[tuple[int, int]]) -> None:
        self._end = end
        self._options = options
        self._avoid = avoid
        self._path: list[_Folder] = []  # from the top down
        self._above: dict[tuple[int, int] | str, str] = {}  # folders that hold the top, by identity
        self._waiting_bytes = 0
        self._too_deep = 0
        self._believes_identities = True  # until a server gives two folders the same

    def walk(self, source: str, target: str, info: FileInfo, *, is_folded: bool) -> Iterator[Task]:
        top = _Folder(source, target, info, posixpath.normpath(source), 0, is_folded)
        self._above = _parents(top, self._end)
        try:
            yield from self._visit(top)
            while self._path:
                yield from self._next(self._path[-1])
        except _NoEnd as error:
            yield Task(source, target, info, error=PartialFailure(str(error)))

    def _next(self, folder: _Folder) -> Iterator[Task]:
        """Go on with what waits in a folder, or leave it."""
        if not folder.waiting:
            self._path.pop()
            return
        found = self._unpack(folder)
        if isinstance(found, _Link):
            yield from self._resolve(folder, found)
        else:
            yield from self._visit(found)

    def _visit(self, folder: _Folder) -> Iterator[Task]:
        """Yield a folder and what is in it; folders and links within wait in it."""
        if folder.info.identity in self._avoid:
            yield Task(folder.source, folder.target, folder.info, "the destination itself")
        elif folder.depth > DEEPEST or len(folder.source) > LONGEST_PATH:
            self._too_deep += 1
            deep = PartialFailure(
                f"{folder.source}: nested deeper than {DEEPEST} folders or {LONGEST_PATH} characters; does a "
                "folder hold itself?"
            )
            yield Task(folder.source, folder.target, folder.info, error=deep)
            if self._too_deep >= MOST_TOO_DEEP:
                raise _NoEnd(
                    f"{self._path[0].source}: {self._too_deep} branches are nested too deep, so it seems to "
                    "have no end; the rest was not listed"
                )
        elif folder.depth and self._is_inside_itself(folder):
            reason = LEADS_BACK if folder.is_link else INSIDE_ITSELF
            yield Task(folder.source, folder.target, folder.info, reason)
        else:
            yield Task(folder.source, folder.target, folder.info, is_folded=folder.is_folded)
            self._path.append(folder)
            yield from self._listed(folder)

    def _listed(self, folder: _Folder) -> Iterator[Task]:
        names = ListedNames()
        try:
            self._end.check_name(folder.source)
            for name, info in self._end.entries(folder.source):
                source, target = posixpath.join(folder.source, name), posixpath.join(folder.target, name)
                if isinstance(info, MpxError):
                    yield Task(
                        f"{folder.source.rstrip('/')}/{name}", folder.target, FileInfo(Kind.OTHER), error=info
                    )
                    continue
                repeat = names.add(name)
                if repeat is Repeat.TWICE:
                    yield Task(source, target, info, "listed twice")
                elif info.kind in (Kind.FOLDER, Kind.LINK):
                    self._wait(folder, name, info, is_folded=repeat is Repeat.FOLDED)
                else:
                    yield _task(source, target, info, is_folded=repeat is Repeat.FOLDED)
        except UsageError:
            return  # reported with the folder itself
        except (SourceError, PartialFailure) as error:
            yield Task(folder.source, folder.target, folder.info, error=error)
        folder.waiting.reverse()  # so that they are taken in the order of the listing

    # --- what waits ----------------------------------------------------------------------------------

    def _wait(self, folder: _Folder, name: str, info: FileInfo, *, is_folded: bool) -> None:
        """Keep a folder or link until its turn; raises _NoEnd when too many wait."""
        kept = marshal.dumps(
            (name, info.kind is Kind.LINK, info.size_bytes, info.modified_s, info.mode, info.link_target,
             info.link_resolved, info.identity, is_folded)
        )  # fmt: skip
        self._waiting_bytes += len(kept) + _WAITING_COSTS_BYTES
        if self._waiting_bytes > MOST_WAITING_BYTES:
            raise _NoEnd(
                f"{folder.source} holds too many folders and links to go through them in one copy "
                f"({len(folder.waiting)} of them were listed), so the rest was not "
                "listed; copy its parts apart"
            )
        folder.waiting.append(kept)

    def _unpack(self, folder: _Folder) -> "_Folder | _Link":
        kept = folder.waiting.pop()
        self._waiting_bytes -= len(kept) + _WAITING_COSTS_BYTES
        name, is_link, size, modified_s, mode, link_target, link_resolved, identity, is_folded = (
            marshal.loads(kept)
        )
        info = FileInfo(
            Kind.LINK if is_link else Kind.FOLDER,
            size,
            modified_s,
            mode,
            link_target,
            link_resolved,
            identity,
        )
        source, target = posixpath.join(folder.source, name), posixpath.join(folder.target, name)
        real = posixpath.join(folder.real, name)
        if info.kind is Kind.LINK:
            return _Link(source, target, info, real, self._path[0].real, is_folded)
        return _Folder(source, target, info, real, folder.depth + 1, is_folded)

    # --- links ---------------------------------------------------------------------------------------

    def _resolve(self, folder: _Folder, link: _Link) -> Iterator[Task]:
        """Yield what a link is, by option: itself, or what it leads to."""
        if self._options.links != "follow":
            yield replace(_unfollowed(link, self._options), is_folded=link.is_folded)
            return
        try:
            self._end.check_name(link.source)
            info = self._end.stat(link.source)
        except (SourceError, UsageError) as error:
            yield Task(link.source, link.target, link.info, error=error)
            return
        if info is None:
            yield Task(link.source, link.target, link.info, "a symbolic link that leads nowhere")
        elif info.kind is Kind.FOLDER:
            yield from self._visit(self._led_to(folder, link, info))
        else:
            yield _task(link.source, link.target, info, is_folded=link.is_folded)

    @staticmethod
    def _led_to(folder: _Folder, link: _Link, info: FileInfo) -> _Folder:
        real, where = link.real, link.info.link_target
        if where:  # some servers say only that it is a link
            real = posixpath.normpath(posixpath.join(posixpath.dirname(real), where))
        return _Folder(link.source, link.target, info, real, folder.depth + 1, link.is_folded, is_link=True)

    # --- folders within themselves -------------------------------------------------------------------

    def _is_inside_itself(self, folder: _Folder) -> bool:
        """Tell whether a folder is one of those that lead to it, or holds the top.

        Here device and inode decide; a server's word for them only where it also lists the same in both.
        """
        identity = folder.info.identity
        by_identity = {each.info.identity: each.source for each in self._path} | self._above
        if isinstance(identity, tuple):
            return identity in by_identity
        if folder.is_link and any(_holds(folder.real, each.real) for each in self._path):
            return True
        if identity is None or identity not in by_identity or not self._believes_identities:
            return False
        self._believes_identities = self._lists_the_same(folder.source, by_identity[identity])
        return self._believes_identities

    def _lists_the_same(self, one: str, other: str) -> bool:
        try:
            return self._digest(one) == self._digest(other)
        except (SourceError, PartialFailure, UsageError):
            return False

    def _digest(self, name: str) -> tuple[int, int]:
        """Return how many entries a folder has, and a sum over them that does not depend on their order."""
        count, total = 0, 0
        for entry, info in self._end.entries(name):
            count += 1
            total += hash((entry, info.identity if isinstance(info, FileInfo) else None))
        return count, total


def _holds(folder: str, name: str) -> bool:
    """Tell whether a real name is that of the folder or below it."""
    return f"{name}/".startswith(f"{folder.rstrip('/')}/")


def _parents(top: _Folder, end: Walkable) -> dict[tuple[int, int] | str, str]:
    """Return the folders that hold the top by identity, where the endpoint knows any."""
    if top.info.identity is None:
        return {}
    if isinstance(top.info.identity, str):  # servers make `..` of a name what they like
        steps = [part for part in top.real.split("/") if part]
        names = ["/" + "/".join(steps[:i]) for i in range(len(steps))][-_MOST_PARENTS:]
    else:
        depth = min(top.real.count("/"), _MOST_PARENTS)
        names = [posixpath.join(top.source, *[".."] * i) for i in range(1, depth + 1)]
    found = zip(names, end.stats(names), strict=True)
    return {
        info.identity: name
        for name, info in found
        if isinstance(info, FileInfo) and info.identity and info.identity != top.info.identity
    }


def _task(source: str, target: str, info: FileInfo, *, is_folded: bool = False) -> Task:
    skip = "not a regular file" if info.kind is Kind.OTHER else ""
    return Task(source, target, info, skip, is_folded=is_folded)


def _unfollowed(link: _Link, options: CopyOptions) -> Task:
    """Keep or skip a link. Where it leads within the copied tree is kept relative, as the tree moves."""
    if options.links == "skip":
        return Task(link.source, link.target, link.info, "a symbolic link")
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
