"""What a copy has to do: walks the sources and decides for each file whether and how it moves.

Lists as it goes: nothing here grows with the number of files but the folders still to be visited.
"""

import posixpath
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Protocol

from mpx.endpoint import Endpoint, FileInfo, Kind
from mpx.errors import DestinationError, MpxError, SourceError, UsageError
from mpx.options import CopyOptions

GROUP = 200  # files whose destinations are looked up together
TIME_TOLERANCE_S = 1.0
DEEPEST = 200
MOST_LEVELS = 1000  # of folders: paths of 4096 bytes, the most that Linux has, seldom reach so deep
EXISTS = "exists at the destination"
SAME = "the same at the destination"
STARTS_OVER = "has changed since it was interrupted; starting over"


@dataclass(frozen=True, slots=True)
class Task:
    """One thing to do. `info` describes the source."""

    source: str
    target: str
    info: FileInfo
    skip: str = ""  # why it is left alone; empty if it is not
    error: MpxError | None = None  # why it cannot be copied


def base_name(name: str) -> str:
    """Return the last part of a name, as `cp` understands it."""
    return posixpath.basename(name.rstrip("/"))


def pair_up(
    sources: Sequence[str],
    targets: Sequence[str | None] | None,
    destination: str,
    source_end: Endpoint,
    destination_end: Endpoint,
    options: CopyOptions,
) -> list[tuple[str, str, FileInfo]]:
    """Decide where each source goes: (source, target, what it is).

    One source goes to DST, or into it if DST ends in / or is a folder (a folder source becomes DST
    itself). Several, or a list with `targets`, go into DST under their own names or those targets.
    Raises UsageError, SourceError, DestinationError.
    """
    single = len(sources) == 1 and targets is None
    there = destination_end.stat(destination.rstrip("/") or destination)
    into_folder = there is not None and there.kind is Kind.FOLDER
    if there is not None and not into_folder and (destination.endswith("/") or not single):
        raise DestinationError(f"{destination} is not a folder, so nothing can be copied into it")
    into_folder = into_folder or destination.endswith("/")
    pairs: list[tuple[str, str, FileInfo]] = []
    seen: dict[str, str] = {}
    infos = _described(sources, source_end, options)
    for source, wanted, info in zip(sources, targets or [None] * len(sources), infos, strict=True):
        if info.kind is Kind.FOLDER and not options.recursive:
            raise UsageError(f"{source} is a folder; to copy it with all that is in it, give -r")
        if wanted is not None:
            target = posixpath.join(destination, _below(wanted))
        elif single and (info.kind is Kind.FOLDER or not into_folder):
            target = destination.rstrip("/") or destination[:1]
        else:
            if base_name(source) in ("", ".", ".."):
                raise UsageError(f"{source} has no name of its own; name the target")
            target = posixpath.join(destination, base_name(source))
        destination_end.check_name(target)
        identity = info.identity if destination_end.location.scheme == "file" else None
        if info.kind is Kind.FOLDER and identity and _is_within(target, identity, destination_end):
            raise UsageError(f"{target} is {source} itself or inside it; name another destination")
        if target in seen:
            raise UsageError(f"{seen[target]} and {source} would both become {target}; copy them apart")
        seen[target] = source
        pairs.append((source, target, info))
    return pairs


def _described(sources: Sequence[str], source_end: Endpoint, options: CopyOptions) -> Iterator[FileInfo]:
    """Yield what the sources are: links themselves, where they are not followed. Raises SourceError."""
    themselves = [options.links != "follow" and not source.endswith("/") for source in sources]
    followed = [source for source, itself in zip(sources, themselves, strict=True) if not itself]
    kept = [source for source, itself in zip(sources, themselves, strict=True) if itself]
    there = dict(zip(followed, source_end.stats(followed), strict=True))
    there.update(zip(kept, source_end.stats(kept, follow=False), strict=True))
    for source in sources:
        found = there[source]
        if isinstance(found, MpxError):
            raise found
        if found is None:
            raise SourceError(f"{source} does not exist")
        yield found


def _is_within(target: str, folder: tuple[int, int], end: Endpoint) -> bool:
    """Tell whether a name is the folder of that identity or below it, however it is called."""
    name = target.rstrip("/")
    while name:
        there = end.stat(name)
        if there and there.identity == folder:
            return True
        name = posixpath.dirname(name).rstrip("/")
    return False


def _below(target: str) -> str:
    """Return a target of a list, tidied; raises UsageError if it is not below DST."""
    tidy = posixpath.normpath(target)
    if tidy.startswith("/") or tidy in (".", "..") or tidy.startswith("../"):
        raise UsageError(f"the target {target!r} is not a name below the destination")
    return tidy


class Walkable(Protocol):
    """What walk() asks of an endpoint; see there."""

    def check_name(self, name: str) -> None:
        """See Endpoint."""

    def stat(self, name: str, *, follow: bool = True) -> FileInfo | None:
        """See Endpoint."""

    def entries(self, name: str) -> Iterator[tuple[str, FileInfo]]:
        """See Endpoint."""
        ...


def walk(
    source: str,
    target: str,
    info: FileInfo,
    end: Walkable,
    options: CopyOptions,
    avoid: frozenset[tuple[int, int]] = frozenset(),
) -> Iterator[Task]:
    """Yield a source and everything below it, folders before what is in them; skip the folders `avoid`.

    Links are followed, kept or skipped by option, never silently dropped. A followed link that leads
    back to a folder it is in is skipped with that reason. What cannot be read is a task with that error.
    """
    top = _Found(source, target, info, (posixpath.normpath(source),))
    waiting = [top] if info.kind is Kind.FOLDER else []
    if info.kind is Kind.LINK:
        yield _unfollowed(top, options)
    elif not waiting:
        yield _task(top)
    while waiting:
        folder = waiting.pop()
        if folder.info.identity in avoid:
            yield Task(folder.source, folder.target, folder.info, "the destination itself")
            continue
        if len(folder.path) > MOST_LEVELS:
            deep = SourceError(f"{folder.source}: folders nested deeper than {MOST_LEVELS}; copy it alone")
            yield Task(folder.source, folder.target, folder.info, error=deep)
            continue
        yield Task(folder.source, folder.target, folder.info)
        links: list[_Found] = []
        try:
            end.check_name(folder.source)
            for name, entry in end.entries(folder.source):
                found = folder.below(name, entry)
                if entry.kind is Kind.FOLDER:
                    waiting.append(found)
                elif entry.kind is Kind.LINK:
                    links.append(found)
                else:
                    yield _task(found)
        except UsageError:
            continue  # reported with the folder itself
        except SourceError as error:
            yield Task(folder.source, folder.target, folder.info, error=error)
        for link in links:  # only now is the session free to be asked about them
            resolved = _resolve(link, end, options)
            if isinstance(resolved, Task):
                yield resolved
            else:
                waiting.append(resolved)


@dataclass(frozen=True, slots=True)
class _Found:
    """Something met on a walk, with the real names of the folders that lead to it."""

    source: str
    target: str
    info: FileInfo
    path: tuple[str, ...]

    def below(self, name: str, info: FileInfo) -> "_Found":
        if "/" in name or name in ("", ".", ".."):
            raise SourceError(f"{self.source} lists {name!r}, which is no name of a file; not trusting it")
        child = posixpath.join(self.source, name)
        return _Found(
            child, posixpath.join(self.target, name), info, (*self.path, posixpath.join(self.path[-1], name))
        )


def _task(found: _Found) -> Task:
    skip = "not a regular file" if found.info.kind is Kind.OTHER else ""
    return Task(found.source, found.target, found.info, skip)


def _unfollowed(link: _Found, options: CopyOptions) -> Task:
    """Keep or skip a link. Where it leads within the copied tree is kept relative, as the tree moves."""
    if options.links == "skip":
        return Task(link.source, link.target, link.info, "a symbolic link")
    info, top = link.info, link.path[0]
    if info.link_resolved and f"{info.link_target}/".startswith(f"{top}/"):
        relative = posixpath.relpath(info.link_target, posixpath.dirname(link.path[-1]))
        info = replace(info, link_target=relative)
    return Task(link.source, link.target, info)


def _resolve(link: _Found, end: Walkable, options: CopyOptions) -> "Task | _Found":
    if options.links != "follow":
        return _unfollowed(link, options)
    try:
        end.check_name(link.source)
        info = end.stat(link.source)
    except (SourceError, UsageError) as error:
        return Task(link.source, link.target, link.info, error=error)
    if info is None:
        return Task(link.source, link.target, link.info, "a symbolic link that leads nowhere")
    if info.kind is not Kind.FOLDER:
        return _task(_Found(link.source, link.target, info, link.path))
    real = posixpath.normpath(posixpath.join(posixpath.dirname(link.path[-1]), link.info.link_target))
    if real in link.path or any(step.startswith(real + "/") for step in link.path[:-1]):
        return Task(link.source, link.target, link.info, "a symbolic link to a folder that it is in")
    if len(link.path) > DEEPEST:
        deep = SourceError(f"{link.source}: folders nested deeper than {DEEPEST}; a loop of symbolic links?")
        return Task(link.source, link.target, link.info, error=deep)
    return _Found(link.source, link.target, info, (*link.path[:-1], real))


def by_overwrite(task: Task, there: FileInfo | None, options: CopyOptions) -> Task:
    """Skip what may stay as it is at the destination; what is in the way there is the task's error."""
    if there is None or task.skip or task.error:
        return task
    if there.kind is Kind.FOLDER:
        in_the_way = DestinationError(f"cannot write {task.target}: there is a folder of that name")
        return replace(task, error=in_the_way)
    if there.identity and there.identity == task.info.identity:
        return replace(task, error=UsageError(f"{task.source} and {task.target} are the same file"))
    if there.kind is Kind.OTHER:
        special = DestinationError(f"cannot write {task.target}: what is there is no regular file")
        return replace(task, error=special)
    if options.overwrite == "never":
        return replace(task, skip=EXISTS)
    if options.overwrite == "different" and same(task.info, there):
        return replace(task, skip=SAME)
    return task


def same(source: FileInfo, there: FileInfo) -> bool:
    """Tell whether size and modification time agree, the time within a second; of links the targets.

    A source of unknown size is never the same.
    """
    if source.kind is Kind.LINK:
        return there.kind is Kind.LINK and source.link_target == there.link_target
    if there.kind is not Kind.FILE or source.size_bytes is None or source.size_bytes != there.size_bytes:
        return False
    if source.modified_s is None or there.modified_s is None:
        return False
    return abs(source.modified_s - there.modified_s) <= TIME_TOLERANCE_S


def grouped(tasks: Iterator[Task]) -> Iterator[list[Task]]:
    """Yield tasks in groups whose destinations can be looked up together; the first ones come sooner."""
    size = 8
    while group := list(islice(tasks, size)):
        yield group
        size = GROUP
