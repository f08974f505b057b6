"""Files whose names differ only in case, at a destination that may take them for one.

They wait until those before them are there. Whether a folder of the destination keeps such names apart is
then seen from what it lists, once for each folder; where it does, none of them waits any more. Names that are
not ASCII are looked at one by one, as a folder may keep cases apart and not how letters are composed; so are
names with dots and blanks at their ends, which Windows leaves out.
"""

import posixpath
from collections import deque
from collections.abc import Mapping, Sequence
from functools import partial

from mpx.engine.endpoint import Endpoint, FileInfo
from mpx.errors import DestinationError, MpxError, SourceError
from mpx.transfer.listed_names import folded
from mpx.transfer.planner import GROUP
from mpx.transfer.retrying import RetryingEndpoint
from mpx.transfer.tree_walk import Task

_MANY = "too many names in its folder differ from it only in case; copy it separately"
Found = FileInfo | MpxError | None


class FoldedNames:
    """Finds out whether a destination keeps such names apart, from what it lists once the first is there."""

    MOST_WAITING = 1000

    def __init__(self, end: Endpoint, retrying: RetryingEndpoint) -> None:
        self._end = end
        self._retrying = retrying
        self._apart: dict[str, bool] = {}  # names in ASCII, by folder
        self._waiting: dict[tuple[str, str], deque[Task]] = {}  # by folder and folded name
        self._count = 0

    def keeps_apart(self, target: str) -> bool:
        """Tell whether the folder of a name is known to keep it apart from others that differ in case."""
        return _is_plain(posixpath.basename(target)) and self._apart.get(posixpath.dirname(target), False)

    def conflict(self, target: str) -> MpxError | None:
        """Return the error of a name that the destination takes for another that came before; else None."""
        return None if self.keeps_apart(target) else self._judged([target])[0]

    # --- files that wait -----------------------------------------------------------------------------

    def put_off(self, task: Task) -> None:
        """Keep a file until all others are there: the destination may take its name for another's."""
        self._waiting.setdefault(_key(task.target), deque()).append(task)
        self._count += 1

    @property
    def is_waiting(self) -> bool:
        """Whether any files wait."""
        return bool(self._waiting)

    @property
    def is_full(self) -> bool:
        """Whether so many files wait that it is time to look at the destination."""
        return self._count >= self.MOST_WAITING

    def ready(self) -> tuple[list[Task], list[tuple[Task, MpxError]]]:
        """Return files that may be copied now, and those that cannot be; to be called when all else is there.

        Of names that may be one the first is copied, and the others wait on.
        """
        heads = [queue[0].target for queue in self._waiting.values()]
        ready: list[Task] = []
        failed: list[tuple[Task, MpxError]] = []
        waiting: dict[tuple[str, str], deque[Task]] = {}
        for (key, queue), error in zip(self._waiting.items(), self._judged(heads), strict=True):
            head = queue.popleft()
            if error is None:
                ready.append(head)
            else:
                failed.append((head, error))
            rest = deque(task for task in queue if not self.keeps_apart(task.target))
            ready += [task for task in queue if self.keeps_apart(task.target)]
            if error and not self._apart.get(key[0], True):  # what is there is in the way of all others too
                failed += [(task, _taken_for_another(task.target)) for task in rest]
            elif rest:
                waiting[key] = rest
        self._waiting = waiting
        self._count = sum(map(len, waiting.values()))
        return ready, failed

    def give_up(self) -> list[tuple[Task, MpxError]]:
        """Return all that wait, as files that cannot be copied."""
        left = [task for queue in self._waiting.values() for task in queue]
        self._waiting, self._count = {}, 0
        return [(task, SourceError(f"{task.source}: {_MANY}")) for task in left]

    # --- asking --------------------------------------------------------------------------------------

    def _judged(self, targets: Sequence[str]) -> list[MpxError | None]:
        """Return for each name the error of one that the destination takes for another."""
        found: dict[str, Found] = {}
        for i in range(0, len(targets), GROUP):
            some = targets[i : i + GROUP]
            answers = self._retrying.ask(partial(self._end.stats, some, follow=False))
            found.update(zip(some, answers, strict=True))
        by_folder: dict[str, dict[str, Found]] = {}
        for target, there in found.items():
            by_folder.setdefault(posixpath.dirname(target), {})[posixpath.basename(target)] = there
        judged = {folder: self._judged_in(folder, names) for folder, names in by_folder.items()}
        return [judged[posixpath.dirname(target)][posixpath.basename(target)] for target in targets]

    def _judged_in(self, folder: str, found: Mapping[str, Found]) -> dict[str, MpxError | None]:
        """As `_judged`, of names in one folder, by what they are there."""
        unknown = [name for name in found if not self.keeps_apart(posixpath.join(folder, name))]
        errors = {name: there if isinstance(there, MpxError) else None for name, there in found.items()}
        try:
            listed = self._listed(folder, unknown) if unknown and self._apart.get(folder, True) else {}
        except MpxError as error:
            return {name: error if there else None for name, there in found.items()}
        for name in unknown:
            alike, is_there = listed.get(folded(name), set()), isinstance(found[name], FileInfo)
            is_apart = bool(alike - {name}) and (name in alike) == is_there
            if is_there and alike == {name} and _is_plain(name):  # those before it are not there
                other = posixpath.join(folder, name.swapcase())
                is_apart = self._retrying.stats([other], follow=False) == [None]
            if _is_plain(name) and all(map(_is_plain, alike)) and (is_there or is_apart):
                self._apart[folder] = is_apart and self._apart.get(folder, True)
            if is_there and not is_apart:
                errors[name] = _taken_for_another(posixpath.join(folder, name))
        return errors

    def _listed(self, folder: str, names: Sequence[str]) -> dict[str, set[str]]:
        """Return what the folder lists that differs from these names only in case, by folded name."""
        alike: dict[str, set[str]] = {folded(name): set() for name in names}
        for other, _ in self._retrying.entries(folder):
            if (plain := folded(other)) in alike:
                alike[plain].add(other)
        return alike


def _is_plain(name: str) -> bool:
    """Tell whether a name can differ from others in case only."""
    return name.isascii() and not name.endswith((".", " "))


def _key(target: str) -> tuple[str, str]:
    return posixpath.dirname(target), folded(posixpath.basename(target))


def _taken_for_another(target: str) -> DestinationError:
    return DestinationError(
        f"cannot write {target}: the destination takes it for another file of this copy, whose name "
        "differs only in case; rename one of them, or copy them into separate folders"
    )
