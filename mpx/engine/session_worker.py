"""A thread that moves files over one session, and over another when that one is lost.

The worker of a protocol says how work is taken and carried, and what was lost with a session. What follows
from a loss is the same for all: try again, give a file up, or leave the work to the other workers.
"""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mpx.engine.carrier import CarrierContext
from mpx.engine.file_transfer import FileTransfer
from mpx.engine.retry import Retry, SessionsFull
from mpx.engine.stream import StreamTotals, summed
from mpx.errors import AuthenticationError, ConnectionLost, MpxError, TransferTimeout

IDLE_S = 0.02  # a worker without work looks for some so often


@dataclass(frozen=True, slots=True)
class Lost:
    """What was under way when a session was lost: nothing where it could not even be opened.

    `progressed`: the attempt had brought something before.
    """

    files: Sequence[FileTransfer]
    progressed: bool


class SessionWorker(threading.Thread):
    """One session at work. A subclass has the methods from `step` to `live_totals`; they run on this thread.

    Attributes without a word on threads are this thread's own. The carrier writes what it decides (how many
    streams, which congestion control), one value at a time, under its own lock; this thread only reads it.
    """

    retried: tuple[type[MpxError], ...] = (AuthenticationError, ConnectionLost, TransferTimeout)

    def __init__(self, name: str, number: int, host: str, context: CarrierContext) -> None:
        """Its number is 0 for the one worker that a copy cannot do without."""
        super().__init__(name=f"mpx-{name}-{number}", daemon=True)
        self.context = context
        self.host = host
        self.gone = False  # the server admits no further session: set once, by this thread
        self.retry = Retry(context.options.retries, context.failure.cancel)
        self.guard = threading.Lock()  # of what a subclass shares with other threads, and of `_past`
        self._past: dict[str, StreamTotals] = {}  # of streams that have ended, by path
        self._number = number
        self._was_ever_open = False

    # --- of each protocol ----------------------------------------------------------------------------

    def step(self) -> bool:
        """Do a bounded part of the work: take some if there is none in hand, and carry it.

        Returns False where there is nothing to do now. Raises one of `retried` where the session is lost, and
        anything else to end the copy. Calls `retry.progressed` when work is done.
        """
        raise NotImplementedError

    def pause(self) -> None:
        """Give back a session that others wait for: there is nothing to do for it now."""
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
        """Have what was under way carried once more, by whoever takes it."""

    def drop(self) -> None:
        """Close the session and its streams, if there are any."""
        raise NotImplementedError

    def live_totals(self) -> Mapping[str, StreamTotals]:
        """Return the counters of the streams that there are, by path; called with `guard` held."""
        raise NotImplementedError

    # --- the thread ----------------------------------------------------------------------------------

    def run(self) -> None:
        """Work until every file is settled or the copy stops."""
        queue, failure = self.context.queue, self.context.failure
        with failure.guard():
            while not queue.is_settled and not failure.cancel.is_set():
                try:
                    if not self.step():
                        self.pause()
                        failure.cancel.wait(IDLE_S)
                except self.retried as error:
                    if not self._goes_on(error):
                        break
        self.drop()

    def opened(self) -> None:
        """Note that a session is open: the server admits this worker."""
        self._was_ever_open = True
        self.context.events.admitted.set()

    def totals(self) -> dict[str, StreamTotals]:
        """Return the counters of all streams that there are and were, by path; from any thread."""
        with self.guard:
            return summed(self._past, self.live_totals())

    def retire(self, ended: Mapping[str, StreamTotals]) -> None:
        """Keep the counters of streams that have ended; to be called with `guard` held."""
        self._past = summed(self._past, {path: each.none_open() for path, each in ended.items()})

    def _goes_on(self, error: MpxError) -> bool:
        """Decide how to go on after a session was lost; False: not at all. Raises what ends the copy."""
        lost, retry = self.lost(error), self.retry
        if isinstance(error, SessionsFull) or self._is_one_too_many:
            if not isinstance(error, SessionsFull):  # that was noted
                self.context.supervisor.note(f"no further session with {self.host}: {error}")
            self.gone = True
            self.hand_back(error)
            return False
        if lost.progressed:
            retry.progressed()
        elif len(lost.files) > 1:
            retry.begin()
            self.isolate()
        if len(lost.files) == 1 and self.context.queue.listed_files > 1 and retry.may_give_up(error):
            self.give_up(lost.files[0], error)
            return True
        self.hand_back(error)
        retry.again(error)
        self.context.supervisor.note(f"trying again after: {error}")
        return True

    @property
    def _is_one_too_many(self) -> bool:
        """Whether a worker that was never admitted is not needed: the first is, until another one is."""
        return not self._was_ever_open and (self._number > 0 or self.context.events.admitted.is_set())
