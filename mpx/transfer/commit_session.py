"""One session that verifies and commits: takes batch after batch from the queue that several share."""

import contextlib
import functools
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from mpx.choices import NONE
from mpx.engine.checksum_choice import ChecksumChoice
from mpx.engine.endpoint import Commit, Endpoint, FileInfo
from mpx.engine.file_queue import FileQueue
from mpx.engine.file_transfer import FileTransfer
from mpx.engine.retry import Retry, fewer
from mpx.engine.source_change import AGAIN, changed, is_told_by_another_server
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
from mpx.files.partial_names import aside_name
from mpx.report import OnNote, Severity
from mpx.transfer import lost_renames
from mpx.transfer.both_servers import BothServers
from mpx.transfer.compare import compare
from mpx.transfer.ends import Ends
from mpx.transfer.taken_names import taken_names
from mpx.transfer.verify_queue import GROUP, Batch, Section, VerifyQueue
from mpx.units import counted

TICK_S = 0.05
IDLE_TICKS = 1200  # after a minute without work a session sends a command, or is closed


class CommitOutcomes(Protocol):
    """Who decides what follows from the work of sessions. Called from any of them."""

    def connected(self) -> None:
        """A session is open."""

    def refused(self, error: MpxError) -> None:
        """The server admits no further session."""

    def took(self) -> None:
        """A batch was taken; others may wait."""

    def compared(self, section: Section, algorithm: str, outcome: bool | MpxError) -> None:
        """A section was compared by that checksum: it is the same or not, or why that is not known."""

    def misfit(self, file: FileTransfer, stored_bytes: int) -> None:
        """So many bytes of a file are stored, more or less than it has."""

    def committed(self, files: Sequence[FileTransfer], errors: Mapping[FileTransfer, MpxError]) -> None:
        """These have their final names, but those of `errors`."""

    def timeless(self, files: Sequence[FileTransfer], there: Sequence[FileInfo | MpxError | None]) -> None:
        """These were committed at a server that keeps no times, and are there like that."""

    def removed(self, file: FileTransfer) -> None:
        """The partial file of one that was given up is gone."""


@dataclass(frozen=True, slots=True)
class CommitWork:
    """What the sessions share: where their work comes from, and who decides what follows from it."""

    ends: Ends
    choice: ChecksumChoice
    verify_queue: VerifyQueue
    queue: FileQueue
    failure: Failure
    retries: int
    note: OnNote
    outcomes: CommitOutcomes
    may_connect: Callable[[float], bool]  # before there is anything to do; waits so long for that
    replaces: bool  # what has come to the destination meanwhile


class CommitSession(threading.Thread):
    """Verifies and commits over endpoints of its own. The copy can do without any but the first."""

    def __init__(self, work: CommitWork, *, is_first: bool) -> None:
        super().__init__(name="mpx-commit", daemon=True)
        self.is_idle = True  # or not connected yet: it has nothing in hand; read by others without a lock
        self._shared = work
        self._is_first = is_first
        self._was_connected = False
        self._idle_ticks = 0
        self._most = GROUP  # files or sections at once; fewer where sessions do not last for so many
        self._source: Endpoint | None = None
        self._destination: Endpoint | None = None

    def run(self) -> None:
        """Work until the queue is settled or the copy stops."""
        with self._shared.failure.guard():
            if self._is_first or self._is_admitted():
                self._work()
                self._shared.verify_queue.wake()
                self._clean_up()
        self._close()

    def _is_admitted(self) -> bool:
        """Tell whether the server has room for one more, before anything is taken in hand."""
        try:
            self._connect()
        except Interrupted:
            raise
        except MpxError as error:
            self._shared.outcomes.refused(error)
            return False
        return True

    # Shares only `Retry` with SessionWorker: what failed goes back to all sessions, and none stands aside.
    def _work(self) -> None:
        work = self._shared
        retry = Retry(work.retries, work.failure.cancel)
        while not work.queue.is_settled and not self._stopping():
            self._clean_up()
            batch = work.verify_queue.take(0.0 if self._waits_to_connect else TICK_S, self._most)
            self.is_idle = batch.is_empty
            try:
                if batch.is_empty:
                    self._rest()
                    continue
                work.outcomes.took()
                if not self._was_connected and not work.ends.takes_turns:
                    self._connect()  # the first files came before there was a pause for it
                self._do(batch)
            except MpxError as error:
                self._close()
                if self._is_given_up(batch, error, retry):
                    continue
                work.verify_queue.put_back(batch)
                if len(batch) > 1:
                    retry.begin()  # fewer at once show which of them it is due to
                    self._most = fewer(len(batch))
                work.ends.reconnecting.wait(f"{self.name} {self.ident}", retry, error)
            else:
                retry.progressed()
                self._most = min(2 * self._most, GROUP)

    def _is_given_up(self, batch: Batch, error: MpxError, retry: Retry) -> bool:
        """Give up a file that fails alone, again and again, at a server that can be reached."""
        work = self._shared
        if len(batch) != 1 or not error.may_retry or not work.queue.has_others or self._stopping():
            return False
        try:
            self._connect()
        except (AuthenticationError, ConnectionLost, TransferTimeout):
            self._close()
            return False
        if not retry.may_give_up(error):
            return False
        for section in batch.sections:
            work.outcomes.compared(section, NONE, error)
        if batch.proven:
            work.outcomes.committed(batch.proven, dict.fromkeys(batch.proven, error))
        return True

    def _rest(self) -> None:
        """Connect while the first files are still sent; when idle for long, stay connected or close.

        Where sessions are scarce there is none before there is work for it.
        """
        for endpoint in (self._source, self._destination):
            if endpoint is not None:
                endpoint.pause()
        self._idle_ticks += 1
        if self._shared.ends.takes_turns:
            return
        if self._idle_ticks >= IDLE_TICKS:
            self._idle_ticks = 0
            if self._is_first:  # a server that admits few may have no room when it comes back
                self._stay_connected()
            else:
                self._close()
        elif self._waits_to_connect and self._shared.may_connect(TICK_S):
            self._connect()

    @property
    def _waits_to_connect(self) -> bool:
        return not (self._was_connected or self._shared.ends.takes_turns)

    def _stay_connected(self) -> None:
        """Keep the session alive. That the server has ended it meanwhile, as it was idle, is no failure."""
        try:
            self._connect()
        except (AuthenticationError, ConnectionLost, TransferTimeout):
            self._close()

    def _do(self, batch: Batch) -> None:
        self._idle_ticks = 0
        if batch.proven:
            self._commit([file for file in batch.proven if not file.is_given_up])
        else:
            self._compare(batch)

    def _endpoints(self) -> tuple[Endpoint, Endpoint]:
        if self._source is None or self._destination is None:
            self._source, self._destination = self._shared.ends.open_both()
        return self._source, self._destination

    def _connect(self) -> None:
        for endpoint in self._endpoints():
            endpoint.measure_rtt()
        self._was_connected = True
        self._shared.outcomes.connected()

    def _close(self) -> None:
        for endpoint in (self._source, self._destination):
            if endpoint is not None:
                endpoint.close()
        self._source = self._destination = None

    def _stopping(self) -> bool:
        return self._shared.failure.cancel.is_set()

    def _clean_up(self) -> None:
        """Remove partial files that no later run can use; best effort."""
        verify_queue = self._shared.verify_queue
        while not self._stopping() and (file := verify_queue.take_discarded()) is not None:
            try:
                if _is_removed(file, self._endpoints()[1]):
                    self._shared.outcomes.removed(file)
            except (ConnectionLost, TransferTimeout):
                self._close()  # its replies may be out of step
                return
            except MpxError:
                pass

    # --- verifying -----------------------------------------------------------------------------------

    def _compare(self, batch: Batch) -> None:
        """Compare sections at both ends; what was compared leaves the batch, as it may be put back."""
        source, destination = self._endpoints()
        work = self._shared
        outcomes = compare(
            list(batch.sections),
            source if work.ends.far_is_source else destination,
            work.choice,
            far_is_source=work.ends.far_is_source,
            stop=self._stopping,
            both=BothServers(source, destination, work.ends) if work.ends.is_between_servers else None,
        )
        for section, algorithm, outcome in outcomes:
            batch.sections.remove(section)
            work.outcomes.compared(section, algorithm, outcome)

    # --- committing ----------------------------------------------------------------------------------

    def _commit(self, files: Sequence[FileTransfer]) -> None:
        """Give proven files their final names, but those whose source has changed."""
        source, destination = self._endpoints()
        errors: dict[FileTransfer, MpxError] = {}
        # A pipe may be gone with its writer.
        again_there = [file for file in files if not (file.is_read_once or file.is_unchanged)]
        described = source.stats([file.source for file in again_there])
        for file, now in zip(again_there, described, strict=True):
            if isinstance(now, MpxError):
                errors[file] = now
            elif (how := changed(now, file, file.size_bytes)) and not is_told_by_another_server(
                now, file, file.tag, functools.partial(self._shared.ends.describe, file.source, anew=True)
            ):
                errors[file] = IntegrityError(f"{file.named()} changed while it was copied: {how}; {AGAIN}")
        misfits = self._misfits([file for file in files if file not in errors], destination)
        again = [file for file in misfits if not file.was_misfit and self._shared.retries]
        files = [file for file in files if file not in again]
        errors |= {file: _lost(file, misfits[file]) for file in misfits if file not in again}
        ready = [file for file in files if file not in errors]
        asked = [file for file in ready if file.rename_asked]  # and the session was lost
        renamed, _ = lost_renames.what_became_of(asked, destination)
        for file in renamed:
            self._remove_aside(file, destination)
        ready = [file for file in ready if file not in renamed]
        if not self._shared.replaces:
            errors |= taken_names(ready, destination)
            ready = [file for file in ready if file not in errors]
        commits = [
            Commit(
                file.partial,
                file.final,
                file.modified_s,
                file.mode,
                file.written,
                was_tried=file.rename_asked or file.was_begun or file.was_misfit,
                size_bytes=file.size_bytes,
                has_holes=file.hole_bytes > 0,
                is_synced=file.is_synced,
                replaces=self._shared.replaces,
            )
            for file in ready
        ]
        for file in ready:
            file.rename_asked = True
        results = destination.commit(commits, self._shared.note)
        for file, failed in zip(ready, results, strict=True):
            if isinstance(failed, MpxError) and failed.may_retry:
                raise failed
            if failed is not None:
                errors[file] = failed if isinstance(failed, MpxError) else MpxError(str(failed))
        renamed, gone = lost_renames.what_became_of([file for file in asked if file in errors], destination)
        for file in renamed:
            del errors[file]  # the lost session did it only now
        for file in gone:
            if file.was_misfit:
                errors[file] = lost_renames.unshown(file)
            else:
                misfits[file] = 0
                again.append(file)
                del errors[file]
        files = [file for file in files if file not in gone or file in errors]
        done = [file for file in files if file not in errors]
        if done and not destination.find_out().keeps_times:
            there = destination.stats([file.final for file in done])
            self._shared.outcomes.timeless(done, there)
            errors |= lost_renames.not_done(dict(zip(done, there, strict=True)), destination)
        self._shared.outcomes.committed(files, errors)
        for file in again:  # only now: what was not settled before is put back if the session is lost
            self._shared.outcomes.misfit(file, misfits[file] or 0)

    def _misfits(
        self, files: Sequence[FileTransfer], destination: Endpoint
    ) -> dict[FileTransfer, int | None]:
        """Return the uploads that lost their end, or grew, and how much of them is stored (None: gone).

        A checksum proves what was sent, and not that nothing follows it, unless it is of all that is stored:
        where one was compared, only servers that are not known well are asked, and only more bytes than were
        sent are wrong.
        """
        work = self._shared
        if work.ends.far_is_source:
            return {}
        can = destination.find_out()
        is_sure = can.is_faithful or can.most_compared_parts == 1
        asked = [file for file in files if not file.rename_asked and not (is_sure and _is_proven(file))]
        misfits: dict[FileTransfer, int | None] = {}
        sizes = destination.sizes([file.partial for file in asked])
        untold = [file for file, size in zip(asked, sizes, strict=True) if size is None]
        there = dict(zip(untold, destination.stats([file.partial for file in untold]), strict=True))
        for file, stored_bytes in zip(asked, sizes, strict=True):
            if stored_bytes is None and there[file] is None:
                misfits[file] = None
            elif _is_proven(file):
                if stored_bytes is not None and stored_bytes > file.size_bytes:
                    misfits[file] = stored_bytes
            elif stored_bytes is None:
                work.note(
                    f"unverified: {destination.location.host} does not tell the size of what it stored",
                    Severity.WARNING,
                )
            elif stored_bytes != file.size_bytes:
                misfits[file] = stored_bytes
        return misfits

    @staticmethod
    def _remove_aside(file: FileTransfer, destination: Endpoint) -> None:
        """Remove the old file that was put aside when the session was lost; best effort."""
        if not destination.find_out().is_faithful and file.partial != file.final:
            with contextlib.suppress(DestinationError):
                destination.remove(aside_name(file.partial, file.final))


def _is_removed(file: FileTransfer, destination: Endpoint) -> bool:
    """Remove the partial file of one that was given up; tell whether nothing of it is left.

    What was to be written in place, and of which nothing was stored as far as is known, stays: it is shown to
    be untouched, or not. What an earlier run has begun was touched by that.
    """
    if file.partial == file.final and not file.arrived_bytes:
        now = destination.stat(file.final)
        is_as_it_was = now == file.replaces and not file.was_begun
        return now is None or (is_as_it_was and bool(now.modified_s or now.tag))
    destination.remove(file.partial)
    return True


def _lost(file: FileTransfer, stored_bytes: int | None) -> IntegrityError:
    twice = " although it was sent twice" if file.was_misfit else ""
    if stored_bytes is None:
        return IntegrityError(
            f"{file.source}: {file.partial} is not at the destination{twice}; the server deletes it, or "
            "stores it under another name, as some do with blanks at the end; copy it to another name"
        )
    does = "loses data" if stored_bytes < file.size_bytes else f"adds data, or does not delete {file.partial}"
    return IntegrityError(
        f"{file.source}: {stored_bytes} of {counted(file.size_bytes, 'byte')} are stored at the destination"
        f"{twice}; the server, or a proxy before it, {does}"
    )


def _is_proven(file: FileTransfer) -> bool:
    """Tell whether a checksum was compared of every byte; of an empty file there is none."""
    return file.size_bytes > 0 and file.verified.covers(0, file.size_bytes)
