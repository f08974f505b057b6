"""The folders of a destination: made before what goes into them, sealed once all of it is there."""

import posixpath
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice

from mpx.engine.endpoint import OPEN, Endpoint, FileInfo, Kind, Stamp
from mpx.errors import DestinationError, MpxError
from mpx.files.guarded_folders import LocalFolders
from mpx.files.local_error import local_error
from mpx.report import OnNote
from mpx.transfer.folded_names import FoldedNames
from mpx.transfer.planner import GROUP
from mpx.transfer.retrying import RetryingEndpoint
from mpx.transfer.spool import Spool
from mpx.transfer.tree_walk import Task

MOST_NEW = 10_000  # folders that are known to be new; their files come soon after them
LEFT_OPEN = (
    "folders in which not everything was copied stay writable for their owner, until the same SRC and DST "
    "are copied again"
)


class DestinationFolders:
    """Makes folders, opens those that an earlier copy has sealed, and gives all their times and modes."""

    def __init__(
        self,
        pairs: Sequence[tuple[str, str, FileInfo]],
        end: Endpoint,
        retrying: RetryingEndpoint,
        folded: FoldedNames,
        local: LocalFolders,
    ) -> None:
        self._pairs = pairs
        self._named = frozenset(target for _, target, _ in pairs)
        self._end = end
        self._retrying = retrying  # the same endpoint, asked again where its connection is lost
        self._folded = folded
        self._local = local  # what is known of them where they are on this host
        self._is_local = end.capabilities.is_here
        self._stamps = Spool()  # folders get these when all is in them
        self._tops: set[str] = set()  # folders that were there, or made, before all else
        self._new: dict[str, None] = {}  # the last folders that this copy has made: nothing is in them
        self._sealed: dict[str, int] = {}  # folders that were opened, and their modes before
        self._refused: set[str] = set()  # folders that cannot be made
        self._incomplete: set[str] = set()  # folders in or below which something was not copied

    def make_tops(self) -> frozenset[tuple[int, int]]:
        """Make the folders that files and trees go to; return the identities of the latter, where known."""
        end = self._end
        trees = {target for _, target, info in self._pairs if info.kind is Kind.FOLDER and target}
        parents = {posixpath.dirname(target) for _, target, _ in self._pairs if target not in trees}
        tops = sorted(top for top in trees | parents if top)
        there = dict(zip(tops, self._retrying.stats(tops), strict=True))
        if error := next((found for found in there.values() if isinstance(found, MpxError)), None):
            raise error
        missing = [top for top in tops if there[top] is None]
        self._anchor(tops)
        for top, made in zip(missing, self._retrying.ask_all(end.make_folders, missing), strict=True):
            if isinstance(made, MpxError):
                raise made
            if made:
                self._made_new(top)
        self._anchor(tops)
        if self._is_local:  # what is made elsewhere has no identity
            there.update(zip(missing, end.stats(missing), strict=True))
        self._tops = {top for top in tops if top in missing or _is_folder(there[top])}
        self._unseal([top for top in sorted(trees) if _is_folder(there[top]) and top not in missing])
        infos = [there[top] for top in trees]
        identities = [info.identity for info in infos if isinstance(info, FileInfo)]
        return frozenset(identity for identity in identities if isinstance(identity, tuple))

    def _anchor(self, tops: Sequence[str]) -> None:
        """Take the folders at the top as they are now; what is below them is never looked for by a link."""
        if self._is_local:
            for top in tops:
                try:
                    self._local.anchor([top])
                except OSError as error:
                    raise local_error(error, top, writing=True) from None

    def make(self, tasks: Sequence[Task]) -> list[tuple[Task, MpxError]]:
        """Make folders, but those that are there already; return those that cannot be made, and why.

        A link in the place of a folder that the user has named is followed; any other gives way.
        """
        # One by one where the name of one may turn out to be that of another, so that nothing goes into that.
        is_one = any(task.is_folded and not self._folded.keeps_apart(task.target) for task in tasks)
        groups = [[task] for task in tasks] if is_one else [tasks]
        failed: list[tuple[Task, MpxError]] = []
        for group in groups:
            failed += self._make(group)
        return failed

    def _make(self, tasks: Sequence[Task]) -> list[tuple[Task, MpxError]]:
        failed: list[tuple[Task, MpxError]] = []
        chosen: list[Task] = []
        for task in tasks:
            if task.target in self._tops:
                self._stamp(task)
            elif (
                error := self.refusal(task) or (task.is_folded and self._folded.conflict(task.target)) or None
            ):
                failed.append((task, error))
            else:
                chosen.append(task)
        for follow in (True, False):
            some = [task for task in chosen if (task.target in self._named) == follow]
            failed += self._made(some, replace_links=not follow) if some else []
        self._refused.update(task.target for task, _ in failed)
        return failed

    def _made(self, tasks: Sequence[Task], *, replace_links: bool) -> list[tuple[Task, MpxError]]:
        make = partial(self._end.make_folders, replace_links=replace_links)
        results: dict[str, bool | MpxError] = {}
        todo = [task.target for task in tasks]
        while todo:
            results.update(zip(todo, self._retrying.ask_all(make, todo), strict=True))
            opened = self._unseal([name for name in todo if results[name] is False])
            # What could not be made for want of the mode of the folder that it is in
            todo = [
                name
                for name in results
                if isinstance(results[name], MpxError) and any(_is_below(name, folder) for folder in opened)
            ]
        failed = []
        for task in tasks:
            made = results[task.target]
            if isinstance(made, MpxError):
                failed.append((task, made))
                continue
            self._stamp(task)
            if made:
                self._made_new(task.target)
        return failed

    def _unseal(self, names: Sequence[str]) -> Iterable[str]:
        opened = dict(self._retrying.ask_all(lambda some: self._end.unseal(some).items(), names))
        self._sealed.update(opened)
        return opened

    def _stamp(self, task: Task) -> None:
        mode = self._sealed.get(task.target) if task.info.mode is None else task.info.mode
        follow = task.target in self._named
        self._stamps.put((task.target, task.info.modified_s, mode, follow))

    def _made_new(self, folder: str) -> None:
        self._new[folder] = None
        if len(self._new) > MOST_NEW:  # what is in an older one is looked up, that is all
            del self._new[next(iter(self._new))]

    def is_in_new(self, target: str) -> bool:
        """Tell whether a name is in a folder that this copy has made."""
        return posixpath.dirname(target) in self._new

    def refusal(self, task: Task) -> MpxError | None:
        """Return the error of what belongs into a folder that could not be made."""
        if task.target in self._named or posixpath.dirname(task.target) not in self._refused:
            return None
        return DestinationError(f"cannot write {task.target}: the folder that it is in could not be made")

    def not_copied(self, target: str) -> None:
        """Take note that something was not copied: the folders that it is in are not complete."""
        while target and target not in self._incomplete:
            self._incomplete.add(target)
            above = posixpath.dirname(target)
            target = above if above != target else ""

    def seal(self, note: OnNote, check_user: Callable[[], None]) -> None:
        """Give folders their times and modes, the deepest first; incomplete ones stay open to their owner.

        `check_user` is called again and again, and raises Interrupted where the user asks the copy to end.
        """
        kept = self._stamps.drain()
        while some := list(islice(kept, GROUP)):
            check_user()
            stamps = [
                self._final(Stamp(name, modified_s, mode, follow=follow), note)
                for name, modified_s, mode, follow in some
            ]
            self._retrying.ask_all(partial(self._set_times, note), stamps)

    def _set_times(self, note: OnNote, stamps: Sequence[Stamp]) -> tuple[()]:
        self._end.set_times(stamps, note)
        return ()

    def _final(self, stamp: Stamp, note: OnNote) -> Stamp:
        if stamp.mode is None or stamp.mode & OPEN == OPEN or stamp.name not in self._incomplete:
            return stamp
        note(LEFT_OPEN)
        return replace(stamp, mode=stamp.mode | OPEN)


def _is_folder(found: FileInfo | MpxError | None) -> bool:
    return isinstance(found, FileInfo) and found.kind is Kind.FOLDER


def _is_below(name: str, folder: str) -> bool:
    return name.startswith(folder.rstrip("/") + "/")
