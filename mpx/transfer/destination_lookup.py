"""What the destination makes of tasks: they are skipped, fail, or replace the file that is there."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

from mpx.engine.endpoint import FileInfo, Kind
from mpx.errors import MpxError, UsageError
from mpx.options import CopyOptions
from mpx.report import Skip
from mpx.transfer.planner import Placed, by_overwrite
from mpx.transfer.sent_notes import SentNotes
from mpx.transfer.tree_walk import Task, Walkable


class PlacedTree(Walkable, Placed, Protocol):
    """What is asked of both ends to decide what becomes of each task."""


def decide(
    group: Sequence[Task],
    source: PlacedTree,
    destination: PlacedTree,
    options: CopyOptions,
    is_new: Callable[[str], bool] = lambda _: False,
    notes: SentNotes | None = None,
    *,
    keeps_times: bool = True,
) -> list[Task]:
    """Return tasks with what the `destination` says; it is asked of all that are in no new folder.

    `notes` tell what was sent to a server that keeps no modification times; `keeps_times`: it may keep them.
    """
    group = [check_names(task, source, destination) for task in group]
    files = [
        task.target
        for task in group
        if is_open(task) and task.info.kind is Kind.FILE and not is_new(task.target)
    ]
    links = [task.target for task in group if is_open(task) and task.info.kind is Kind.LINK]
    met = dict(zip(files, destination.stats(files), strict=True))
    met.update(zip(links, destination.stats(links, follow=False), strict=True))
    is_one_place = source.location.endpoint == destination.location.endpoint
    result = []
    for task in group:
        found = met.get(task.target)
        if isinstance(found, MpxError):
            result.append(replace(task, error=found))
        else:
            decision = by_overwrite(
                replace(task, there=found), found, destination, options, is_one_place=is_one_place
            )
            if found and notes and _was_sent(decision, found, options, notes):
                decision = replace(decision, skip=Skip.SAME)
            elif found and notes and decision.skip is Skip.SAME and not keeps_times:
                is_another = notes.contradicts(task.target, task.info, found)
                decision = replace(decision, skip=None if is_another else Skip.SAME)
            result.append(decision)
    return result


def are_there(
    files: Sequence[tuple[str, str, FileInfo]],
    source: PlacedTree,
    destination: PlacedTree,
    options: CopyOptions,
    notes: SentNotes,
    *,
    keeps_times: bool,
) -> bool:
    """Tell whether nothing is to be done for these files, as the destination has them; see `decide`."""
    if options.overwrite == "always":
        return False
    tasks = [Task(*file) for file in files]
    decided = decide(tasks, source, destination, options, notes=notes, keeps_times=keeps_times)
    return all(task.skip is not None for task in decided)


def _was_sent(task: Task, there: FileInfo, options: CopyOptions, notes: SentNotes) -> bool:
    """Tell whether a file that seems to differ is the one that was sent, by what was noted then."""
    may_differ = is_open(task) and options.overwrite == "different" and there.kind is Kind.FILE
    return (
        may_differ and task.info.size_bytes == there.size_bytes and notes.knows(task.target, task.info, there)
    )


def check_names(task: Task, source: Walkable, destination: Walkable) -> Task:
    """Return the task; if an endpoint cannot use its name, with that error."""
    try:
        source.check_name(task.source)
        destination.check_name(task.target)
    except UsageError as error:
        return replace(task, error=error)
    return task


def is_open(task: Task) -> bool:
    """Tell whether there is still something to do."""
    return not task.skip and task.error is None
