"""What a copy has to do: walks the sources and decides for each file whether and how it moves.

Lists as it goes: nothing here grows with the number of files but the folders still to be visited.
"""

import posixpath
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from mpx.endpoint import Endpoint, FileInfo, Kind
from mpx.errors import DestinationError, SourceError, UsageError
from mpx.options import CopyOptions

GROUP = 100  # files whose destinations are looked up together
TIME_TOLERANCE_S = 1.0
DEEPEST = 200


@dataclass(frozen=True, slots=True)
class Task:
    """One thing to do. `info` describes the source."""

    source: str
    target: str
    info: FileInfo
    skip: str = ""  # why it is left alone; empty if it is not


def base_name(name: str) -> str:
    """Return the last part of a name, as `cp` understands it."""
    return posixpath.basename(name.rstrip("/"))


def pair_up(
    sources: Sequence[str],
    targets: Sequence[str | None],
    destination: str,
    source_end: Endpoint,
    destination_end: Endpoint,
    options: CopyOptions,
) -> list[tuple[str, str, FileInfo]]:
    """Decide where each source goes: (source, target, what it is).

    One source goes to DST, or into it if DST ends in / or is a folder (a folder source becomes DST
    itself). Several go into DST under their own names. Raises UsageError, SourceError.
    """
    single = len(sources) == 1 and targets[0] is None
    into_folder = destination.endswith("/")
    if single and not into_folder:
        there = destination_end.stat(destination)
        into_folder = there is not None and there.kind is Kind.FOLDER
    pairs: list[tuple[str, str, FileInfo]] = []
    seen: dict[str, str] = {}
    for source, wanted, info in zip(sources, targets, source_end.stats(sources), strict=True):
        if info is None:
            raise SourceError(f"{source} does not exist")
        if info.kind is Kind.FOLDER and not options.recursive:
            raise UsageError(f"{source} is a folder; to copy it with all that is in it, give -r")
        if wanted is not None:
            target = posixpath.join(destination, wanted)
        elif single and (info.kind is Kind.FOLDER or not into_folder):
            target = destination.rstrip("/") or "/"
        else:
            if base_name(source) in ("", ".", ".."):
                raise UsageError(f"{source} has no name of its own; name the target")
            target = posixpath.join(destination, base_name(source))
        if target in seen:
            raise UsageError(f"{seen[target]} and {source} would both become {target}; copy them apart")
        seen[target] = source
        pairs.append((source, target, info))
    return pairs


def walk(source: str, target: str, info: FileInfo, end: Endpoint, options: CopyOptions) -> Iterator[Task]:
    """Yield a source and everything below it, folders before what is in them.

    Links are followed, kept or skipped by option, never silently dropped. A followed link that leads
    back to a folder it is in is skipped with that reason. Raises SourceError.
    """
    top = _Found(source, target, info, (posixpath.normpath(source),))
    if info.kind is Kind.FOLDER:
        waiting = [top]
    else:
        waiting = []
        yield _task(top)
    while waiting:
        folder = waiting.pop()
        yield Task(folder.source, folder.target, folder.info)
        try:
            end.check_name(folder.source)
        except UsageError:
            continue  # reported with the folder itself
        links: list[_Found] = []
        for name, entry in end.entries(folder.source):
            found = folder.below(name, entry)
            if entry.kind is Kind.FOLDER:
                waiting.append(found)
            elif entry.kind is Kind.LINK:
                links.append(found)
            else:
                yield _task(found)
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


def _resolve(link: _Found, end: Endpoint, options: CopyOptions) -> "Task | _Found":
    if options.links == "keep":
        return Task(link.source, link.target, link.info)
    if options.links == "skip":
        return Task(link.source, link.target, link.info, "a symbolic link")
    info = end.stat(link.source)
    if info is None:
        return Task(link.source, link.target, link.info, "a symbolic link that leads nowhere")
    if info.kind is not Kind.FOLDER:
        return _task(_Found(link.source, link.target, info, link.path))
    real = posixpath.normpath(posixpath.join(posixpath.dirname(link.path[-1]), link.info.link_target))
    if real in link.path or any(step.startswith(real + "/") for step in link.path[:-1]):
        return Task(link.source, link.target, link.info, "a symbolic link to a folder that it is in")
    if len(link.path) > DEEPEST:
        raise SourceError(f"{link.source}: folders nested deeper than {DEEPEST}; a loop of symbolic links?")
    return _Found(link.source, link.target, info, (*link.path[:-1], real))


def by_overwrite(task: Task, there: FileInfo | None, options: CopyOptions) -> Task:
    """Skip a file whose destination may stay as it is; raises DestinationError if a folder is in the way."""
    if there is None:
        return task
    if there.kind is Kind.FOLDER:
        raise DestinationError(f"cannot write {task.target}: there is a folder of that name")
    if options.overwrite == "never":
        return replace(task, skip="exists at the destination")
    if options.overwrite == "different" and same(task.info, there):
        return replace(task, skip="the same at the destination")
    return task


def same(source: FileInfo, there: FileInfo) -> bool:
    """Tell whether size and modification time agree, the time within a second."""
    if there.kind is not Kind.FILE or source.size_bytes != there.size_bytes:
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
