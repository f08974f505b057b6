"""Verifying and committing, beside the transfer: sections of files, then files in groups.

A file gets its final name only when every byte has arrived, its checksum is the same at both ends, and
the source has not changed meanwhile. Several sessions share one queue (`commit_session.py`): there is one at
first, and a further one for as long as what waits would fill its time.
"""

import posixpath
import threading
from collections.abc import Callable, Mapping, Sequence

from mpx.choices import NEVER, OF_PASSED
from mpx.engine.checksum_choice import ChecksumChoice
from mpx.engine.endpoint import FileInfo
from mpx.engine.file_queue import FileQueue
from mpx.engine.file_transfer import FileTransfer
from mpx.engine.stop import Failure
from mpx.errors import IntegrityError, IsThere, MpxError, NoChecksum, NotRenamed
from mpx.options import CopyOptions
from mpx.report import Severity
from mpx.transfer.commit_session import CommitSession, CommitWork
from mpx.transfer.ends import Ends
from mpx.transfer.records import Records
from mpx.transfer.sent_notes import Sent
from mpx.transfer.verify_queue import Section, VerifyQueue
from mpx.units import counted

MOST_BY_PROGRAM = 3  # sessions, where a program (ssh) has the connection


class Committer:
    """Takes whole files, verifies and commits them; checks sections of large ones while they move.

    Safe for several threads: workers of the carrier, the scan, the control loop and its own sessions.
    """

    def __init__(
        self,
        ends: Ends,
        options: CopyOptions,
        choice: ChecksumChoice,
        queue: FileQueue,
        failure: Failure,
        records: Records,
        connected: Callable[[], None],
        *,
        may_connect: Callable[[float], bool],
    ) -> None:
        """`connected` is called once there is a session, so that what moves can be finished.

        `may_connect` waits so many seconds for those who move the files to have a session, and tells whether
        they have: none is taken from them.
        """
        self.connected = connected
        self._ends, self._choice, self._queue = ends, choice, queue
        self._report, self._journal, self._sent = records.report, records.journal, records.sent
        self._committed = records.committed
        self._journaling = threading.Lock()  # held while news of a file are taken and written to the journal
        self._guard = threading.Lock()  # guards the five below
        self._first_error: MpxError | None = None
        self._incomplete_folders: set[str] = set()
        self._moving: dict[str, FileTransfer] = {}
        self._sessions: list[CommitSession] = []
        # A program's connection takes ten sessions or so, and a further one a login.
        most = (
            options.max_sessions
            if ends.far.capabilities.owns_streams
            else min(options.max_sessions, MOST_BY_PROGRAM)
        )
        self._most_sessions = most
        by_section = all(end.capabilities.most_compared_parts > 1 for end in (ends.near, ends.far))
        self._verify_queue = VerifyQueue(verifies=choice.verifies, sessions=most, by_section=by_section)
        self._work = CommitWork(
            ends,
            choice,
            self._verify_queue,
            queue,
            failure,
            options.retries,
            self._report.note,
            self,
            may_connect,
            replaces=options.overwrite != NEVER,
        )

    @property
    def first_error(self) -> MpxError | None:
        """The error of the first file that was given up."""
        with self._guard:
            return self._first_error

    @property
    def incomplete_folders(self) -> set[str]:
        """The folders of the destination in which files are missing that were given up."""
        with self._guard:
            return set(self._incomplete_folders)

    # --- for carriers and the scan -----------------------------------------------------------------------

    def began(self, file: FileTransfer) -> None:
        """Take a large file under observation."""
        if not file.is_small:
            with self._guard:
                self._moving[file.final] = file
            self._verify_queue.watch(file)

    def whole(self, file: FileTransfer) -> None:
        """Take a file whose every byte has arrived."""
        if not self._verify_queue.whole(file):
            self._queue.put_again(file)
        self.took()

    def given_up(self, file: FileTransfer, error: MpxError) -> None:
        """Record that a file cannot be copied; what arrived of a large one is kept for another run."""
        self._give_up(file, error, keep=file.arrived_bytes > 0 or file.partial == file.final)

    def _give_up(self, file: FileTransfer, error: MpxError, *, keep: bool) -> None:
        with self._guard:
            self._moving.pop(file.final, None)
            self._incomplete_folders.add(posixpath.dirname(file.final))
        self._verify_queue.drop(file)
        is_in_place = file.partial == file.final  # and perhaps still the old file
        may_be_untouched = is_in_place and not file.arrived_bytes
        is_short = file.is_small and not isinstance(error, NotRenamed) and not is_in_place
        if isinstance(error, IsThere) and is_in_place:
            self.removed(file)  # what has the name is of others: no later run is to take it for its own
        elif not keep or is_short or may_be_untouched:
            self._verify_queue.discard(file)
        self.failed(file.source, error, file.listed_bytes or 0)
        self._queue.settle(file)

    def forgot(self, file: FileTransfer) -> None:
        """Discard what was recorded as arrived of a file, here and in the journal."""
        self._verify_queue.forgot(file)
        self._journal_one(file)

    def again(self, file: FileTransfer, start: int, end: int) -> None:
        """Have [start, end) of a file moved once more; what was recorded of it is discarded."""
        if start < end:
            self._verify_queue.again(file, start, end)
            self._journal_one(file)

    def failed(self, name: str, error: MpxError, size_bytes: int = 0) -> None:
        """Record that something could not be copied."""
        self._report.failed(name, str(error), size_bytes)
        with self._guard:
            self._first_error = self._first_error or error

    # --- the journal ---------------------------------------------------------------------------------

    def journal_arrivals(self) -> None:
        """Write to the journal what has arrived since the last call; raises NoSpace, UsageError."""
        with self._guard:
            moving = list(self._moving.values())
        for file in moving:
            if file.has_news:
                self._journal_one(file)

    def _journal_one(self, file: FileTransfer) -> None:
        """Write to the journal what has arrived of one file, and what of it turned out not to have."""
        with self._journaling:
            lost, arrived = file.take_news()
            if lost:
                self._journal.lost(file.final, lost)
            if arrived:
                self._journal.arrived(file.final, arrived)

    # --- sessions ------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin with one session."""
        with self._guard:
            self._add_session()

    def join(self) -> None:
        """Wait until every session has ended."""
        while alive := [session for session in self._all_sessions() if session.is_alive()]:
            alive[0].join()

    def _all_sessions(self) -> list[CommitSession]:
        with self._guard:
            return list(self._sessions)

    def took(self) -> None:
        """A batch was taken, or a file has come: add a session if more waits than there is time for."""
        wanted = self._verify_queue.full_batches
        if not wanted or self._ends.takes_turns:
            return
        with self._guard:
            idle = sum(each.is_idle for each in self._sessions)
            if 0 < len(self._sessions) < self._most_sessions and idle < wanted:
                self._add_session()

    def _add_session(self) -> None:
        session = CommitSession(self._work, is_first=not self._sessions)
        try:
            session.start()
        except RuntimeError as error:  # no thread is left: go on with those that there are
            if not self._sessions:
                raise
            self._add_no_more(error)
            return
        self._sessions.append(session)

    def refused(self, error: MpxError) -> None:
        """The server admits no further session."""
        with self._guard:
            self._add_no_more(error)

    def _add_no_more(self, error: Exception) -> None:
        self._most_sessions = 0
        self._report.note(f"fewer sessions verify, as no further one can be opened: {error}")

    # --- from the sessions ---------------------------------------------------------------------------

    def compared(self, section: Section, algorithm: str, outcome: bool | MpxError) -> None:
        """Take how a section compared by that checksum: the same or not, or why that is not known."""
        file, start, end = section.file, section.start, section.end
        if not self._verify_queue.is_current(section):
            return
        if outcome is False and start in file.retried_sections:
            differs = IntegrityError(
                f"{file.source}: bytes {start} to {end} have another {algorithm} at the destination although "
                f"they were sent twice; {self._choice.why_differs(algorithm)}"
            )
            if self._unknown(section, differs):  # else it is looked at once more
                self._report.mismatch()
        elif isinstance(outcome, NoChecksum):
            self._without_checksum(section, outcome)
        elif isinstance(outcome, MpxError):
            self._unknown(section, outcome)
        elif outcome:
            if algorithm.endswith(OF_PASSED):
                stored = f"what {self._ends.far.location.authority} has stored"
                self._report.note(
                    f"{stored} was compared with what passed through this host, as the source tells no "
                    "checksum that the destination tells, too"
                )
            if not self._verify_queue.same(section, algorithm):
                self._queue.put_again(file)
        else:
            file.retried_sections.add(start)
            self._report.note(f"{file.source}: bytes {start} to {end} arrived damaged, sent again")
            moves_on = self._verify_queue.damaged(section)
            self._journal_one(file)
            if not moves_on:
                self._queue.put_again(file)

    def _unknown(self, section: Section, error: MpxError) -> bool:
        """Give up a file that is not shown to be the same; False if it is still sent, and compared later."""
        is_over = not self._verify_queue.unknown(section)
        if is_over:
            self._spoiled(section.file, error)
        return is_over

    def _without_checksum(self, section: Section, error: NoChecksum) -> None:
        """Compare a file as a whole where parts cannot be; else leave it unverified where that is allowed.

        Raises UsageError or OffsetsUnproven, which end the copy, where no file at all could be compared.
        """
        file, choice = section.file, self._choice
        if not section.is_whole:
            if not self._verify_queue.in_one_piece(section):
                self._queue.put_again(file)
            return
        if choice.is_required and not choice.has_answered:
            raise choice.not_honoured(error)
        if choice.is_required or (choice.has_answered and error.is_of_file):
            self._unknown(section, error.refusal)
            return
        name = file.source if choice.has_answered else ""  # else it is one line for all
        self._report.note(choice.unverified(file.source, error), Severity.WARNING, name=name)
        if not self._verify_queue.exempt(section):
            self._queue.put_again(file)

    def misfit(self, file: FileTransfer, stored_bytes: int) -> None:
        """Have a file sent once more of which so many bytes are stored, more or less than it has."""
        file.was_misfit, file.rename_asked = True, False
        self._report.note(
            f"{file.source}: {stored_bytes} of {counted(file.size_bytes, 'byte')} were stored; sent again"
        )
        file.redo(0, file.size_bytes)
        self._verify_queue.watch(file)
        self._journal_one(file)
        self._queue.put_again(file)

    def committed(self, files: Sequence[FileTransfer], errors: Mapping[FileTransfer, MpxError]) -> None:
        """Settle files that were to get their final names; `errors`: of those that did not."""
        done = [file for file in files if file not in errors]
        with self._guard:
            for file in done:
                self._moving.pop(file.final, None)
        self._journal.done([file.final for file in done])
        self._committed.add(file.final for file in done)
        for file in done:
            self._report.moved(
                file.size_bytes,
                file.resumed_bytes,
                listed_bytes=file.listed_bytes or 0,
                compared=file.verified.bytes_by_algorithm(),
            )
            self._queue.settle(file)
        for file, error in errors.items():
            self._spoiled(file, error)

    def timeless(self, files: Sequence[FileTransfer], there: Sequence[FileInfo | MpxError | None]) -> None:
        """Record what was sent to a server that keeps no times, so that it is not sent again."""
        self._sent.record(
            Sent(file.final, file.size_bytes, file.modified_s, info.modified_s)
            for file, info in zip(files, there, strict=True)
            if isinstance(info, FileInfo)
        )

    def removed(self, file: FileTransfer) -> None:
        """Nothing is left of a file that was given up."""
        self._journal.removed(file.final)

    def _spoiled(self, file: FileTransfer, error: MpxError) -> None:
        """Give up a file that had arrived; what is proven wrong, or of no use, is not kept."""
        file.claim_given_up()  # a part that is being sent again must not make it whole
        self._give_up(file, error, keep=not isinstance(error, IntegrityError | IsThere))
