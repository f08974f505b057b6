"""One session that verifies and commits: takes batch after batch from the backlog that several share."""

import contextlib
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from mpx.choices import NONE
from mpx.endpoints.ftp.session_pool import SessionPool
from mpx.engine.checksum_choice import ChecksumChoice
from mpx.engine.endpoint import Commit, Endpoint, FileInfo, aside_name
from mpx.engine.file_queue import FileQueue
from mpx.engine.file_transfer import FileTransfer
from mpx.engine.retry import Retry, fewer
from mpx.engine.source_change import AGAIN, changed
from mpx.engine.stop import Failure
from mpx.errors import (
    AuthenticationError,
    ConnectionLost,
    DestinationError,
    IntegrityError,
    Interrupted,
    MpxError,
    TransferTimeout,
)
from mpx.transfer import lost_renames
from mpx.transfer.compare import compare
from mpx.transfer.verify_queue import GROUP, Batch, Section, VerifyQueue
from mpx.units import counted

TICK_S = 0.05
IDLE_TICKS = 1200  # after a minute without work a session says a word, or goes, before the server ends it


@dataclass(frozen=True, slots=True)
class Finishing:
    """What a session is given: where its work comes from, and whom to tell."""

    open_source: Callable[[], Endpoint]
    open_destination: Callable[[], Endpoint]
    far_is_source: bool
    choice: ChecksumChoice
    backlog: VerifyQueue
    litter: deque[FileTransfer]  # given up, with a partial file that is worth nothing
    pool: FileQueue
    session_pool: SessionPool
    failure: Failure
    retries: int
    note: Callable[[str], None]  # a line for the report
    took: Callable[[], None]  # a batch was taken; others may wait
    compared: Callable[[Section, str, bool | MpxError], None]  # by what, and whether they are the same
    misfit: Callable[[FileTransfer, int], None]  # so many bytes of it are stored, more or less than it has
    committed: Callable[
        [Sequence[FileTransfer], Mapping[FileTransfer, MpxError]], None
    ]  # all of them, and what went wrong
    timeless: Callable[
        [Sequence[FileTransfer], Sequence[FileInfo | MpxError | None]], None
    ]  # that keep no time
    removed: Callable[[FileTransfer], None]  # its partial file is gone
    connected: Callable[[], None]  # a session is open, so that what moves can be finished
    refused: Callable[[MpxError], None]  # the server admits no further session


class CommitSession(threading.Thread):
    """Verifies and commits over endpoints of its own. The copy can do without any but the first."""

    def __init__(self, work: Finishing, *, is_first: bool) -> None:
        super().__init__(name="mpx-finisher", daemon=True)
        self.is_idle = True  # or not connected yet: it has nothing in hand
        self._finishing = work
        self._is_first = is_first
        self._was_connected = False
        self._idle_ticks = 0
        self._most = GROUP  # files or sections at once; fewer where sessions do not last for so many
        self._source: Endpoint | None = None
        self._destination: Endpoint | None = None

    def run(self) -> None:
        """Work until the pool is settled or the copy stops."""
        with self._finishing.failure.guard():
            if self._is_first or self._is_admitted():
                self._work()
                self._clean_up()
        self._close()

    def _is_admitted(self) -> bool:
        """Tell whether the server has room for one more, before anything is taken in hand."""
        try:
            self._connect()
        except Interrupted:
            raise
        except MpxError as error:
            self._finishing.refused(error)
            return False
        return True

    def _work(self) -> None:
        work = self._finishing
        retry = Retry(work.retries, work.failure.cancel)
        while not work.pool.is_settled and not self._stopping():
            self._clean_up()
            batch = work.backlog.take(TICK_S, self._most)
            self.is_idle = batch.is_empty
            try:
                if batch.is_empty:
                    self._rest()
                    continue
                work.took()
                self._do(batch)
            except MpxError as error:
                self._close()
                if self._is_given_up(batch, error, retry):
                    continue
                work.backlog.put_back(batch)
                if len(batch) > 1:
                    retry.begin()  # fewer at once show which of them it is due to
                    self._most = fewer(len(batch))
                retry.again(error)
            else:
                retry.progressed()
                self._most = min(2 * self._most, GROUP)

    def _is_given_up(self, batch: Batch, error: MpxError, retry: Retry) -> bool:
        """Give up a file that fails alone, again and again, at a server that can be reached."""
        work = self._finishing
        if len(batch) != 1 or not error.may_retry or work.pool.listed_files < 2 or self._stopping():
            return False
        try:
            self._connect()
        except (AuthenticationError, ConnectionLost, TransferTimeout):
            self._close()
            return False
        if not retry.may_give_up(error):
            return False
        for section in batch.sections:
            work.compared(section, NONE, error)
        if batch.proven:
            work.committed(batch.proven, dict.fromkeys(batch.proven, error))
        return True

    def _rest(self) -> None:
        """Connect while the first files still move; when idle for long, stay connected or go.

        Where sessions are scarce there is none before there is work for it.
        """
        for endpoint in (self._source, self._destination):
            if endpoint is not None:
                endpoint.pause()
        self._idle_ticks += 1
        if self._finishing.session_pool.takes_turns:
            return
        if self._idle_ticks >= IDLE_TICKS:
            self._idle_ticks = 0
            if self._is_first:  # a server that admits few may have no room when it comes back
                self._stay_connected()
            else:
                self._close()
        elif not self._was_connected and self._finishing.pool.listed_files:
            self._connect()

    def _stay_connected(self) -> None:
        """Say a word. A session that the server has ended meanwhile, as none was needed, is no failure."""
        try:
            self._connect()
        except (AuthenticationError, ConnectionLost, TransferTimeout):
            self._close()

    def _do(self, batch: Batch) -> None:
        self._idle_ticks = 0
        if batch.proven:
            self._commit([move for move in batch.proven if not move.is_given_up])
        else:
            self._compare(batch)

    def _endpoints(self) -> tuple[Endpoint, Endpoint]:
        if self._source is None:
            self._source = self._finishing.open_source()
        if self._destination is None:
            self._destination = self._finishing.open_destination()
        return self._source, self._destination

    def _connect(self) -> None:
        for endpoint in self._endpoints():
            endpoint.measure_rtt()
        self._was_connected = True
        self._finishing.connected()

    def _close(self) -> None:
        for endpoint in (self._source, self._destination):
            if endpoint is not None:
                endpoint.close()
        self._source = self._destination = None

    def _stopping(self) -> bool:
        return self._finishing.failure.cancel.is_set()

    def _clean_up(self) -> None:
        """Remove partial files that no later run can use; best effort."""
        litter = self._finishing.litter
        while litter and not self._stopping():
            try:
                move = litter.popleft()
                self._endpoints()[1].remove(move.partial)
                self._finishing.removed(move)
            except (ConnectionLost, TransferTimeout):
                self._close()  # its replies may be out of step
                return
            except (IndexError, MpxError):  # another session may be quicker
                pass

    # --- verifying -----------------------------------------------------------------------------------

    def _compare(self, batch: Batch) -> None:
        """Compare sections at both ends; what was compared leaves the batch, as it may be put back."""
        source, destination = self._endpoints()
        work = self._finishing
        outcomes = compare(
            list(batch.sections),
            source if work.far_is_source else destination,
            work.choice,
            far_is_source=work.far_is_source,
            stop=self._stopping,
        )
        for section, algorithm, told in outcomes:
            batch.sections.remove(section)
            work.compared(section, algorithm, told)

    # --- committing ----------------------------------------------------------------------------------

    def _commit(self, moves: Sequence[FileTransfer]) -> None:
        """Give proven files their final names, but those whose source has changed."""
        source, destination = self._endpoints()
        errors: dict[FileTransfer, MpxError] = {}
        again_there = [move for move in moves if not move.is_read_once]  # a pipe may be gone with its writer
        described = source.stats([move.source for move in again_there])
        for move, now in zip(again_there, described, strict=True):
            if isinstance(now, MpxError):
                errors[move] = now
            elif how := self._changed(move, now):
                errors[move] = IntegrityError(f"{move.source} changed while it was copied: {how}; {AGAIN}")
        misfits = self._misfits([move for move in moves if move not in errors], destination)
        again = [move for move in misfits if not move.was_misfit and self._finishing.retries]
        moves = [move for move in moves if move not in again]
        errors |= {move: _lost(move, misfits[move]) for move in misfits if move not in again}
        ready = [move for move in moves if move not in errors]
        asked = [move for move in ready if move.rename_asked]  # and the session was lost
        renamed, _ = lost_renames.what_became_of(asked, destination)
        for move in renamed:
            self._remove_aside(move, destination)
        ready = [move for move in ready if move not in renamed]
        commits = [
            Commit(
                move.partial,
                move.final,
                move.modified_s,
                move.mode,
                move.written,
                was_tried=move.rename_asked or move.was_begun or move.was_misfit,
                size_bytes=move.size_bytes,
                has_holes=move.hole_bytes > 0,
            )
            for move in ready
        ]
        for move in ready:
            move.rename_asked = True
        results = destination.commit(commits, self._finishing.note)
        for move, failed in zip(ready, results, strict=True):
            if isinstance(failed, MpxError) and failed.may_retry:
                raise failed
            if failed is not None:
                errors[move] = failed if isinstance(failed, MpxError) else MpxError(str(failed))
        renamed, gone = lost_renames.what_became_of([move for move in asked if move in errors], destination)
        for move in renamed:
            del errors[move]  # the lost session did it only now
        for move in gone:
            if move.was_misfit:
                errors[move] = lost_renames.unshown(move)
            else:
                misfits[move] = 0
                again.append(move)
                del errors[move]
        moves = [move for move in moves if move not in gone or move in errors]
        done = [move for move in moves if move not in errors]
        if done and not destination.keeps_times():
            self._finishing.timeless(done, destination.stats([move.final for move in done]))
        self._finishing.committed(moves, errors)
        for move in again:  # only now: what was not settled before is put back if the session is lost
            self._finishing.misfit(move, misfits[move])

    def _misfits(self, moves: Sequence[FileTransfer], destination: Endpoint) -> dict[FileTransfer, int]:
        """Return the uploads that lost their end, or grew, and how much of them is stored.

        A checksum proves what was sent, and not that nothing follows it: where one was compared, only servers
        that are not known well are asked, and only more bytes than were sent are wrong.
        """
        work = self._finishing
        if work.far_is_source:
            return {}
        is_faithful = destination.stores_faithfully()
        asked = [move for move in moves if not move.rename_asked and not (is_faithful and _is_proven(move))]
        misfits: dict[FileTransfer, int] = {}
        sizes = destination.sizes([move.partial for move in asked])
        untold = [move for move, size in zip(asked, sizes, strict=True) if size is None]
        there = dict(zip(untold, destination.stats([move.partial for move in untold]), strict=True))
        for move, stored_bytes in zip(asked, sizes, strict=True):
            if stored_bytes is None and there[move] is None:
                misfits[move] = 0  # it is gone
            elif _is_proven(move):
                if stored_bytes is not None and stored_bytes > move.size_bytes:
                    misfits[move] = stored_bytes
            elif stored_bytes is None:
                work.note(f"unverified: {destination.location.host} does not tell the size of what it stored")
            elif stored_bytes != move.size_bytes:
                misfits[move] = stored_bytes
        return misfits

    @staticmethod
    def _remove_aside(move: FileTransfer, destination: Endpoint) -> None:
        """Remove the old file that was put aside when the session was lost; best effort."""
        if not destination.stores_faithfully() and move.partial != move.final:
            with contextlib.suppress(DestinationError):
                destination.remove(aside_name(move.partial, move.final))

    @staticmethod
    def _changed(move: FileTransfer, now: FileInfo | None) -> str:
        return changed(
            now, listed_bytes=move.listed_bytes, arrived_bytes=move.size_bytes, modified_s=move.modified_s
        )


def _lost(move: FileTransfer, stored_bytes: int) -> IntegrityError:
    twice = " although it was sent twice" if move.was_misfit else ""
    does = "loses data" if stored_bytes < move.size_bytes else f"adds data, or does not delete {move.partial}"
    return IntegrityError(
        f"{move.source}: {stored_bytes} of {counted(move.size_bytes, 'byte')} are stored at the destination"
        f"{twice}; the server, or a proxy before it, {does}"
    )


def _is_proven(move: FileTransfer) -> bool:
    """Tell whether a checksum was compared of every byte; of an empty file there is none."""
    return move.size_bytes > 0 and move.verified.covers(0, move.size_bytes)
