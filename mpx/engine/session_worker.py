"""A thread that moves files over one session, and over another when that one is lost.

The worker of a protocol says how work is taken and carried, and what was lost with a session. What follows
from a loss is the same for all: try again, give a file up, or leave the work to the other workers.
"""

import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from mpx.engine.carrier import CarrierContext
from mpx.engine.file_queue import FileQueue
from mpx.engine.file_transfer import FileTransfer
from mpx.engine.retry import Retry, ServerBusy, ServerFailed, SessionsFull, why_again
from mpx.engine.stop import Either
from mpx.engine.stream import StreamTotals, summed
from mpx.errors import AuthenticationError, ConnectionLost, MpxError, TokenRefused, TransferTimeout
from mpx.files.local_error import lost_pipe

BEGUN_S = 0.2  # before there is any file
IDLE_S = 0.02  # a worker without work looks for some so often
FIRST_ASIDE_S, LONGEST_ASIDE_S = 15.0, 240.0  # of a worker without a session; twice as long each time


@dataclass(frozen=True, slots=True)
class Lost:
    """What was under way when a session was lost: nothing where it could not even be opened.

    `progressed`: the attempt had brought something before.
    """

    files: Sequence[FileTransfer]
    progressed: bool


class NothingLeft:
    """Is set once others have settled every file: nobody is to wait for a busy server then."""

    def __init__(self, queue: FileQueue) -> None:
        self._queue = queue

    def is_set(self) -> bool:
        """See Settable."""
        return self._queue.is_settled


class SessionWorker(threading.Thread):
    """A thread with one session; a subclass implements the protocol.

    Attributes are used by this thread only, unless their comment says otherwise. What the carrier decides
    (number of streams, congestion control) is written by the carrier, one value at a time, and read here.
    """

    retried: tuple[type[MpxError], ...] = (AuthenticationError, ConnectionLost, TransferTimeout)

    def __init__(self, name: str, number: int, host: str, context: CarrierContext) -> None:
        """Number 0 is the one worker that a copy cannot do without."""
        super().__init__(name=f"mpx-{name}-{number}", daemon=True)
        self.context = context
        self.host = host
        self.gone = False  # for now, as the server admits no further session; set by this thread
        self.is_needed = False  # nobody else is left; the carrier's decision
        self.peers: Sequence[SessionWorker] = ()  # all workers of the carrier, which has the list
        self.retry = Retry(
            context.options.retries, Either(context.failure.cancel, NothingLeft(context.queue))
        )
        self.guard = threading.Lock()  # of what a subclass shares with other threads, and of `_past`
        self._past: dict[str, StreamTotals] = {}  # of streams that have ended, by path
        self._number = number
        self._was_admitted = False  # since it stood aside last, if it ever has
        self._aside_s = FIRST_ASIDE_S

    # --- of each protocol, on this thread ------------------------------------------------------------

    def step(self) -> bool:
        """Do a bounded part of the work: take some if there is none in hand, and carry it.

        Returns False where there is nothing to do now. Raises one of `retried` where the session is lost, and
        anything else to end the copy. Calls `retry.progressed` when work is done.
        """
        raise NotImplementedError

    def pause(self) -> None:
        """There is nothing to do: give the session to others if they wait for one."""
        raise NotImplementedError

    def lost(self, error: MpxError, /) -> Lost:
        """Drop the session, which is lost by this error, and say what was under way."""
        raise NotImplementedError

    def isolate(self) -> None:
        """Carry one file after the other from now on, to see which one the failures are due to."""

    def give_up(self, file: FileTransfer, error: MpxError) -> None:
        """Give a file up that was under way when sessions were lost again and again."""
        raise NotImplementedError

    def hand_back(self, error: MpxError) -> None:
        """Make what was under way available again: to others where this worker is `gone`, else to any."""

    def open_session(self) -> object:
        """Open the session if there is none, and return it; raises one of `retried` if none is to be had."""
        raise NotImplementedError

    def open_early(self) -> None:
        """Log in while files are still looked for, if that takes no turn of others.

        A failure is dealt with once there are some.
        """

    def drop(self) -> None:
        """Close the session and its streams, if there are any."""
        raise NotImplementedError

    # --- of each protocol, for the carrier, from any thread ------------------------------------------

    def silent_s(self, path: str) -> float | None:
        """Return for how long nothing has come of what is under way on a path; None where nothing is."""
        raise NotImplementedError

    def renew(self, path: str) -> None:
        """Replace every stream of a path by another as soon as it can be left."""
        raise NotImplementedError

    def cut(self) -> None:
        """Reset the session and its streams; the thread ends soon."""
        raise NotImplementedError

    def live_totals(self) -> Mapping[str, StreamTotals]:
        """Return the counters of the streams that there are, by path; called with `guard` held."""
        raise NotImplementedError

    # --- the thread ----------------------------------------------------------------------------------

    def run(self) -> None:
        """Work until every file is settled or the copy stops."""
        queue, failure = self.context.queue, self.context.failure
        with failure.guard():
            if self.context.events.may_spread.is_set() and not queue.wait_begun(0.0):
                self.open_early()
            while not failure.cancel.is_set() and not queue.wait_begun(BEGUN_S):
                self.pause()
            while not queue.is_settled and not failure.cancel.is_set():
                try:
                    if not self.step():
                        self.context.events.reconnecting.end(self.name)
                        self.pause()
                        queue.wait_settled(IDLE_S)
                except self.retried as error:
                    self._go_on(error)
        self.context.events.reconnecting.end(self.name)
        self.drop()

    def opened(self) -> None:
        """Note that a session is open: the server admits this worker."""
        self._was_admitted, self._aside_s = True, FIRST_ASIDE_S
        self.context.events.admitted.set()
        self.context.events.reconnecting.end(self.name)

    def totals(self) -> dict[str, StreamTotals]:
        """Return the counters of all streams that there are and were, by path; from any thread."""
        with self.guard:
            return summed(self._past, self.live_totals())

    def retire(self, ended: Mapping[str, StreamTotals]) -> None:
        """Keep the counters of streams that have ended; to be called with `guard` held."""
        self._past = summed(self._past, {path: each.none_open() for path, each in ended.items()})

    def one_too_many(self, error: ServerBusy) -> MpxError:
        """Return what a busy server means: too many of us ask, unless it says when to ask again.

        Where that does not help, the copy goes on with those that the server does not refuse.
        """
        is_last_try = self.retry.next_attempt > self.context.options.retries
        is_replaced = is_last_try and self._has_others
        if is_replaced or (self._number and (is_last_try or error.wait_s is None)):
            self.context.supervisor.note(f"no further session with {self.host}: {error}")
            return SessionsFull(str(error))
        return error

    @property
    def _has_others(self) -> bool:
        """Whether the copy goes on without this one."""
        return any(each is not self and not each.gone and each.is_alive() for each in list(self.peers))

    def carry_again(self, file: FileTransfer, error: MpxError, *, was_tried: bool) -> None:
        """Have a whole file carried once more, as often as --retries allows; it is in hand no more.

        One that failed twice waits behind the others. That the server is busy is no failure of the file.
        """
        file.failures += was_tried and self.is_due_to_file(error)
        if file.failures > self.context.options.retries:
            self.give_up(file, error)
        else:
            self.context.queue.put_again(file, last=file.failures > 1)

    @staticmethod
    def is_due_to_file(error: MpxError) -> bool:
        """Tell whether a failure may be due to what was carried; else the server is busy."""
        return not isinstance(error, (ServerBusy, SessionsFull))

    def _go_on(self, error: MpxError) -> None:
        """Decide how to go on after a session was lost. Raises what ends the copy."""
        lost, retry = self.lost(error), self.retry
        if isinstance(error, TokenRefused):  # as nobody gets a session any more
            raise error
        if isinstance(error, SessionsFull) or self._is_one_too_many:
            if not isinstance(error, SessionsFull):  # that was noted
                self.context.supervisor.note(f"no further session with {self.host}: {error}")
            self._stand_aside(error)
            return
        if spent := [file for file in lost.files if file.is_read_once and file.was_read]:
            for file in spent:  # as no attempt can begin with what was read
                self.give_up(file, lost_pipe(file.source, error))
            lost = replace(lost, files=[file for file in lost.files if file not in spent])
            if not lost.files:
                return
        if lost.progressed:
            retry.progressed()
        elif len(lost.files) > 1:
            retry.begin()
            self.isolate()
        if isinstance(error, ServerFailed) and retry.next_attempt > self.context.options.retries:
            error = error.at_last(retry.next_attempt)
        if len(lost.files) == 1 and self.context.queue.has_others and retry.may_give_up(error):
            self.give_up(lost.files[0], error)
            return
        self.hand_back(error)
        if retry.next_attempt <= self.context.options.retries:
            self.context.events.reconnecting.begin(self.name, retry.next_attempt, why_again(error))
        retry.again(error)
        self.context.supervisor.note(f"trying again after: {error}")

    def _stand_aside(self, error: MpxError) -> None:
        """Leave the work to other workers until there is a session: some may have left the server by then."""
        self.gone, self._was_admitted = True, False
        self.context.events.reconnecting.end(self.name)
        self.hand_back(error)
        while self._is_to_ask_again():
            try:
                self.open_session()
            except self.retried as refusal:
                self.drop()
                if self.is_needed:
                    self.retry.again(refusal)
            else:
                self.gone = False
                return

    def _is_to_ask_again(self) -> bool:
        """Wait, longer each time, before a session is asked for; False where none is needed any more."""
        queue, stop = self.context.queue, self.context.failure.cancel
        until_s = time.monotonic() + self._aside_s
        self._aside_s = min(2 * self._aside_s, LONGEST_ASIDE_S)
        while time.monotonic() < until_s and not self.is_needed:
            if queue.is_settled or stop.wait(IDLE_S):
                break
        return not (queue.is_settled or stop.is_set())

    @property
    def _is_one_too_many(self) -> bool:
        """Whether a worker that was never admitted is not needed: the first is, until another one is."""
        return not self._was_admitted and (self._number > 0 or self.context.events.admitted.is_set())
