"""The scan: walks the sources, makes folders and links, and fills the queue with what is to be moved."""

import posixpath
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from mpx.engine.endpoint import FileInfo, Kind
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
from mpx.files.partial_names import aside_name
from mpx.options import CopyOptions
from mpx.report import OnNote, Severity, Skip, no_note
from mpx.transfer.commit import Committer
from mpx.transfer.destination_folders import DestinationFolders
from mpx.transfer.destination_lookup import check_names, decide, is_open
from mpx.transfer.empty_folders import EmptyFolders
from mpx.transfer.ends import Ends
from mpx.transfer.file_start import FileStart, stays
from mpx.transfer.folded_names import FoldedNames
from mpx.transfer.journal_reader import Unfinished
from mpx.transfer.listed_names import ListedNames, Repeat
from mpx.transfer.planner import GROUP, grouped
from mpx.transfer.records import Records
from mpx.transfer.retrying import RetryingEndpoint
from mpx.transfer.spool import Spool
from mpx.transfer.tree_walk import Task, Walkable, walk
from mpx.units import counted

MOST_ROUNDS = 20  # in which files are copied whose names differ from others only in case
MOST_LINKS = 3_000_000  # that are kept as links; they wait on disk, 150 bytes or so each
UNTIMED = "a file without a time is copied again by the next run"  # where folders are listed with LIST

Pair = tuple[str, str, FileInfo]


def tasks(
    pairs: Sequence[Pair],
    source_end: Walkable,
    options: CopyOptions,
    avoid: frozenset[tuple[int, int]] = frozenset(),
    note: OnNote = no_note,
) -> Iterator[Task]:
    """Yield everything that the sources hold, the folders `avoid` left out; see walk()."""
    names = ListedNames()
    for source, target, info in pairs:
        is_folded = names.add(target) is Repeat.FOLDED
        yield from walk(source, target, info, source_end, options, avoid, is_folded=is_folded, note=note)


class Scan(threading.Thread):
    """Puts one file after the other into the queue, as fast as the queue takes them.

    Its attributes belong to its thread, and to the caller of `finish` once that has ended.
    """

    def __init__(
        self,
        pairs: Sequence[Pair],
        ends: Ends,
        options: CopyOptions,
        queue: FileQueue,
        failure: Failure,
        records: Records,
        committer: Committer,
        file_start: FileStart,
    ) -> None:
        super().__init__(name="mpx-scan", daemon=True)
        self._links = Spool()  # that are made at the end
        self._pairs, self._ends, self._options = pairs, ends, options
        # How many tasks are still to come, where that is known: then nothing has to be listed.
        self._to_come = None if any(info.kind is Kind.FOLDER for _, _, info in pairs) else len(pairs)
        self.has_let_go = False  # of its session at the server, for whoever moves the files
        self._queue, self._failure, self._committer = queue, failure, committer
        self._report, self._journal, self._sent = records.report, records.journal, records.sent
        self._committed = records.committed
        self._file_start = file_start
        self._source = RetryingEndpoint(ends.source, options.retries, failure.stopping, ends.reconnecting)
        self._destination = RetryingEndpoint(
            ends.destination, options.retries, failure.stopping, ends.reconnecting
        )
        self._folded_names = FoldedNames(ends.destination, self._destination)
        self._folders = DestinationFolders(
            pairs, ends.destination, self._destination, self._folded_names, ends.folders
        )
        self._empty_folders = EmptyFolders(ends.destination)
        if options.links != "follow" and ends.source.capabilities.is_here:
            for source, _, info in pairs:
                if info.kind is Kind.FOLDER:
                    ends.trees.add(source)

    def run(self) -> None:
        """List until the end, or until the copy stops."""
        with self._failure.guard():
            for group in self._groups():
                if self._failure.cancel.is_set():
                    return
                if self._to_come is not None:
                    self._to_come -= len(group)
                for task in group:
                    self._empty_folders.saw(task)
                self._prepare(group)
                if self._folded_names.is_full:
                    self._put_folded()
            self._put_folded()
            if note := self._ends.source.listing_note():
                self._report.note(f"{note.text}; {UNTIMED}", note.severity)
            if left_out := self._empty_folders.note:
                self._report.note(left_out, Severity.NOTICE)
            self._queue.end_listing()
            if self._ends.is_between_servers or not self._ends.far.capabilities.owns_streams:
                self._ends.let_go()  # as nobody measures over its sessions

    def _groups(self) -> Iterator[list[Task]]:
        """Yield what is listed, in groups; folders at the top are made before the first is.

        At this host that waits until there is something for them, so that none is left where the folder of a
        server cannot be listed.
        """
        waits = self._ends.destination.capabilities.is_here and not self._ends.source.capabilities.is_here
        avoid = frozenset[tuple[int, int]]() if waits else self._folders.make_tops()
        groups = grouped(tasks(self._pairs, self._source, self._options, avoid, self._report.note))
        if waits:
            trees = {target for _, target, info in self._pairs if info.kind is Kind.FOLDER}
            first: list[Task] = []
            for group in groups:
                first += group
                if len(first) > GROUP or any(not (each.error or each.target in trees) for each in first):
                    break
            else:
                if failed := [task for task in first if task.error]:
                    yield failed
                    return
            self._folders.make_tops()
            yield first
        yield from groups

    def finish(self) -> None:
        """When everything is there: links, then times and modes of folders, the deepest first.

        Links come last since some servers make them only to what is there, and so that nothing that a
        listing names later can be written through one that it named before. Raises Interrupted.
        """
        for source, target, where, is_folded in self._links.drain():
            self._failure.check_user()
            info = FileInfo(Kind.LINK, 0, link_target=where)
            self._make_link(Task(source, target, info, is_folded=is_folded))
        for target in self._committer.incomplete_folders:
            self._folders.not_copied(target)
        self._folders.seal(self._report.note, self._failure.check_user)

    def _put_folded(self) -> None:
        """Queue files whose names differ from others only in case, each when those before it are there."""
        for _ in range(MOST_ROUNDS):
            if not self._folded_names.is_waiting:
                return
            self._queue.wait_all_settled(self._ends.pause)
            ready, failed = self._folded_names.ready()
            for task, error in failed:
                self._fail(task, error)
            for i in range(0, len(ready), GROUP):
                self._prepare([replace(task, is_folded=False) for task in ready[i : i + GROUP]])
        for task, error in self._folded_names.give_up():
            self._fail(task, error)

    def _prepare(self, group: Sequence[Task]) -> None:
        missing = [task for task in group if not self._is_committed(task)]
        named = [check_names(task, self._source, self._destination) for task in missing]
        folders = [task for task in named if is_open(task) and task.info.kind is Kind.FOLDER]
        for task, error in self._folders.make(folders):
            self._fail(task, error)
        rest = []
        for task in named:
            error_of_folder = self._folders.refusal(task) if is_open(task) else None
            if task.info.kind is Kind.FOLDER and is_open(task):
                continue  # it is made, or has failed
            if error_of_folder:
                self._fail(task, error_of_folder)
            elif self._has_to_wait(task):
                self._folded_names.put_off(task)
            else:
                rest.append(task)
        ready = []
        is_new = self._folders.is_in_new
        keeps_times = self._destination.ask(self._ends.destination.find_out).keeps_times
        for task in decide(
            rest,
            self._source,
            self._destination,
            self._options,
            is_new,
            self._sent,
            keeps_times=keeps_times,
        ):
            if task.error:
                self._fail(task, task.error)
            elif task.skip and not self._is_in_doubt(task):
                self._tidy(task)
                self._report.skip(task.source, task.skip, task.info.known_bytes)
            elif task.info.kind is Kind.LINK:
                self._put_link(task)
            elif task.info.kind is not Kind.FOLDER:
                ready.append(task)
        files = [file for task in ready if (file := self._start(task))]
        self._check_room(files)
        if files and self._to_come == 0:
            self._ends.let_go()  # a session that is logged in saves the first worker a login
            self.has_let_go = True
        begun = [file for file in files if not file.resumed_bytes]
        self._journal.begin(
            *(Unfinished(f.final, f.partial, f.size_bytes, f.modified_s, tag=f.tag) for f in begun)
        )
        for file in files:
            self._put(file)

    def _is_committed(self, task: Task) -> bool:
        """Tell whether an earlier attempt of this copy has given a file its final name, and counted it."""
        return is_open(task) and task.info.kind is Kind.FILE and task.target in self._committed

    def _has_to_wait(self, task: Task) -> bool:
        """Tell whether the destination may take the name of a file for that of another."""
        is_file = task.info.kind is Kind.FILE and is_open(task)
        return is_file and task.is_folded and not self._folded_names.keeps_apart(task.target)

    def _is_in_doubt(self, task: Task) -> bool:
        """Tell whether what has the name of a file is what an earlier run has left of it, whole or not.

        Where the destination stores under final names, that has the right size and time before it is whole.
        """
        known = self._journal.unfinished.get(task.target)
        is_file = task.info.kind is Kind.FILE and known is not None and known.partial == task.target
        return is_file and self._ends.destination.capabilities.stores_anew

    def _tidy(self, task: Task) -> None:
        """Remove what an earlier run left at a server that was killed just after a rename."""
        known = self._journal.unfinished.get(task.target)
        if known and task.skip is Skip.SAME and not self._ends.writes_here and known.partial != task.target:
            for name in (known.partial, aside_name(known.partial, task.target)):
                try:
                    self._destination.ask(partial(self._ends.destination.remove, name))
                except DestinationError as error:
                    self._report.note(stays(name, error), Severity.NOTICE)
            self._journal.done([task.target])

    def _fail(self, task: Task, error: MpxError) -> None:
        is_within = task.info.kind in (Kind.FILE, Kind.LINK)
        self._folders.not_copied(posixpath.dirname(task.target) if is_within else task.target)
        self._report.begin(task.info.known_bytes)
        self._committer.failed(task.source, error, task.info.known_bytes)

    def _put_link(self, task: Task) -> None:
        """Keep a link until all else is there."""
        if len(self._links) < MOST_LINKS:
            self._links.put((task.source, task.target, task.info.link_target, task.is_folded))
        else:
            many = f"{task.source}: more than {MOST_LINKS} links; copy parts of the tree separately"
            self._fail(task, SourceError(many))

    def _make_link(self, task: Task) -> None:
        if task.is_folded and (conflict := self._folded_names.conflict(task.target)):
            self._fail(task, conflict)
            return
        make = partial(self._ends.destination.make_link, task.target, task.info.link_target)
        try:
            made = self._destination.ask(make)
        except (DestinationError, UsageError) as error:
            self._fail(task, error)
            return
        if made != task.info.link_target:
            self._report.note("symbolic links were made absolute: the server makes no relative ones")
        self._report.begin(0)
        self._report.moved(0, 0)

    def _start(self, task: Task) -> FileTransfer | None:
        """Return what of a file is to be moved, with what an earlier run brought over; None on failure."""
        try:
            return self._file_start.make(task, is_in_new_folder=self._folders.is_in_new(task.target))
        except (SourceError, DestinationError) as error:
            self._fail(task, error)
            return None

    def _put(self, file: FileTransfer) -> None:
        self._report.begin(file.size_bytes)
        self._committer.began(file)
        self._queue.put(file, self._ends.pause)

    def _check_room(self, files: Sequence[FileTransfer]) -> None:
        """Raise NoSpace unless there is room for these files and for all that is still on its way."""
        needed: dict[str, int] = {}
        for file in files:
            folder = posixpath.dirname(file.final)
            needed[folder] = needed.get(folder, 0) + file.missing_room_bytes
        for folder, size_bytes in needed.items():
            free = self._ends.destination.free_bytes(folder)
            if free is None:
                return
            if free >= size_bytes + self._queue.listed_todo_bytes:
                continue  # enough for all, even if nothing of it had arrived
            missing = size_bytes + self._queue.missing_bytes
            if free < missing:
                raise NoSpace(
                    f"not enough space in {folder}: {counted(missing, 'byte')} needed, {free} free; "
                    "make room and copy the same SRC to the same DST again"
                )
