"""What a copy has to do: what becomes what, and whether a file has to be moved at all."""

import posixpath
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Protocol

from mpx.engine.endpoint import Endpoint, FileInfo, Kind
from mpx.errors import DestinationError, MpxError, SourceError, UsageError
from mpx.files.open_descriptor import named_descriptor
from mpx.location import Location, shown_place
from mpx.options import CopyOptions
from mpx.report import Skip
from mpx.text import quoted
from mpx.transfer.named_links import shown_links
from mpx.transfer.tree_walk import Task

GROUP = 200  # files whose destinations are looked up together
TIME_TOLERANCE_S = 1.0
STARTING_OVER = "starting over"


def base_name(name: str) -> str:
    """Return the last part of a name, as `cp` understands it."""
    return posixpath.basename(name.rstrip("/"))


def described_first(sources: Sequence[str], destination: str, *, at_source: bool) -> list[str]:
    """Return which names of an end are described first: a copy of few files asks about no others."""
    if at_source:
        return list(sources)
    there = destination.rstrip("/") or destination
    if destination.endswith("/"):
        return [there, *(posixpath.join(there, base_name(source)) for source in sources)]
    return [there, posixpath.dirname(there)]


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
    if destination_end.capabilities.is_here and named_descriptor(destination):
        raise DestinationError(
            f"{destination} is an open file, and a copy replaces its destination by a new file; name a file"
        )
    single = len(sources) == 1 and targets is None
    there = destination_end.stat(destination.rstrip("/") or destination)
    into_folder = there is not None and there.kind is Kind.FOLDER
    if there is not None and not into_folder and (destination.endswith("/") or not single):
        named = named_at(destination_end, destination)
        raise DestinationError(f"{named} is not a folder, so nothing can be copied into it")
    into_folder = into_folder or destination.endswith("/")
    pairs: list[tuple[str, str, FileInfo]] = []
    seen: dict[str, str] = {}
    infos = _described(sources, source_end, options)
    for source, wanted, described in zip(sources, targets or [None] * len(sources), infos, strict=True):
        info = source_end.special_source(source) if described.kind is Kind.OTHER else described
        if info.kind is Kind.FOLDER and not source_end.capabilities.lists:
            next(iter(source_end.entries(source)), None)  # raises what that means, before anything is made
        if info.kind is Kind.FOLDER and not options.recursive:
            named = named_at(source_end, source)
            raise UsageError(f"{named} is a folder; to copy it with all that is in it, give -r")
        if wanted is not None:
            target = posixpath.join(destination, _below(wanted))
        elif single and (info.kind is Kind.FOLDER or not into_folder):
            target = destination.rstrip("/") or destination[:1]
        else:
            if base_name(source) in ("", ".", ".."):
                raise UsageError(f"{named_at(source_end, source)} has no name of its own; name the target")
            target = posixpath.join(destination, base_name(source))
        destination_end.check_name(target)
        is_one_place = source_end.location.endpoint == destination_end.location.endpoint
        identity = info.identity if is_one_place else None
        if info.kind is Kind.FOLDER and identity and _is_within(target, identity, destination_end):
            raise UsageError(f"{target} is {source} itself or inside it; name another destination")
        if is_one_place and not source_end.capabilities.is_here and _is_named_within(target, source, info):
            raise UsageError(f"{target} is {source} itself or inside it; name another destination")
        if target in seen:
            raise UsageError(f"{seen[target]} and {source} would both become {target}; copy them separately")
        seen[target] = source
        pairs.append((source, target, info))
    _check_apart(pairs)
    return pairs


def _check_apart(pairs: Sequence[tuple[str, str, FileInfo]]) -> None:
    """Raise UsageError for a target within that of a folder, where two may be written to one name."""
    trees = {target.rstrip("/"): source for source, target, info in pairs if info.kind is Kind.FOLDER}
    for source, target, _ in pairs if len(pairs) > 1 else ():
        above = posixpath.dirname(target.rstrip("/"))
        while above.strip("/"):
            if above in trees:
                raise UsageError(
                    f"{source} would become {target}, inside the target of {trees[above]}; copy them "
                    "separately"
                )
            above = posixpath.dirname(above)


def _described(sources: Sequence[str], source_end: Endpoint, options: CopyOptions) -> Iterator[FileInfo]:
    """Yield what the sources are: links themselves, where they are not followed. Raises SourceError."""
    themselves = [options.links != "follow" and not source.endswith("/") for source in sources]
    followed = [source for source, itself in zip(sources, themselves, strict=True) if not itself]
    kept = [source for source, itself in zip(sources, themselves, strict=True) if itself]
    there = dict(zip(followed, source_end.stats(followed), strict=True))
    there.update(zip(kept, source_end.stats(kept, follow=False), strict=True))
    there.update(shown_links(kept, there, source_end, options))
    for source in sources:
        found = there[source]
        if isinstance(found, MpxError):
            raise found
        if found is None:
            raise SourceError(f"{named_at(source_end, source)} does not exist")
        yield found


class Placed(Protocol):
    """An endpoint, as far as it says where it is."""

    @property
    def location(self) -> Location:
        """See Endpoint."""
        ...


def named_at(end: Placed, name: str) -> str:
    """Return a name as it is shown to people: at a server, its URL."""
    return shown_place(str(end.location.at(name)))


def _is_within(target: str, folder: tuple[int, int] | str, end: Endpoint) -> bool:
    """Tell whether a name is the folder of that identity or below it, however it is called."""
    name = target.rstrip("/")
    while name:
        there = end.stat(name)
        if there and there.identity == folder:
            return True
        name = posixpath.dirname(name).rstrip("/")
    return False


def _is_named_within(target: str, source: str, info: FileInfo) -> bool:
    """Tell by names alone, as not every server tells identities, whether a target is a source or below it."""
    tidy, above = posixpath.normpath(target), posixpath.normpath(source)
    return tidy == above or (info.kind is Kind.FOLDER and tidy.startswith(above.rstrip("/") + "/"))


def _below(target: str) -> str:
    """Return a target of a list, tidied; raises UsageError if it is not below DST."""
    tidy = posixpath.normpath(target)
    if tidy.startswith("/") or tidy in (".", "..") or tidy.startswith("../"):
        raise UsageError(f"the target {quoted(target)} is not a name below the destination")
    return tidy


def by_overwrite(
    task: Task, there: FileInfo | None, end: Placed, options: CopyOptions, *, is_one_place: bool = True
) -> Task:
    """Skip what may stay as it is at the destination `end`; what is in the way there is the task's error.

    `is_one_place`: the source is there as well, so that identities can be compared.
    """
    if there is None or task.skip or task.error:
        return task
    if there.kind is Kind.FOLDER:
        named = named_at(end, task.target)
        in_the_way = DestinationError(
            f"cannot write {named}: there is a folder of that name; remove it, or copy to another name"
        )
        return replace(task, error=in_the_way)
    if is_one_place and there.identity and there.identity == task.info.identity:
        return replace(
            task,
            error=UsageError(f"{task.source} and {task.target} are the same file; name another destination"),
        )
    if there.kind is Kind.OTHER:
        special = DestinationError(
            f"cannot write {named_at(end, task.target)}: it is not a regular file, which a copy could "
            "replace; name a file"
        )
        return replace(task, error=special)
    if options.overwrite == "never":
        return replace(task, skip=Skip.EXISTS)
    if options.overwrite == "different" and same(task.info, there):
        return replace(task, skip=Skip.SAME)
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
