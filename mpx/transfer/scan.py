"""Fills the pool: walks the sources, makes folders and links, decides what of each file is to be moved."""

import contextlib
import posixpath
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Protocol

from mpx.endpoints.local.endpoint import LocalEndpoint
from mpx.engine.endpoint import Endpoint, FileInfo, Kind, Note, aside_name, partial_name
from mpx.engine.file_queue import FileQueue
from mpx.engine.file_transfer import FileTransfer
from mpx.engine.stop import Failure
from mpx.errors import (
    DestinationError,
    MpxError,
    NoSpace,
    SourceError,
    UsageError,
)
from mpx.files.guarded_folders import LocalFolders
from mpx.files.source_trees import ANYWHERE
from mpx.options import CopyOptions
from mpx.report import Report
from mpx.transfer.commit import Committer
from mpx.transfer.destination_folders import DestinationFolders
from mpx.transfer.folded_names import FoldedNames
from mpx.transfer.journal import Journal
from mpx.transfer.listed_names import ListedNames, Repeat
from mpx.transfer.planner import GROUP, SAME, STARTS_OVER, Placed, by_overwrite, grouped
from mpx.transfer.retrying import RetryingEndpoint
from mpx.transfer.sent_notes import SentNotes
from mpx.transfer.spool import Spool
from mpx.transfer.tree_walk import Task, Walkable, walk
from mpx.units import counted, format_size

MOST_ROUNDS = 20  # in which files are copied whose names differ from others only in case
MOST_LINKS = 3_000_000  # that are kept as links; they wait on disk, 150 bytes or so each

Pair = tuple[str, str, FileInfo]


class _Destination(Walkable, Placed, Protocol):
    """What is asked of a destination to decide what becomes of each task."""


def tasks(
    pairs: Sequence[Pair],
    source_end: Walkable,
    options: CopyOptions,
    avoid: frozenset[tuple[int, int]] = frozenset(),
    note: Note = lambda _: None,
) -> Iterator[Task]:
    """Yield everything that the sources hold, the folders `avoid` left out; see walk()."""
    names = ListedNames()
    for source, target, info in pairs:
        is_folded = names.add(target) is Repeat.FOLDED
        yield from walk(source, target, info, source_end, options, avoid, is_folded=is_folded, note=note)


def decided(
    listed: Iterator[Task],
    source_end: Walkable,
    destination_end: _Destination,
    options: CopyOptions,
    notes: SentNotes | None = None,
) -> Iterator[Task]:
    """Yield the tasks with what the destination says to them: leave it alone, or it cannot be done."""
    for group in grouped(listed):
        yield from decide(group, source_end, destination_end, options, notes=notes)


def decide(
    group: Sequence[Task],
    source_end: Walkable,
    destination_end: _Destination,
    options: CopyOptions,
    is_new: Callable[[str], bool] = lambda _: False,
    notes: SentNotes | None = None,
) -> list[Task]:
    """As `decided`, of tasks whose destinations are looked up together, but those in folders that are new.

    `notes` tell what was sent to a server that keeps no modification times.
    """
    group = [_named(task, source_end, destination_end) for task in group]
    files = [
        task.target
        for task in group
        if _is_open(task) and task.info.kind is Kind.FILE and not is_new(task.target)
    ]
    links = [task.target for task in group if _is_open(task) and task.info.kind is Kind.LINK]
    there = dict(zip(files, destination_end.stats(files), strict=True))
    there.update(zip(links, destination_end.stats(links, follow=False), strict=True))
    result = []
    for task in group:
        found = there.get(task.target)
        if isinstance(found, MpxError):
            result.append(replace(task, error=found))
        else:
            decision = by_overwrite(replace(task, there=found), found, destination_end, options)
            if found and notes and _was_sent(decision, found, options, notes):
                decision = replace(decision, skip=SAME)
            result.append(decision)
    return result


def _was_sent(task: Task, there: FileInfo, options: CopyOptions, notes: SentNotes) -> bool:
    """Tell whether a file that seems to differ is the one that was sent, by what was noted then."""
    is_open = _is_open(task) and options.overwrite == "different" and there.kind is Kind.FILE
    return is_open and task.info.size_bytes == there.size_bytes and notes.knows(task.target, task.info, there)


def _named(task: Task, source_end: Walkable, destination_end: Walkable) -> Task:
    """Return the task; if an endpoint cannot use its name, with that error."""
    try:
        source_end.check_name(task.source)
        destination_end.check_name(task.target)
    except UsageError as error:
        return replace(task, error=error)
    return task


def _is_open(task: Task) -> bool:
    return not task.skip and task.error is None


def rehearse(task: Task, report: Report) -> str:
    """Count one thing that would be done, and say so in a line."""
    size_bytes = task.info.known_bytes
    if task.error:
        report.begin(size_bytes)
        report.failed(task.source, str(task.error), size_bytes)
        return f"cannot copy {task.source}: {task.error}"
    if task.skip:
        report.skip(task.source, task.skip, size_bytes)
        return f"would leave {task.source} alone: {task.skip}"
    if task.info.kind is Kind.FOLDER:
        return f"would copy the folder {task.source} to {task.target}"
    report.begin(size_bytes)
    size = "size unknown" if task.info.size_bytes is None else format_size(size_bytes)
    return f"would copy {task.source} to {task.target}, {size}"


class Lister(threading.Thread):
    """Puts one file after the other into the pool, as fast as the pool takes them."""

    def __init__(
        self,
        pairs: Sequence[Pair],
        *,
        options: CopyOptions,
        source_end: Endpoint,
        destination_end: Endpoint,
        pool: FileQueue,
        failure: Failure,
        journal: Journal,
        finisher: Committer,
        report: Report,
        prove: Callable[[FileTransfer], None],
        notes: SentNotes,
        folders: LocalFolders,
        sums: Callable[[int | None], str],
    ) -> None:
        super().__init__(name="mpx-lister", daemon=True)
        self._links = Spool()  # that are made at the end
        self._pairs = pairs
        self._options = options
        self._source_end = source_end
        self._destination_end = destination_end
        self._is_local = destination_end.location.scheme == "file"
        self._far_end = source_end if self._is_local else destination_end
        self._here = RetryingEndpoint(source_end, options.retries, failure.cancel)
        self._there = RetryingEndpoint(destination_end, options.retries, failure.cancel)
        self._folded_names = FoldedNames(destination_end, self._there)
        self._folders = DestinationFolders(pairs, destination_end, self._there, self._folded_names, folders)
        self._local_folders = folders
        self._trees = source_end.trees if isinstance(source_end, LocalEndpoint) else ANYWHERE
        if options.links != "follow" and self._trees is not ANYWHERE:
            for source, _, info in pairs:
                if info.kind is Kind.FOLDER:
                    self._trees.add(source)
        self._pool = pool
        self._failure = failure
        self._journal = journal
        self._finisher = finisher
        self._report = report
        self._prove = prove
        self._notes = notes
        self._sums = sums

    def run(self) -> None:
        """List until the end, or until the copy stops."""
        with self._failure.guard():
            avoid = self._folders.make_tops()
            listed = tasks(self._pairs, self._here, self._options, avoid, self._report.note)
            for group in grouped(listed):
                if self._failure.cancel.is_set():
                    return
                self._prepare(group)
                if self._folded_names.is_full:
                    self._put_folded()
            self._put_folded()
            if note := self._source_end.listing_note():
                self._report.note(note)
            self._pool.end_listing()

    def finish(self) -> None:
        """When everything is there: links, then times and modes of folders, the deepest first.

        Links come last since some servers make them only to what is there, and so that nothing that a
        listing names later can be written through one that it named before.
        """
        for source, target, where, is_folded in self._links.drain():
            info = FileInfo(Kind.LINK, 0, link_target=where)
            self._make_link(Task(source, target, info, is_folded=is_folded))
        for target in self._finisher.incomplete_folders:
            self._folders.not_copied(target)
        self._folders.seal(self._report.note)

    def _put_folded(self) -> None:
        """Copy files whose names differ from others only in case, each when those before it are there."""
        for _ in range(MOST_ROUNDS):
            if not self._folded_names.is_waiting:
                return
            self._pool.wait_all_settled(self._far_end.pause)
            ready, failed = self._folded_names.ready()
            for task, error in failed:
                self._fail(task, error)
            for i in range(0, len(ready), GROUP):
                self._prepare([replace(task, is_folded=False) for task in ready[i : i + GROUP]])
        for task, error in self._folded_names.give_up():
            self._fail(task, error)

    def _prepare(self, group: Sequence[Task]) -> None:
        named = [_named(task, self._source_end, self._destination_end) for task in group]
        folders = [task for task in named if _is_open(task) and task.info.kind is Kind.FOLDER]
        for task, error in self._folders.make(folders):
            self._fail(task, error)
        rest = []
        for task in named:
            error_of_folder = self._folders.refusal(task) if _is_open(task) else None
            if task.info.kind is Kind.FOLDER and _is_open(task):
                continue  # it is made, or has failed
            if error_of_folder:
                self._fail(task, error_of_folder)
            elif self._has_to_wait(task):
                self._folded_names.put_off(task)
            else:
                rest.append(task)
        ready = []
        is_new = self._folders.is_in_new
        for task in decide(rest, self._here, self._there, self._options, is_new, self._notes):
            if task.error:
                self._fail(task, task.error)
            elif task.skip:
                self._tidy(task)
                self._report.skip(task.source, task.skip, task.info.known_bytes)
            elif task.info.kind is Kind.LINK:
                self._put_link(task)
            elif task.info.kind is not Kind.FOLDER:
                ready.append(task)
        moves = [move for task in ready if (move := self._move(task))]
        self._check_room(moves)
        for move in moves:
            self._put(move)

    def _has_to_wait(self, task: Task) -> bool:
        """Tell whether the destination may take the name of a file for another's."""
        is_file = task.info.kind is Kind.FILE and _is_open(task)
        return is_file and task.is_folded and not self._folded_names.keeps_apart(task.target)

    def _tidy(self, task: Task) -> None:
        """Remove what a run left at a server that was killed just when a file had got its name."""
        known = self._journal.unfinished.get(task.target)
        if known and task.skip == SAME and not self._is_local and known.partial != task.target:
            with contextlib.suppress(DestinationError):
                for name in (known.partial, aside_name(known.partial, task.target)):
                    self._there.ask(partial(self._destination_end.remove, name))
            self._journal.done([task.target])

    def _fail(self, task: Task, error: MpxError) -> None:
        is_within = task.info.kind in (Kind.FILE, Kind.LINK)
        self._folders.not_copied(posixpath.dirname(task.target) if is_within else task.target)
        self._report.begin(task.info.known_bytes)
        self._finisher.failed(task.source, error, task.info.known_bytes)

    def _put_link(self, task: Task) -> None:
        """Keep a link until all else is there."""
        if len(self._links) < MOST_LINKS:
            self._links.put((task.source, task.target, task.info.link_target, task.is_folded))
        else:
            many = f"{task.source}: more than {MOST_LINKS} links are to be kept; copy parts of the tree apart"
            self._fail(task, SourceError(many))

    def _make_link(self, task: Task) -> None:
        if task.is_folded and (conflict := self._folded_names.conflict(task.target)):
            self._fail(task, conflict)
            return
        make = partial(self._destination_end.make_link, task.target, task.info.link_target)
        try:
            made = self._there.ask(make)
        except (DestinationError, UsageError) as error:
            self._fail(task, error)
            return
        if made != task.info.link_target:
            self._report.note("symbolic links became absolute: the server makes no others")
        self._report.begin(0)
        self._report.moved(0, 0)

    def _move(self, task: Task) -> FileTransfer | None:
        """Return what of a file is to be moved, with what an earlier run brought over; None on failure."""
        try:
            return self._begin(task)
        except (SourceError, DestinationError) as error:
            self._fail(task, error)
            return None

    def _begin(self, task: Task) -> FileTransfer:
        info, options = task.info, self._options
        grows_as = partial_name(task.target, self._journal.tag, options.partial_prefix)
        move = FileTransfer(
            task.source,
            task.target,
            task.target if options.in_place else grows_as,
            info.size_bytes,
            info.modified_s,
            info.mode,
            streamed=not info.size_bytes and (self._is_local or self._source_end.location.scheme == "file"),
            sums=self._sums(info.size_bytes),
            folders=self._local_folders,
            hole_bytes=info.hole_bytes if self._is_local else 0,
        )
        move.trees = self._trees
        known = self._journal.unfinished.get(task.target)
        move.was_begun = known is not None
        move.replaces = task.there
        if known and self._options.resume and not move.is_small:
            if (known.size_bytes, known.modified_s) == (info.size_bytes, info.modified_s):
                move.resume(known.arrived)
                self._far_end.let_go()  # which is asked over a session of its own
                self._there.ask(partial(self._prove, move))
                move.plan()
            else:
                self._report.note(f"{task.source} {STARTS_OVER}")
        in_the_way = (
            not self._folders.is_in_new(task.target) if self._is_local else known and not move.is_small
        )
        if in_the_way and not move.resumed_bytes:
            # A server's STOR empties what is there, without a round trip of its own.
            self._there.ask(partial(self._destination_end.remove, move.partial))
            move.written.forget()
        return move

    def _put(self, move: FileTransfer) -> None:
        if not move.resumed_bytes:
            self._journal.begin(move.final, move.partial, move.size_bytes, move.modified_s)
        self._report.begin(move.size_bytes)
        self._finisher.began(move)
        self._pool.put(move, self._far_end.pause)

    def _check_room(self, moves: Sequence[FileTransfer]) -> None:
        """Raise NoSpace unless there is room for these files and for all that is still on its way."""
        needed: dict[str, int] = {}
        for move in moves:
            folder = posixpath.dirname(move.final)
            needed[folder] = needed.get(folder, 0) + move.missing_room_bytes
        for folder, size_bytes in needed.items():
            free = self._destination_end.free_bytes(folder)
            if free is None:
                return
            if free >= size_bytes + self._pool.listed_todo_bytes:
                continue  # enough for all, even if nothing of it had arrived
            missing = size_bytes + self._pool.missing_bytes
            if free < missing:
                raise NoSpace(
                    f"not enough space in {folder}: {counted(missing, 'byte')} needed, {free} free; "
                    "make room and copy the same SRC to the same DST again"
                )
