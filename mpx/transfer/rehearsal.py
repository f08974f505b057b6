"""A dry run: says what a copy would do, and does nothing of it."""

from collections.abc import Callable, Sequence

from mpx.engine.endpoint import Endpoint, Kind
from mpx.engine.stop import Failure
from mpx.errors import MpxError
from mpx.location import shown_place
from mpx.options import CopyOptions
from mpx.report import Report, Severity
from mpx.transfer.destination_lookup import decide
from mpx.transfer.empty_folders import EmptyFolders
from mpx.transfer.ends import Ends
from mpx.transfer.planner import grouped
from mpx.transfer.retrying import RetryingEndpoint
from mpx.transfer.scan import Pair, tasks
from mpx.transfer.sent_notes import SentNotes
from mpx.transfer.tree_walk import Task
from mpx.units import format_size


def rehearse(
    pairs: Sequence[Pair],
    ends: Ends,
    options: CopyOptions,
    failure: Failure,
    report: Report,
    say: Callable[[str], None],
) -> MpxError | None:
    """Say what would be done, line by line; return the first error. Raises Interrupted."""
    source = RetryingEndpoint(ends.source, options.retries, failure.by_user)
    destination = RetryingEndpoint(ends.destination, options.retries, failure.by_user)
    listed = tasks(pairs, source, options, note=report.note)
    notes = SentNotes(ends.destination.location, ends.server_url)
    first_error: MpxError | None = None
    empty_folders, keeps_folders = EmptyFolders(ends.destination), ends.destination.capabilities.keeps_folders
    for group in grouped(listed):
        for task in group:
            empty_folders.saw(task)
        for task in decide(group, source, destination, options, notes=notes):
            failure.check_user()
            if task.info.kind is not Kind.FOLDER or keeps_folders or task.error or task.skip:
                say(_line(task, report, ends))
            first_error = first_error or task.error
    if left_out := empty_folders.note:
        report.note(left_out, Severity.NOTICE)
    return first_error


def _line(task: Task, report: Report, ends: Ends) -> str:
    """Count one thing that would be done, and say so in a line: of a server by its URL."""
    size_bytes = task.info.known_bytes
    source, target = _place(ends.source, task.source), _place(ends.destination, task.target)
    if task.error:
        report.begin(size_bytes)
        report.failed(task.source, str(task.error), size_bytes)
        return f"cannot copy {source}: {task.error}"
    if task.skip:
        report.skip(task.source, task.skip, size_bytes)
        return f"would skip {source}: {task.skip}"
    if task.info.kind is Kind.FOLDER:
        return f"would copy the folder {source} to {target}"
    report.begin(size_bytes)
    size = "size unknown" if task.info.size_bytes is None else format_size(size_bytes)
    return f"would copy {source} to {target}, {size}"


def _place(end: Endpoint, name: str) -> str:
    return shown_place(str(end.location.at(name)))
