"""The workers between two collections: each has one task under way, of as many files as there are."""

import contextlib
import threading
import time
from collections.abc import Mapping, Sequence

from mpx.endpoints.globus.adopted_tasks import AdoptedTasks
from mpx.endpoints.globus.arrival_check import ArrivalCheck
from mpx.endpoints.globus.left_behind import LeftBehind
from mpx.endpoints.globus.start_check import StartCheck
from mpx.endpoints.globus.task_book import BegunTask
from mpx.endpoints.globus.task_claims import TaskClaims, claims
from mpx.endpoints.globus.task_state import TaskState, wait_s
from mpx.endpoints.globus.task_watch import TaskWatch
from mpx.endpoints.globus.tasks import GlobusTasks
from mpx.engine.carrier import CarrierContext
from mpx.engine.file_transfer import FileTransfer
from mpx.engine.marked_bytes import MarkedBytes
from mpx.engine.path_set import DEFAULT_PATH
from mpx.engine.range_scheduler import RangeScheduler
from mpx.engine.session_worker import Lost, SessionWorker
from mpx.engine.stream import StreamTotals
from mpx.errors import (
    ConnectionLost,
    DestinationError,
    IntegrityError,
    Interrupted,
    IsThere,
    MpxError,
    SourceError,
    TransferTimeout,
)
from mpx.report import Severity
from mpx.units import counted

MOST_ITEMS = 2000  # of a task: as many again wait meanwhile, and fewer cost more for each
COLLECT_S = 10.0  # that a task waits for further files, which costs less than a task of its own
VERIFIED = "globus"  # by a checksum that the collections choose
_LOOK_S = 0.05
_MOST_IN_VAIN = 3  # files that were refused by themselves, one after the other, before it is not the file


class GlobusWorker(SessionWorker):
    """Has files copied, task after task."""

    # What the service does goes on without us, so that nothing is begun anew when it is not reached.
    retried = ()

    def __init__(
        self,
        number: int,
        tasks: GlobusTasks,
        arrivals: ArrivalCheck,
        adopted: AdoptedTasks,
        left: LeftBehind,
        context: CarrierContext,
        scheduler: RangeScheduler,
        collecting: threading.Lock,
    ) -> None:
        """`collecting`: held by the one worker that takes files from the queue."""
        super().__init__("globus", number, "Globus", context)
        # Guarded by `guard`:
        self._bytes = MarkedBytes()
        self.is_busy = False
        # This thread's own:
        self._tasks, self._arrivals, self._adopted, self._left = tasks, arrivals, adopted, left
        self._start_check = StartCheck(tasks, arrivals, left)
        self._scheduler, self._collecting = scheduler, collecting
        self._begun: BegunTask | None = None  # the task that is under way
        self._most = MOST_ITEMS  # fewer, once those of one cannot be told apart
        self._in_vain = 0

    # --- for the carrier, from any thread ------------------------------------------------------------

    def live_totals(self) -> Mapping[str, StreamTotals]:
        """See SessionWorker. The service's word is all that there is."""
        shown_bytes = int(self._bytes.shown(time.monotonic()))
        return {DEFAULT_PATH: StreamTotals(streams=int(self.is_busy), bytes=shown_bytes)}

    def silent_s(self, path: str) -> float | None:
        """See SessionWorker. There is one path only."""

    def renew(self, path: str) -> None:
        """See SessionWorker. There are no connections of ours."""

    def cut(self) -> None:
        """See SessionWorker. The thread sees that the copy is stopped."""

    # --- the loop ------------------------------------------------------------------------------------

    def run(self) -> None:
        """See SessionWorker. A copy that ends before its end leaves no task behind."""
        super().run()
        if self._begun is not None:
            self._cancel(self._begun)

    def step(self) -> bool:
        """See SessionWorker."""
        with self._collecting:
            self.opened()
            files = self._collect()
        if not files:
            return False
        with self.guard:
            self.is_busy = True
        try:
            self._carry(files)
        finally:
            with self.guard:
                self.is_busy = False
        return True

    def _collect(self) -> list[FileTransfer]:
        """Take as many files as a task may have, waiting for those that are still listed."""
        queue, stop = self.context.queue, self.context.failure.cancel
        files: list[FileTransfer] = []
        until_s = time.monotonic() + COLLECT_S
        while len(files) < self._most:
            is_listed = queue.is_listed
            if (piece := self._scheduler.take_file()) is not None:
                files.append(piece.file)
                continue
            if not files or is_listed or time.monotonic() > until_s or stop.wait(_LOOK_S):
                break
        return files

    def _carry(self, files: list[FileTransfer]) -> None:
        adopted, mine, others = self._adopted.first_of(files, self.retry)
        for file in reversed(others):
            self.context.queue.put_again(file)
        is_ours = False
        if (begun := adopted) is None:
            start = self._start_check.of(mine, self.retry)
            for file in reversed(start.later):
                self.context.queue.put_again(file)
            for file, error in start.refused.items():
                self._scheduler.give_up(file, error)
            if not (mine := start.files):
                return
            is_ours = start.is_ours
            self._begun = self._tasks.prepare(mine, self.retry)
            begun = self._tasks.submit(self._begun, mine, self.retry, is_ours=is_ours)
            self.context.supervisor.note(f"Globus task {begun.task_id} begun: {counted(len(mine), 'file')}")
        self._begun = begun
        state, in_vain = self._wait(begun, mine)
        self._begun = None
        self._left.took(begun, state)
        self.context.supervisor.note(state.summary())
        if state.is_done:
            skipped = self._tasks.skipped(begun.task_id, self.retry) if state.skipped else {}
            told = claims(
                begun.items,
                state,
                skipped,
                lambda: self._tasks.copied(begun.task_id, self.retry),
                may_leave=self._tasks.may_leave,
                compares=is_ours or self._tasks.compares,
            )
            self._settle_told(begun, mine, skipped, told, is_adopted=adopted is not None)
            return
        copied = self._tasks.copied(begun.task_id, self.retry)
        self._settle([file for file in mine if file.final in copied], {})
        rest = [file for file in mine if file.final not in copied]
        if adopted is None:
            self._judge(rest, in_vain or state.error())
            return
        self._copy_again(rest)

    def _settle_told(
        self,
        begun: BegunTask,
        files: Sequence[FileTransfer],
        skipped: Mapping[str, str],
        told: TaskClaims,
        *,
        is_adopted: bool,
    ) -> None:
        """Settle the files of a task that has succeeded."""
        kept = [file for file in files if file.final in told.were_there]
        untold = [file for file in files if file.final in told.untold]
        self._settle([file for file in files if file not in {*kept, *untold}], skipped)
        if is_adopted:  # why it has left them out is not known
            self._copy_again([*kept, *untold])
            return
        self._keep_theirs(kept)
        for file in untold:
            says = "Globus says that it is copied, and does not have it among the files"
            self._failed(file, IntegrityError(f"{file.named()}: {says} of the task {begun.task_id}"))

    def _copy_again(self, files: Sequence[FileTransfer]) -> None:
        """Have a task of this run copy files, which shows what is wrong with them."""
        self._adopted.forget(files)
        for file in reversed(files):
            self.context.queue.put_again(file)

    # --- waiting for a task ----------------------------------------------------------------------------

    def _wait(self, begun: BegunTask, files: Sequence[FileTransfer]) -> tuple[TaskState, MpxError | None]:
        """Wait until a task has ended; where that is in vain, it is cancelled, and why that is returned."""
        watch = TaskWatch(self.context.options.timeout_s)
        most_bytes, told_bytes = sum(file.size_bytes or file.listed_bytes or 0 for file in files), 0
        began_s, in_vain, cancelled_s = time.monotonic(), None, 0.0
        while True:
            state = self._look(begun)
            now_s = time.monotonic()
            for text in watch.observe(now_s, state):
                self.context.supervisor.note(text, Severity.NOTICE)
            self._show(state)
            if watch.has_new_faults(state):
                self._tell_faults(begun.task_id)
            moved_bytes = min(state.moved_bytes, most_bytes)
            if moved_bytes > told_bytes:
                self._moved(now_s, moved_bytes - told_bytes, wait_s(now_s - began_s))
                told_bytes = moved_bytes
            if not state.is_active:
                if state.is_done:
                    self._moved(now_s, most_bytes - told_bytes, wait_s(0.0))
                return state, in_vain
            if in_vain is None and (in_vain := watch.why_in_vain(now_s, state)):
                self._end(begun, in_vain)
                cancelled_s = now_s
            if in_vain and now_s - cancelled_s > self.context.options.timeout_s:
                raise in_vain  # it does not end either
            if self.context.failure.cancel.wait(wait_s(now_s - began_s)):
                raise Interrupted

    def _show(self, state: TaskState) -> None:
        """Have who watches the copy see why nothing moves."""
        reconnecting = self.context.events.reconnecting
        if not state.is_active:
            reconnecting.end(self.name)
            return
        is_stuck = state.trouble or state.is_paused or state.status == "INACTIVE"
        done = f"{counted(state.files_moved + state.files_same, 'file')} of its task done"
        reconnecting.begin(self.name, 1, state.why if is_stuck else done)

    def _look(self, begun: BegunTask) -> TaskState:
        """Look at a task; where that is not possible any more it is left to go on, for the next run."""
        try:
            return self._tasks.state(begun.task_id, self.retry)
        except (ConnectionLost, TransferTimeout) as error:
            self._begun = None
            kind = TransferTimeout if isinstance(error, TransferTimeout) else ConnectionLost
            raise kind(f"{error}; the task goes on, and the same copy again goes on with it") from None

    def _moved(self, now_s: float, size_bytes: int, spread_s: float) -> None:
        with self.guard:
            self._bytes.add(now_s, size_bytes, spread_s)

    def _end(self, begun: BegunTask, why: MpxError) -> None:
        """Cancel a task that gets no further; raises why, where that is not possible either."""
        try:
            self._tasks.cancel(begun)
        except MpxError:
            raise why from None

    def _tell_faults(self, task_id: str) -> None:
        faults: list[tuple[str, str]] = []
        with contextlib.suppress(ConnectionLost, TransferTimeout):  # the task itself is looked at again
            faults = self._tasks.faults(task_id, self.retry)
        for code, text in dict(reversed(faults)).items():
            self.context.supervisor.note(f"Globus tells a fault: {code}: {text}", Severity.NOTICE)

    def _cancel(self, begun: BegunTask) -> None:
        """Cancel the task of a copy that ends; where that fails the next run goes on with it."""
        note = self.context.supervisor.note
        task = f"Globus task {begun.task_id or begun.submission}"
        try:
            task_id = self._tasks.cancel(begun)
        except MpxError as error:
            why = "" if isinstance(error, Interrupted) else f": {error}"
            note(
                f"{task} could not be cancelled, and goes on{why}; the same copy again "
                "goes on with it, app.globus.org/activity cancels it",
                Severity.NOTICE,
            )
            return
        if task_id:  # else it may begin yet, and the next run looks for it
            if self._tasks.replaces:  # else what it has left is to be told from files of others
                self._tasks.book.ended(begun.submission)
            note(f"Globus task {task_id} was cancelled, as the copy ended", Severity.NOTICE)

    # --- what has become of files ----------------------------------------------------------------------

    def _keep_theirs(self, files: Sequence[FileTransfer]) -> None:
        """Give up files whose names others have taken, while nothing of ours had them."""
        self._left.settled([file.final for file in files])
        for file in files:
            self._scheduler.give_up(file, IsThere(file.final))

    def _settle(self, files: Sequence[FileTransfer], skipped: Mapping[str, str]) -> None:
        """Have those that have arrived committed, and give those up that have not."""
        for file in files:
            if file.source in skipped:
                why = f"{file.named()}: the source collection refuses it: {skipped[file.source]}"
                self._scheduler.give_up(file, SourceError(why))
        rest = [file for file in files if file.source not in skipped]
        for file, error in zip(rest, self._arrivals.outcomes(rest, self.retry), strict=True):
            if error is None:
                self._in_vain = 0
                self._arrived(file)
            else:
                self._failed(file, error)

    def _failed(self, file: FileTransfer, error: MpxError) -> None:
        """Have a file copied once more that is not what it is to be; else give it up."""
        if isinstance(error, IntegrityError) and not file.failures and file.can_read_again:
            file.failures += 1
            self.context.supervisor.note(f"{error}; copied again", Severity.NOTICE)
            self.context.queue.put_again(file, last=True)
        else:
            self._scheduler.give_up(file, error)

    def _arrived(self, file: FileTransfer) -> None:
        size_bytes = file.listed_bytes or 0
        file.landed(0, size_bytes)
        if file.is_streamed:
            self._scheduler.ended(file, size_bytes)
        if self._tasks.verifies:
            file.found_same(0, size_bytes, VERIFIED)
        file.is_unchanged = True
        self._left.settled([file.final])
        if file.claim_whole():
            self.context.supervisor.whole(file)

    def _judge(self, files: Sequence[FileTransfer], error: MpxError) -> None:
        """Decide about files that a task has not copied: fewer at once show to which of them it is due.

        Raises what concerns all.
        """
        if not files:
            return
        if not isinstance(error, (DestinationError, IntegrityError)) or not self.context.queue.has_others:
            raise error
        if len(files) == 1:
            self._in_vain += 1
            if self._in_vain >= _MOST_IN_VAIN:
                raise error
            self._most = MOST_ITEMS
            self._scheduler.give_up(files[0], error)
            return
        self._most = max(1, len(files) // 4)
        for file in reversed(files):
            self.context.queue.put_again(file)

    # --- of SessionWorker, which has nothing to do here --------------------------------------------------

    def pause(self) -> None:
        """See SessionWorker."""

    def drop(self) -> None:
        """See SessionWorker."""

    def open_session(self) -> object:
        """See SessionWorker."""
        return None

    def lost(self, error: MpxError, /) -> Lost:
        """See SessionWorker."""
        raise error

    def give_up(self, file: FileTransfer, error: MpxError) -> None:
        """See SessionWorker."""
        self._scheduler.give_up(file, error)
