"""Tasks at the service: submitted once, however often the answer is lost; looked at, and cancelled."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from mpx.choices import NEVER, NONE
from mpx.endpoints.globus.refusals import how_to_log_in
from mpx.endpoints.globus.service import GlobusService, document
from mpx.endpoints.globus.task_book import BegunTask, TaskBook
from mpx.endpoints.globus.task_state import TaskState, state_of, wait_s
from mpx.engine.file_transfer import FileTransfer
from mpx.engine.retry import Retry
from mpx.engine.stop import Failure
from mpx.errors import ConnectionLost, Interrupted, MpxError, TransferTimeout
from mpx.options import CopyOptions
from mpx.text import shown

if TYPE_CHECKING:
    from globus_sdk import TransferClient

CANCEL_S = 10.0  # that the service has to cancel a task, when nobody waits for more
_EVENTS = 10  # the last, that are looked at where there are new faults
_MOST_LISTED = 1000  # tasks of a user that are looked through; 100 wait at most
_MOST_SHOWN = 200  # characters of an event
_MOST_PAGES = 1000  # of the files of a task, which has 2000 at most
_FORBIDDEN = 403
_ALWAYS = "always"
_NEVER_REPLACES, _BY_CONTENT = 0, 3  # levels of synchronisation: what has come meanwhile is kept; or compared
Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class GlobusTasks:
    """The tasks of one copy. For any thread, each of which brings a `retry` of its own."""

    service: GlobusService
    source: str  # collections
    destination: str
    options: CopyOptions
    book: TaskBook
    failure: Failure

    @property
    def verifies(self) -> bool:
        """Whether the service compares what it has copied, by a checksum that collections choose."""
        return self.options.checksum != NONE

    @property
    def replaces(self) -> bool:
        """Whether what is at the destination by now is replaced."""
        return self.options.overwrite != NEVER

    @property
    def may_leave(self) -> bool:
        """Whether what is at the destination may be left: as nothing is replaced, or what is the same."""
        return self.options.overwrite != _ALWAYS

    @property
    def compares(self) -> bool:
        """Whether what is at the destination is left where it is the same by its content."""
        return self.options.overwrite not in (_ALWAYS, NEVER)

    @property
    def how(self) -> str:
        """What has to be the same for a task of an earlier run to do what this one is asked for."""
        kept = self.options.overwrite, self.verifies, self.options.encrypt
        return "overwrite {}, verify {}, encrypt {}".format(*kept)

    def prepare(self, files: Sequence[FileTransfer], retry: Retry) -> BegunTask:
        """Return what is to be submitted for files; it is noted, as it may run before that is known."""
        what = f"submit a task for {self.source} to {self.destination}"
        submission = self._ask(lambda client: _id(document(client.get_submission_id()), "value"), what, retry)
        return self.book.begin(submission, files, self.how)

    def submit(
        self, begun: BegunTask, files: Sequence[FileTransfer], retry: Retry, *, is_ours: bool
    ) -> BegunTask:
        """Have files copied by one task; `is_ours`: what is there has been left by others of this copy."""
        what, submission = f"submit a task for {self.source} to {self.destination}", begun.submission

        asked = 0

        def submit(client: "TransferClient") -> str:
            nonlocal asked
            asked += 1
            return _id(
                document(client.submit_transfer(self._data(submission, files, is_ours=is_ours))), "task_id"
            )

        try:
            task_id = self._ask(submit, what, retry)
        except MpxError as error:
            # Else it may run, by an answer that was lost or that nobody waits for, and the next run finds it.
            if not error.may_retry and asked == 1 and not isinstance(error, Interrupted):
                self.book.ended(submission)
            raise
        return self.book.started(submission, task_id)

    def _data(self, submission: str, files: Sequence[FileTransfer], *, is_ours: bool) -> Any:
        from globus_sdk import MISSING, TransferData

        level = {_ALWAYS: MISSING, NEVER: _NEVER_REPLACES}.get(self.options.overwrite, _BY_CONTENT)
        if level == _NEVER_REPLACES and is_ours:
            level = _BY_CONTENT
        data = TransferData(
            self.source,
            self.destination,
            label=_label(submission),
            submission_id=submission,
            sync_level=level,
            verify_checksum=self.verifies,
            preserve_timestamp=True,
            encrypt_data=self.options.encrypt,
            skip_source_errors=True,  # else one file that cannot be read keeps all others waiting
            fail_on_quota_errors=True,
            notify_on_succeeded=False,
            notify_on_failed=False,
        )
        for file in files:
            data.add_item(file.source, file.final)
        return data

    def state(self, task_id: str, retry: Retry) -> TaskState:
        """Look at a task."""
        what = f"look at the task {task_id}"
        return self._ask(lambda client: state_of(document(client.get_task(task_id)), task_id), what, retry)

    def find(self, begun: BegunTask, retry: Retry) -> TaskState | None:
        """Look for a task that an earlier run has begun; None where there is none. Raises TaskOfOthers."""
        return self._ask(partial(found, begun), "look for a task of an earlier run", retry)

    def faults(self, task_id: str, retry: Retry) -> list[tuple[str, str]]:
        """Return what has gone wrong last, the latest first, as codes and in words."""

        def look(client: "TransferClient") -> list[tuple[str, str]]:
            told = document(client.task_event_list(task_id, limit=_EVENTS))["DATA"]
            return [_event(each) for each in told if each.get("is_error") is True]

        return self._ask(look, f"look at the events of the task {task_id}", retry)

    def copied(self, task_id: str, retry: Retry) -> set[str]:
        """Return the names at the destination of what a task has copied that has ended."""
        pages = self._pages("task_successful_transfers", task_id, retry)
        return {name for each in pages if isinstance(name := each.get("destination_path"), str)}

    def skipped(self, task_id: str, retry: Retry) -> dict[str, str]:
        """Return the sources that a task could not read, and why."""
        pages = self._pages("task_skipped_errors", task_id, retry)
        return {
            str(each.get("source_path")): shown(str(each.get("error_code"))[:_MOST_SHOWN]) for each in pages
        }

    def _pages(self, method: str, task_id: str, retry: Retry) -> list[Mapping[str, Any]]:
        found: list[Mapping[str, Any]] = []
        given: dict[str, str] = {}
        markers = set[str]()

        def look(client: "TransferClient") -> Mapping[str, Any]:
            return document(getattr(client, method)(task_id, **given))

        while True:
            told = self._ask(look, f"look at the files of the task {task_id}", retry)
            found += [each for each in told.get("DATA") or () if isinstance(each, dict)]
            marker = told.get("next_marker")
            if not isinstance(marker, str) or not marker:
                return found
            if marker in markers or len(markers) >= _MOST_PAGES:
                raise ConnectionLost(f"Globus tells of the files of the task {task_id} without an end")
            markers.add(marker)
            given = {"marker": marker}

    def end(self, begun: BegunTask, retry: Retry) -> TaskState:
        """Cancel a task of an earlier run, and wait until it writes nothing any more; raises MpxError.

        Returns how it has ended.
        """
        what, began_s = f"cancel the task {begun.task_id}", time.monotonic()
        self._ask(lambda client: client.cancel_task(begun.task_id), what, retry)
        while (state := self.state(begun.task_id, retry)).is_active:
            elapsed_s = time.monotonic() - began_s
            if elapsed_s > self.options.timeout_s:
                raise TransferTimeout(f"Globus task {begun.task_id} was cancelled, and does not end")
            if self.failure.cancel.wait(wait_s(elapsed_s)):
                raise Interrupted
        return state

    def cancel(self, begun: BegunTask) -> str:
        """Cancel a task, with little patience; raises what keeps it from that.

        Returns its id, or nothing for one that was never heard of.
        """
        until_s = time.monotonic() + CANCEL_S

        def cancel(client: "TransferClient") -> str:
            if task_id := begun.task_id or _labelled(client, begun):
                client.cancel_task(task_id)
            return task_id

        return self.service.ask(cancel, "cancel a task", MpxError, lambda: time.monotonic() > until_s)

    def _ask(self, question: Callable[["TransferClient"], Answer], what: str, retry: Retry) -> Answer:
        """Ask, and again where the service is not reached or busy: what it does goes on meanwhile."""
        while True:
            try:
                answer = self.service.ask(question, what, MpxError, self.failure.cancel.is_set)
            except (ConnectionLost, TransferTimeout) as error:
                retry.again(error)
            else:
                retry.progressed()
                return answer


class TaskOfOthers(MpxError):
    """A task of an earlier run belongs to another identity: nothing can be asked of it, nor done about it."""

    def __init__(self, task_id: str) -> None:
        super().__init__(
            f"Globus task {task_id} of an earlier run belongs to another identity, and may still write the "
            "same files; cancel it at app.globus.org/activity as the one who began it"
        )


def found(begun: BegunTask, client: "TransferClient") -> TaskState | None:
    """Look for a task, by its label where its id is not known; None where there is none.

    Raises TaskOfOthers.
    """
    from globus_sdk import GlobusAPIError

    task_id = begun.task_id or _labelled(client, begun)
    try:
        return state_of(document(client.get_task(task_id)), task_id) if task_id else None
    except GlobusAPIError as error:
        if error.http_status == 404:
            return None
        if error.http_status == _FORBIDDEN and not how_to_log_in(error):
            raise TaskOfOthers(task_id) from None
        raise


def _label(submission: str) -> str:
    return f"mpx {submission}"


def _labelled(client: "TransferClient", begun: BegunTask) -> str:
    """Return the id of a task whose submission was not answered; empty where there is none."""
    some = document(client.task_list(limit=_MOST_LISTED, orderby="request_time DESC"))["DATA"]
    return next((each["task_id"] for each in some if each.get("label") == _label(begun.submission)), "")


def _id(told: Mapping[str, Any], name: str) -> str:
    found = told.get(name)
    if not isinstance(found, str) or not found or len(found) > _MOST_SHOWN:
        raise ConnectionLost(f"Globus answers without {name}")
    return found


def _event(told: Mapping[str, Any]) -> tuple[str, str]:
    details = told.get("details")
    words = (str(told.get("description") or ""), details if isinstance(details, str) else "")
    text = " ".join(": ".join(filter(None, words)).split())
    return shown(str(told.get("code"))[:_MOST_SHOWN]), shown(text[:_MOST_SHOWN])
