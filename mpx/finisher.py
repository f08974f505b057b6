"""Verifying and committing: beside the transfer, section by section, then file by file.

A file gets its final name only when every byte has arrived, its checksum is the same at both ends, and
the source has not changed meanwhile. Small files are finished in groups.
"""

import contextlib
import os
import threading
from collections import deque
from collections.abc import Callable

from mpx import checksum
from mpx.checksum import SECTION_BYTES
from mpx.endpoint import Commit, Endpoint, FileInfo, Part
from mpx.errors import IntegrityError, Interrupted, MpxError
from mpx.failure import Failure
from mpx.journal import Journal
from mpx.local import local_error
from mpx.move import Move
from mpx.pool import Pool
from mpx.report import Report
from mpx.retry import Retry

GROUP = 100  # files finished together
TICK_S = 0.05


def changed(now: FileInfo | None, size_bytes: int, modified_s: float | None) -> str:
    """Say how a source differs from what it was when it was listed; empty if it does not."""
    if now is None:
        return "it is gone"
    if now.size_bytes != size_bytes:
        return f"it had {size_bytes} bytes and has {now.size_bytes} now"
    if modified_s is not None and now.modified_s is not None and now.modified_s != modified_s:
        return "it was modified"
    return ""


class Finisher(threading.Thread):
    """Takes whole files, verifies and commits them; checks sections of large ones while they move."""

    def __init__(
        self,
        *,
        open_source: Callable[[], Endpoint],
        open_destination: Callable[[], Endpoint],
        far_is_source: bool,
        algorithm: str,
        pool: Pool,
        failure: Failure,
        journal: Journal | None,
        report: Report,
        retries: int,
    ) -> None:
        super().__init__(name="mpx-finisher", daemon=True)
        self._open = open_source, open_destination
        self._far_is_source = far_is_source
        self._algorithm = algorithm
        self._pool = pool
        self._failure = failure
        self._journal = journal
        self._report = report
        self._retries = retries
        self._whole: deque[Move] = deque()
        self._litter: deque[Move] = deque()  # given up, with a partial file that is worth nothing
        self._arrived = threading.Event()
        self._moving: dict[str, Move] = {}
        self._guard = threading.Lock()
        self._source: Endpoint | None = None
        self._destination: Endpoint | None = None
        self._renaming: set[Move] = set()  # asked for, answer not seen
        self.first_error: MpxError | None = None  # of files that were given up

    # --- from other threads --------------------------------------------------------------------------

    def began(self, move: Move) -> None:
        """Take a large file under observation."""
        if not move.is_small:
            with self._guard:
                self._moving[move.final] = move

    def whole(self, move: Move) -> None:
        """Take a file whose every byte has arrived."""
        self._whole.append(move)
        self._arrived.set()

    def given_up(self, move: Move, error: MpxError) -> None:
        """Record that a file cannot be copied; what arrived of a large one is kept for another run."""
        with self._guard:
            self._moving.pop(move.final, None)
        if not move.arrived_bytes or move.is_small:
            self._litter.append(move)
        self.failed(move.source, error, move.size_bytes)
        self._pool.settle(move)

    def failed(self, name: str, error: MpxError, size_bytes: int = 0) -> None:
        """Record that something could not be copied."""
        self._report.failed(name, str(error), size_bytes)
        self.first_error = self.first_error or error

    @property
    def moving(self) -> list[Move]:
        """The large files that are not finished yet."""
        with self._guard:
            return list(self._moving.values())

    def journal_arrivals(self) -> None:
        """Tell the journal what has arrived since the last time."""
        if self._journal is None:
            return
        for move in self.moving:
            fresh = move.take_fresh()
            if fresh:
                self._journal.arrived(move.final, fresh)

    # --- the thread ----------------------------------------------------------------------------------

    def run(self) -> None:
        """Work until the pool is settled or the copy stops."""
        retry = Retry(self._retries, self._failure.cancel)
        with self._failure.guard():
            while not self._pool.is_settled and not self._failure.cancel.is_set():
                try:
                    self._round()
                    retry.progressed()
                except MpxError as error:
                    self._close()
                    retry.again(error)
            self._clean_up()
        self._close()

    def _clean_up(self) -> None:
        """Remove partial files that no later run can use; best effort."""
        while self._litter and not self._failure.cancel.is_set():
            move = self._litter.popleft()
            with contextlib.suppress(MpxError):
                self._endpoints()[1].remove(move.partial)
                if self._journal is not None:
                    self._journal.done([move.final])

    def _round(self) -> None:
        self._clean_up()
        self._arrived.clear()
        group = [self._whole[i] for i in range(min(GROUP, len(self._whole)))]
        if group:
            self._finish([move for move in group if not move.is_given_up])
            for _ in group:  # only now: had the connection been lost, they would be finished anew
                self._whole.popleft()
        elif not self._check_a_section():
            self._arrived.wait(TICK_S)

    def _endpoints(self) -> tuple[Endpoint, Endpoint]:
        if self._source is None:
            self._source = self._open[0]()
        if self._destination is None:
            self._destination = self._open[1]()
        return self._source, self._destination

    def _close(self) -> None:
        for endpoint in (self._source, self._destination):
            if endpoint is not None:
                endpoint.close()
        self._source = self._destination = None

    def _stop(self) -> bool:
        return self._failure.cancel.is_set()

    # --- verifying -----------------------------------------------------------------------------------

    def _check_a_section(self) -> bool:
        """Verify one section of a file that still moves; False if there is none to verify."""
        if self._algorithm == "none":
            return False
        for move in self.moving:
            for part in sections(move):
                if _is_due(move, part):
                    return not self._verify([(move, part)])  # an error is met again when the file is whole
        return False

    def _verify(self, parts: list[tuple[Move, Part]]) -> dict[Move, MpxError]:
        """Compare parts at both ends; what differs is to be moved once more, or is an error."""
        source, destination = self._endpoints()
        far = source if self._far_is_source else destination
        names = [move.source if self._far_is_source else move.partial for move, _ in parts]
        asked = [Part(name, part.start, part.end) for name, (_, part) in zip(names, parts, strict=True)]
        errors: dict[Move, MpxError] = {}
        for (move, part), far_sum in zip(
            parts, far.checksums(self._algorithm, asked, self._stop), strict=True
        ):
            near_sum = self._near_sum(move, part)
            if self._stop():
                raise Interrupted("stopped")
            error = next((told for told in (near_sum, far_sum) if isinstance(told, Exception)), None)
            if error is not None:
                errors[move] = error if isinstance(error, MpxError) else MpxError(str(error))
            elif far_sum == near_sum:
                move.verified.add(part.start, part.end)
            elif part.start in move.retried_sections:
                self._report.mismatched = True
                errors[move] = IntegrityError(
                    f"{move.source}: bytes {part.start} to {part.end} have another {self._algorithm} at the "
                    "destination although they were sent twice; check disks and memory of both hosts"
                )
            else:
                move.retried_sections.add(part.start)
                move.redo(part.start, part.end)
                self._report.note(f"{move.source}: bytes {part.start} to {part.end} were damaged, sent again")
        return errors

    def _near_sum(self, move: Move, part: Part) -> str | MpxError:
        name = move.partial if self._far_is_source else move.source
        try:
            fd = os.open(name, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return IntegrityError(f"{name} is gone; run the same command again")
        except OSError as error:
            return local_error(error, name, writing=self._far_is_source)
        try:
            if self._algorithm != "adler32":
                return checksum.of_file(self._algorithm, fd, part.start, part.end, self._stop)

            def read(start: int, end: int, value: int) -> int:
                return checksum.adler32_combine(
                    value, checksum.adler32_of_file(fd, start, end, 1, self._stop), end - start
                )

            return f"{move.section_sum(part.start, part.end, read):08x}"
        except OSError as error:
            return local_error(error, name, writing=self._far_is_source)
        finally:
            os.close(fd)

    # --- finishing -----------------------------------------------------------------------------------

    def _is_proven(self, move: Move) -> bool:
        """Tell whether every byte is there and, if they are verified at all, the same at both ends."""
        return move.is_whole and (self._algorithm == "none" or move.verified.covers(0, move.size_bytes))

    def _finish(self, group: list[Move]) -> None:
        errors: dict[Move, MpxError] = {}
        if self._algorithm != "none":
            parts = [(move, part) for move in group for part in sections(move) if _is_due(move, part)]
            errors = self._verify(parts)
        source, destination = self._endpoints()
        again = [move for move in group if move not in errors and not self._is_proven(move)]
        ready = [move for move in group if move not in errors and move not in again]
        for move, now in zip(ready, source.stats([move.source for move in ready]), strict=True):
            if isinstance(now, MpxError):
                errors[move] = now
            elif how := changed(now, move.size_bytes, move.modified_s):
                errors[move] = IntegrityError(
                    f"{move.source} changed while it was copied: {how}; run the same command again"
                )
        ready = [move for move in ready if move not in errors]
        ready = self._not_renamed_yet(ready, destination)
        self._renaming.update(ready)
        commits = [Commit(move.partial, move.final, move.modified_s, move.mode) for move in ready]
        for move, failed in zip(ready, destination.commit(commits), strict=True):
            if failed is not None:
                errors[move] = failed if isinstance(failed, MpxError) else MpxError(str(failed))
        self._renaming.clear()
        self._settle(group, again, errors, destination)

    def _not_renamed_yet(self, ready: list[Move], destination: Endpoint) -> list[Move]:
        """Leave out what has its final name although the connection was lost before we heard of it."""
        asked = [move for move in ready if move in self._renaming]
        if not asked:
            return ready
        partials = destination.stats([move.partial for move in asked])
        finals = destination.stats([move.final for move in asked])
        renamed = {
            move
            for move, partial, final in zip(asked, partials, finals, strict=True)
            if partial is None and isinstance(final, FileInfo) and final.size_bytes == move.size_bytes
        }
        return [move for move in ready if move not in renamed]

    def _settle(
        self, group: list[Move], again: list[Move], errors: dict[Move, MpxError], destination: Endpoint
    ) -> None:
        done = [move for move in group if move not in errors and move not in again]
        with self._guard:
            for move in done:
                self._moving.pop(move.final, None)
        if self._journal is not None:
            self._journal.done([move.final for move in done])
        for move in done:
            self._report.moved(move.size_bytes, move.resumed_bytes)
            self._pool.settle(move)
        for move, error in errors.items():
            if isinstance(error, IntegrityError):  # nothing of it is worth keeping
                with contextlib.suppress(MpxError):
                    destination.remove(move.partial)
                if self._journal is not None:
                    self._journal.done([move.final])
            move.claim_given_up()  # a part that is being sent again must not make it whole
            self.given_up(move, error)
        for move in again:
            self._pool.put_again(move)


def _is_due(move: Move, part: Part) -> bool:
    """Tell whether a part has arrived and is not verified yet; one that is being sent again is not due."""
    return move.has_arrived(part.start, part.end) and not move.verified.covers(part.start, part.end)


def sections(move: Move) -> list[Part]:
    """Return the parts of a file that are verified one by one; a file without bytes has one."""
    starts = range(0, max(move.size_bytes, 1), SECTION_BYTES)
    return [
        Part(move.partial, start, min(start + SECTION_BYTES, max(move.size_bytes, start))) for start in starts
    ]
