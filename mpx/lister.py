"""Fills the pool: walks the sources, makes folders and links, decides what of each file is to be moved."""

import posixpath
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TypeVar

from mpx.endpoint import Endpoint, FileInfo, Kind, partial_name
from mpx.errors import (
    ConnectionLost,
    DestinationError,
    Interrupted,
    MpxError,
    NoSpace,
    TransferTimeout,
    UsageError,
)
from mpx.finisher import LARGE_BYTES, Finisher
from mpx.journal import Journal
from mpx.mover import Failure, Move, Pool
from mpx.options import CopyOptions
from mpx.planner import Task, by_overwrite, grouped, walk
from mpx.report import Report
from mpx.retry import Retry

Answer = TypeVar("Answer")
Pair = tuple[str, str, FileInfo]


def tasks(pairs: Sequence[Pair], source_end: Endpoint, options: CopyOptions) -> Iterator[Task]:
    """Yield everything that the sources hold."""
    for source, target, info in pairs:
        yield from walk(source, target, info, source_end, options)


class Lister(threading.Thread):
    """Puts one file after the other into the pool, as fast as the pool takes them."""

    def __init__(
        self,
        pairs: Sequence[Pair],
        *,
        options: CopyOptions,
        source_end: Endpoint,
        destination_end: Endpoint,
        pool: Pool,
        failure: Failure,
        journal: Journal,
        finisher: Finisher,
        report: Report,
        prove: Callable[[Move], None],
        sums: bool,
    ) -> None:
        super().__init__(name="mpx-lister", daemon=True)
        self.folders: list[Task] = []  # get their times when all is in them
        self._pairs = pairs
        self._options = options
        self._source_end = source_end
        self._destination_end = destination_end
        self._pool = pool
        self._failure = failure
        self._journal = journal
        self._finisher = finisher
        self._report = report
        self._prove = prove
        self._sums = sums

    def run(self) -> None:
        """List until the end, or until the copy stops."""
        try:
            for _, target, info in self._pairs:
                if info.kind is Kind.FILE:
                    self._make_parent(target)
            for group in grouped(tasks(self._pairs, self._source_end, self._options)):
                self._prepare(group)
            self._pool.end_listing()
        except Interrupted:
            pass
        except MpxError as error:
            self._failure.set(error)
        except Exception as error:
            self._failure.set(MpxError(f"unexpected: {type(error).__name__}: {error}"))

    def finish_folders(self) -> None:
        """Give folders their times and modes, the deepest first, when everything is in them."""
        end = self._destination_end
        for task in reversed(self.folders):
            self._insist(partial(end.set_times, task.target, task.info.modified_s, task.info.mode))

    def _insist(self, ask: Callable[[], Answer]) -> Answer:
        """Ask the destination, over a new connection where the old one is lost."""
        retry = Retry(self._options.retries, self._failure.cancel)
        while True:
            try:
                return ask()
            except (ConnectionLost, TransferTimeout) as error:
                self._destination_end.close()  # it connects again when it is used
                retry.again(error)

    def _make_parent(self, target: str) -> None:
        parent, end = posixpath.dirname(target), self._destination_end
        if parent and self._insist(partial(end.stat, parent)) is None:
            self._insist(partial(end.make_folder, parent))

    def _prepare(self, group: Sequence[Task]) -> None:
        files, end = [], self._destination_end
        for task in group:
            try:
                self._source_end.check_name(task.source)
                self._insist(partial(end.check_name, task.target))
            except UsageError as error:
                self._fail(task, error)
                continue
            if task.skip:
                self._report.skip(task.source, task.skip)
            elif task.info.kind is Kind.FOLDER:
                self._insist(partial(end.make_folder, task.target))
                self.folders.append(task)
            elif task.info.kind is Kind.LINK:
                self._insist(partial(end.make_link, task.target, task.info.link_target))
            else:
                files.append(task)
        there = self._insist(partial(end.stats, [task.target for task in files]))
        for task, info in zip(files, there, strict=True):
            try:
                decided = by_overwrite(task, info, self._options)
            except DestinationError as error:
                self._fail(task, error)
                continue
            if decided.skip:
                self._report.skip(task.source, decided.skip, task.info.size_bytes)
            else:
                self._put(task)

    def _fail(self, task: Task, error: MpxError) -> None:
        self._report.begin(task.info.size_bytes)
        self._report.failed(task.source, str(error), task.info.size_bytes)
        self._finisher.errors.append(error)

    def _put(self, task: Task) -> None:
        info, journal = task.info, self._journal
        partial_file = partial_name(task.target, journal.tag)
        move = Move(
            task.source,
            task.target,
            partial_file,
            info.size_bytes,
            info.modified_s,
            info.mode,
            sums=self._sums,
        )
        known = journal.unfinished.get(task.target)
        if known and self._options.resume and info.size_bytes > LARGE_BYTES:
            if (known.size_bytes, known.modified_s) == (info.size_bytes, info.modified_s):
                move.resume(known.arrived)
                self._insist(partial(self._prove, move))
                move.plan()
            else:
                self._report.note(f"{task.source} has changed since it was interrupted; starting over")
        if not move.resumed_bytes:
            if known or self._destination_end.location.scheme == "file":
                # A server's STOR empties what is there, without a round trip of its own.
                self._insist(partial(self._destination_end.remove, partial_file))
            journal.begin(task.target, partial_file, info.size_bytes, info.modified_s)
        self._check_room(task, info.size_bytes - move.resumed_bytes)
        self._report.begin(info.size_bytes)
        self._finisher.began(move)
        self._pool.put(move)

    def _check_room(self, task: Task, needed: int) -> None:
        free = self._destination_end.free_bytes(task.target)
        if free is not None and free < needed:
            raise NoSpace(
                f"{task.target} needs {needed} more bytes and {free} are free; make room and "
                "run the same command again"
            )
