"""Under `--overwrite never`: what tasks may have left under final names, told from what others have stored.

A file that was there as the copy was planned is in no task. One that a task has copied is as long as the
source, and told by the service, or has the time of the source. One that it leaves in part was changed while
that ran; so was one that others began to store just then, and the service names no files of which it has
stored a part, so that nothing tells these apart.
"""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum

from mpx.choices import NEVER
from mpx.endpoints.globus.arrival_check import KEPT_WITHIN_S
from mpx.endpoints.globus.task_book import BegunTask, Item
from mpx.endpoints.globus.task_state import TaskState
from mpx.engine.endpoint import FileInfo, Kind

CLOCKS_APART_S = 300.0  # that of a collection and that of the service


class Whose(Enum):
    """Who has stored a file."""

    OURS = "a task of this copy"
    OTHERS = "others"
    UNKNOWN = "either"


@dataclass(slots=True)
class _Ended:
    """A task that has ended, and may have left something."""

    begun: BegunTask
    state: TaskState
    items: dict[str, Item] = field(default_factory=dict)  # by their names at the destination


class LeftBehind:
    """The tasks of a copy that have ended, as far as their files are not settled. For any thread."""

    def __init__(self, ended: Callable[[str], None]) -> None:
        """`ended`: told of the submission of a task of which nothing needs to be known any more."""
        self._forget = ended
        self._lock = threading.Lock()  # guards what follows
        self._tasks: dict[str, _Ended] = {}  # by submission
        self._asked: set[str] = set()  # names of files that this run was to copy, and that are not settled

    def took(self, begun: BegunTask, state: TaskState) -> None:
        """A task has ended; one that may replace what is there leaves nothing that has to be told apart."""
        if not begun.how.startswith(f"overwrite {NEVER},"):
            self._forget(begun.submission)
            return
        with self._lock:
            items = {item[1]: item for item in begun.items}
            self._tasks[begun.submission] = _Ended(begun, state, items)

    def asked(self, names: Sequence[str]) -> None:
        """Take which files this run is to copy."""
        with self._lock:
            self._asked.update(names)

    def settled(self, names: Sequence[str]) -> None:
        """Take which files have arrived, or are of others; tasks with no others are forgotten."""
        with self._lock:
            self._asked.difference_update(names)
        self._drop(names)

    def nothing_there(self, names: Sequence[str]) -> None:
        """Take under which names nothing has been left after all."""
        self._drop(names)

    def end(self) -> None:
        """The copy has come to its end: what it was not to copy concerns it no more."""
        self._forget_those(lambda each: self._asked.isdisjoint(each.items))

    def _drop(self, names: Sequence[str]) -> None:
        with self._lock:
            for each in self._tasks.values():
                for name in names:
                    each.items.pop(name, None)
        self._forget_those(lambda each: not each.items)

    def _forget_those(self, is_so: Callable[[_Ended], bool]) -> None:
        with self._lock:
            gone = [name for name, each in self._tasks.items() if is_so(each)]
            for name in gone:
                del self._tasks[name]
        for name in gone:
            self._forget(name)

    def has(self, name: str) -> bool:
        """Tell whether something may be left under a name."""
        with self._lock:
            return any(name in each.items for each in self._tasks.values())

    def has_task(self, submission: str) -> bool:
        """Tell whether a task has ended, and may have left something."""
        with self._lock:
            return submission in self._tasks

    def whose(self, name: str, there: FileInfo, copied: Callable[[str], set[str]]) -> Whose:
        """Tell who has stored what is there; `copied` returns what a task has copied, given its id."""
        with self._lock:
            tasks = [each for each in self._tasks.values() if name in each.items]
        told = {whose(there, each.items[name], each.state) for each in tasks}
        all_of_it = [each for each in tasks if there.known_bytes == each.items[name][2]]
        if Whose.UNKNOWN in told and any(name in copied(each.state.task_id) for each in all_of_it):
            return Whose.OURS
        for answer in (Whose.OURS, Whose.UNKNOWN, Whose.OTHERS):
            if answer in told:
                return answer
        return Whose.UNKNOWN


def whose(there: FileInfo, item: Item, state: TaskState) -> Whose:
    """Tell who has stored what is there, as far as that one task may have; it was given `item`."""
    size_bytes, modified_s = item[2:]
    if there.kind is not Kind.FILE or there.known_bytes > size_bytes:
        return Whose.OTHERS
    if there.modified_s is None:
        return Whose.UNKNOWN
    has_its_time = modified_s is not None and abs(there.modified_s - modified_s) <= KEPT_WITHIN_S
    if state.asked_s is not None and state.ended_s is not None:
        if state.asked_s - CLOCKS_APART_S <= there.modified_s <= state.ended_s + CLOCKS_APART_S:
            return Whose.UNKNOWN  # where the source is as new its time shows nothing
        if not has_its_time:
            return Whose.OTHERS
    return Whose.OURS if has_its_time and there.known_bytes == size_bytes else Whose.UNKNOWN
