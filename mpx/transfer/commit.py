"""Verifying and committing, beside the transfer: sections of files, then files in groups.

A file gets its final name only when every byte has arrived, its checksum is the same at both ends, and
the source has not changed meanwhile. Several sessions share one backlog (`commit_session.py`): there is
one at first, and a further one for as long as what waits would fill its time.
"""

import posixpath
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence

from mpx.endpoints.ftp.session_pool import SessionPool
from mpx.engine.checksum_choice import ChecksumChoice
from mpx.engine.endpoint import Endpoint, FileInfo
from mpx.engine.file_queue import FileQueue
from mpx.engine.file_transfer import FileTransfer
from mpx.engine.stop import Failure
from mpx.errors import IntegrityError, MpxError, NoChecksum, NotRenamed
from mpx.report import Report
from mpx.transfer.commit_session import CommitSession, Finishing
from mpx.transfer.journal import Journal
from mpx.transfer.sent_notes import Sent, SentNotes
from mpx.transfer.verify_queue import Section, VerifyQueue
from mpx.units import counted


class Committer:
    """Takes whole files, verifies and commits them; checks sections of large ones while they move."""

    def __init__(
        self,
        *,
        open_source: Callable[[], Endpoint],
        open_destination: Callable[[], Endpoint],
        far_is_source: bool,
        choice: ChecksumChoice,
        pool: FileQueue,
        session_pool: SessionPool,
        failure: Failure,
        journal: Journal,
        report: Report,
        retries: int,
        sessions: int,
        notes: SentNotes,
        connected: Callable[[], None],
    ) -> None:
        self.first_error: MpxError | None = None  # of files that were given up
        self.incomplete_folders: set[str] = set()  # at the destination, in which files are missing
        self._pool = pool
        self._journal = journal
        self._journaling = threading.Lock()  # what the journal is told, in the order in which it happened
        self._report = report
        self._notes = notes
        self._choice = choice
        self._most = sessions
        self._sessions: list[CommitSession] = []
        self._moving: dict[str, FileTransfer] = {}
        self._guard = threading.Lock()
        self._backlog = VerifyQueue(verifies=choice.verifies, sessions=sessions)
        self._work = Finishing(
            open_source=open_source,
            open_destination=open_destination,
            far_is_source=far_is_source,
            choice=choice,
            backlog=self._backlog,
            litter=deque(),
            pool=pool,
            session_pool=session_pool,
            failure=failure,
            retries=retries,
            note=report.note,
            took=self._grow,
            compared=self._compared,
            misfit=self._misfit,
            committed=self._committed,
            timeless=self._timeless,
            removed=lambda move: journal.done([move.final]),
            connected=connected,
            refused=self._refused,
        )

    # --- for those who move files --------------------------------------------------------------------

    def began(self, move: FileTransfer) -> None:
        """Take a large file under observation."""
        if not move.is_small:
            with self._guard:
                self._moving[move.final] = move
            self._backlog.watch(move)

    def whole(self, move: FileTransfer) -> None:
        """Take a file whose every byte has arrived."""
        if not self._backlog.whole(move):
            self._pool.put_again(move)
        self._grow()

    def given_up(self, move: FileTransfer, error: MpxError) -> None:
        """Record that a file cannot be copied; what arrived of a large one is kept for another run."""
        self._give_up(move, error, keep=move.arrived_bytes > 0 or move.partial == move.final)

    def _give_up(self, move: FileTransfer, error: MpxError, *, keep: bool) -> None:
        with self._guard:
            self._moving.pop(move.final, None)
        self.incomplete_folders.add(posixpath.dirname(move.final))
        self._backlog.drop(move)
        is_in_place = move.partial == move.final  # and perhaps still the old file
        if not keep or (move.is_small and not isinstance(error, NotRenamed) and not is_in_place):
            self._work.litter.append(move)
        self.failed(move.source, error, move.listed_bytes or 0)
        self._pool.settle(move)

    def forgot(self, move: FileTransfer) -> None:
        """Have nothing believed any more of what had arrived of a file: not by us, not by the next run."""
        self._backlog.forgot(move)
        self._journal_one(move)

    def failed(self, name: str, error: MpxError, size_bytes: int = 0) -> None:
        """Record that something could not be copied."""
        self._report.failed(name, str(error), size_bytes)
        self.first_error = self.first_error or error

    # --- the journal ---------------------------------------------------------------------------------

    def journal_arrivals(self) -> None:
        """Tell the journal what has arrived since the last time; raises NoSpace, UsageError."""
        with self._guard:
            moving = list(self._moving.values())
        for move in moving:
            if move.has_news:
                self._journal_one(move)

    def _journal_one(self, move: FileTransfer) -> None:
        """Tell the journal what has arrived of one file, and what of it turned out not to have."""
        with self._journaling:
            lost, arrived = move.take_news()
            if lost:
                self._journal.lost(move.final, lost)
            if arrived:
                self._journal.arrived(move.final, arrived)

    # --- sessions ------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin with one session."""
        with self._guard:
            self._add_session()

    def join(self) -> None:
        """Wait until every session has ended."""
        while alive := [session for session in self._sessions if session.is_alive()]:
            alive[0].join()

    def _grow(self) -> None:
        """Add a session if more waits than those that there are have time for."""
        wanted = self._backlog.full_batches
        if wanted and 0 < len(self._sessions) < self._most and not self._work.session_pool.takes_turns:
            with self._guard:
                idle = sum(each.is_idle for each in self._sessions)
                if len(self._sessions) < self._most and idle < wanted:
                    self._add_session()

    def _add_session(self) -> None:
        session = CommitSession(self._work, is_first=not self._sessions)
        try:
            session.start()
        except RuntimeError as error:  # no thread is left: go on with those that there are
            if not self._sessions:
                raise
            self._refused(MpxError(str(error)))
            return
        self._sessions.append(session)

    def _refused(self, error: MpxError) -> None:
        self._most = 0
        self._report.note(f"no further session for verifying: {error}")

    # --- from the sessions ---------------------------------------------------------------------------

    def _compared(self, section: Section, algorithm: str, told: bool | MpxError) -> None:
        """Draw the consequences of a comparison."""
        move, start, end = section.move, section.start, section.end
        if not self._backlog.is_current(section):
            return
        if told is False and start in move.retried_sections:
            differs = IntegrityError(
                f"{move.source}: bytes {start} to {end} have another {algorithm} at the destination although "
                f"they were sent twice; {self._choice.why_differs(algorithm)}"
            )
            self._report.mismatched |= self._unknown(section, differs)  # unless it is looked at once more
        elif isinstance(told, NoChecksum):
            self._without_checksum(section, told)
        elif isinstance(told, MpxError):
            self._unknown(section, told)
        elif told:
            if not self._backlog.same(section, algorithm):
                self._pool.put_again(move)
        else:
            move.retried_sections.add(start)
            self._report.note(f"{move.source}: bytes {start} to {end} were damaged, sent again")
            moves_on = self._backlog.damaged(section)
            self._journal_one(move)
            if not moves_on:
                self._pool.put_again(move)

    def _unknown(self, section: Section, error: MpxError) -> bool:
        """Give up a file that is not shown to be the same; False if it still moves: it is looked at later."""
        is_over = not self._backlog.unknown(section)
        if is_over:
            self._spoiled(section.move, error)
        return is_over

    def _without_checksum(self, section: Section, error: NoChecksum) -> None:
        """Compare a file as a whole where parts cannot be; else leave it unverified where that is allowed.

        Raises UsageError or OffsetsUnproven, which end the copy, where no file at all could be compared.
        """
        move, choice = section.move, self._choice
        if not section.is_whole:
            if not self._backlog.in_one_piece(section):
                self._pool.put_again(move)
            return
        if choice.is_required and not choice.has_answered:
            raise choice.not_honoured(error)
        if choice.is_required or (choice.has_answered and error.is_of_file):
            self._unknown(section, error.refusal)
            return
        self._report.note(choice.unverified(move.source, error))
        if not self._backlog.exempt(section):
            self._pool.put_again(move)

    def _misfit(self, move: FileTransfer, stored_bytes: int) -> None:
        """Have a file sent once more of which another number of bytes was stored than it has."""
        move.was_misfit, move.rename_asked = True, False
        self._report.note(
            f"{move.source}: {stored_bytes} of {counted(move.size_bytes, 'byte')} were stored, sent again"
        )
        move.redo(0, move.size_bytes)
        self._backlog.watch(move)
        self._journal_one(move)
        self._pool.put_again(move)

    def _committed(self, moves: Sequence[FileTransfer], errors: Mapping[FileTransfer, MpxError]) -> None:
        """Settle files that were to get their final names."""
        done = [move for move in moves if move not in errors]
        with self._guard:
            for move in done:
                self._moving.pop(move.final, None)
        self._journal.done([move.final for move in done])
        for move in done:
            self._report.moved(
                move.size_bytes,
                move.resumed_bytes,
                listed_bytes=move.listed_bytes or 0,
                compared=move.verified.bytes_by_algorithm(),
            )
            self._pool.settle(move)
        for move, error in errors.items():
            self._spoiled(move, error)

    def _timeless(self, moves: Sequence[FileTransfer], there: Sequence[FileInfo | MpxError | None]) -> None:
        """Note what was sent to a server that keeps no times, so that it is not sent again."""
        self._notes.record(
            Sent(move.final, move.size_bytes, move.modified_s, info.modified_s)
            for move, info in zip(moves, there, strict=True)
            if isinstance(info, FileInfo)
        )

    def _spoiled(self, move: FileTransfer, error: MpxError) -> None:
        """Give up a file that had arrived; what is proven wrong is not kept."""
        move.claim_given_up()  # a part that is being sent again must not make it whole
        self._give_up(move, error, keep=not isinstance(error, IntegrityError))
