"""The beginning of a file: what of it is to be moved, after an earlier run may have moved a part of it."""

from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial

from mpx.choices import NONE
from mpx.engine.capabilities import PartsUp
from mpx.engine.endpoint import FileInfo
from mpx.engine.file_transfer import FileTransfer
from mpx.engine.passed_sums import PassedSums
from mpx.engine.source_change import opaque
from mpx.engine.stop import Failure
from mpx.errors import DestinationError
from mpx.files.partial_names import is_partial_name, partial_name
from mpx.options import CopyOptions
from mpx.report import Severity
from mpx.transfer.ends import Ends
from mpx.transfer.journal_reader import Unfinished
from mpx.transfer.planner import STARTING_OVER, named_at
from mpx.transfer.records import Records
from mpx.transfer.retrying import RetryingEndpoint
from mpx.transfer.tree_walk import Task
from mpx.units import counted

UNTOLD = f"has no time and no checksum that could show whether it has changed meanwhile; {STARTING_OVER}"


def stays(partial: str, error: DestinationError) -> str:
    """Return the note about a partial file that a server does not let us remove."""
    return f"{partial}, a part of an earlier run, stays at the destination: {error}"


def what_changed(known: Unfinished, info: FileInfo) -> str:
    """Return in which way a source differs from what it was when its copy was interrupted."""
    changes = []
    if known.size_bytes != info.size_bytes:
        now = "unknown now" if info.size_bytes is None else f"{info.size_bytes} now"
        changes.append(f"{counted(known.size_bytes, 'byte')} then, {now}")
    if known.modified_s != info.modified_s:
        changes.append(f"modified {_date(known.modified_s)} then, {_date(info.modified_s)} now")
    if _has_another_tag(known, info):
        changes.append(f"its ETag was {known.tag} and is {info.tag} now")
    return f"has changed since its copy was interrupted ({', '.join(changes)})"


def _has_another_tag(known: Unfinished, info: FileInfo) -> bool:
    return bool(known.tag and info.tag) and opaque(known.tag) != opaque(info.tag)


def _date(time_s: float | None) -> str:
    """Return a time in UTC, with its fraction of a second if it has one."""
    if time_s is None:
        return "at an unknown time"
    try:
        when = datetime.fromtimestamp(time_s, UTC)
    except (ValueError, OverflowError, OSError):  # a year that nobody can write
        return f"at {time_s} s"
    return when.strftime("%Y-%m-%d %H:%M:%S" + (".%f" if when.microsecond else "") + "Z")


class FileStart:
    """Makes a FileTransfer of a task. Used by the scan's thread.

    `prove`: see Supervisor; `checksum_for` returns the checksum that is taken of a file of such a size,
    `of_passed` that of what passes between servers.
    """

    def __init__(
        self,
        ends: Ends,
        options: CopyOptions,
        records: Records,
        failure: Failure,
        *,
        prove: Callable[[FileTransfer], None],
        checksum_for: Callable[[int | None], str],
        of_passed: Callable[[int | None], str],
    ) -> None:
        self._ends, self._options, self._records = ends, options, records
        self._prove, self._checksum_for, self._of_passed = prove, checksum_for, of_passed
        self._destination = RetryingEndpoint(
            ends.destination, options.retries, failure.stopping, ends.reconnecting
        )

    def make(self, task: Task, *, is_in_new_folder: bool) -> FileTransfer:
        """Return what is to be moved of a file; whatever is in its way is removed.

        Raises what the endpoints raise.
        """
        info, ends, journal = task.info, self._ends, self._records.journal
        grows_as = partial_name(task.target, journal.tag, self._options.partial_prefix)
        file = FileTransfer(
            task.source,
            task.target,
            task.target if self._options.in_place else grows_as,
            info,
            streamed=not info.size_bytes,
            sums=self._checksum_for(info.size_bytes),
            folders=ends.folders,
            hole_bytes=info.hole_bytes if ends.writes_here else 0,
        )
        if by := self._of_passed(info.size_bytes):
            file.sums = PassedSums(file.sums.algorithm, by)
        file.trees, file.named = ends.trees, partial(named_at, ends.source, task.source)
        known = journal.unfinished.get(task.target)
        file.was_begun = known is not None
        file.replaces = task.there
        if known and self._options.resume and not file.is_small:
            if why := self._why_not_resumed(known, info):
                self._records.report.note(f"{task.source} {why}", Severity.NOTICE)
            else:
                file.resume(known.arrived)
                ends.let_go()  # what is asked goes over sessions of its own
                self._destination.ask(partial(self._prove, file))
                file.plan()
        in_the_way = not is_in_new_folder if ends.writes_here else known and not file.is_small
        if ends.is_between_servers and not file.is_small:
            in_the_way = True  # its parts are written into what is there, whatever that is
        can = ends.destination.capabilities
        if can.parts_up is PartsUp.NUMBERED or can.stores_anew:
            in_the_way = False  # who sends it sees what is there of an upload, and goes on or begins anew
        if in_the_way and not file.resumed_bytes:
            # A server's STOR empties what is there, without a round trip of its own.
            self._destination.ask(partial(ends.destination.remove, file.partial))
            file.written.forget()
        if known and known.partial != file.partial and is_partial_name(known.partial):
            try:  # it is of a run with another --partial-prefix, or without --in-place
                self._destination.ask(partial(ends.destination.remove, known.partial))
            except DestinationError as error:
                self._records.report.note(stays(known.partial, error), Severity.NOTICE)
        return file

    def _why_not_resumed(self, known: Unfinished, info: FileInfo) -> str:
        """Say why what arrived of a source may not be of what it is now; empty where it is."""
        is_other = (known.size_bytes, known.modified_s) != (info.size_bytes, info.modified_s)
        if is_other or _has_another_tag(known, info):
            return f"{what_changed(known, info)}; {STARTING_OVER}, and what had arrived is discarded"
        if info.modified_s is None and self._checksum_for(info.size_bytes) == NONE:
            return UNTOLD
        return ""
