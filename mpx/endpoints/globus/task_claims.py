"""What a task that has succeeded says of its files: whether that adds up, and which are not copied. Pure."""

from collections.abc import Callable, Collection, Container
from dataclasses import dataclass

from mpx.endpoints.globus.task_book import Item
from mpx.endpoints.globus.task_state import TaskState


@dataclass(frozen=True, slots=True)
class TaskClaims:
    """Names at the destination."""

    were_there: frozenset[str] = frozenset()  # something had them, and was left as it is
    untold: frozenset[str] = frozenset()  # of which nothing is told that was done


def claims(
    items: Collection[Item],
    state: TaskState,
    skipped: Container[str],
    copied: Callable[[], set[str]],
    *,
    may_leave: bool,
    compares: bool,
) -> TaskClaims:
    """Return what has become of the files of a task, but those that it has copied.

    `skipped`: sources that it could not read; `copied` asks for the names of those that were copied, where
    the counts do not say so of all; `may_leave`: it may leave what it finds at the destination, `compares`:
    where that is the same by its content.
    """
    adds_up = state.files_moved + state.files_same + state.skipped == len(items)
    if adds_up and (not state.files_same or compares):
        return TaskClaims()
    known = copied()
    rest = frozenset(final for source, final, _, _ in items if source not in skipped and final not in known)
    if may_leave and len(rest) <= state.files_same:
        return TaskClaims(were_there=rest)
    return TaskClaims(untold=rest)
