"""Removing a file of a collection: a task of its own at the service, as there is no other way."""

import contextlib
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from mpx.endpoints.globus.access import GlobusAccess
from mpx.endpoints.globus.service import document
from mpx.endpoints.globus.task_state import TaskState, state_of, wait_s
from mpx.endpoints.globus.task_watch import TaskWatch
from mpx.endpoints.globus.tasks import CANCEL_S
from mpx.errors import Interrupted, MpxError, TransferTimeout

if TYPE_CHECKING:
    from globus_sdk import TransferClient

_LOOK_S = 0.1  # at whether nobody waits any more


def delete(access: GlobusAccess, name: str, kind: type[MpxError], stop: Callable[[], bool]) -> None:
    """Remove a file; a missing one is fine.

    A task whose end was not seen is waited for before: else it would remove what gets this name next.
    """
    what = f"remove globus://{access.collection}{name}"
    if before := access.begun_delete(name):
        _ended(access, name, before, what, kind, stop)
    submission = access.service.ask(
        lambda client: str(document(client.get_submission_id())["value"]), what, kind, stop
    )
    access.note_delete(name, submission)
    state = _ended(access, name, submission, what, kind, stop)
    access.note_delete(name, None)
    access.changed()
    if not state.is_done:
        raise kind(f"cannot {what}: {state.why}")


def _ended(
    access: GlobusAccess,
    name: str,
    submission: str,
    what: str,
    kind: type[MpxError],
    stop: Callable[[], bool],
) -> TaskState:
    """Submit a task, which runs once however often that is done, and return how it has ended."""

    def submit(client: "TransferClient") -> str:
        from globus_sdk import DeleteData

        data = DeleteData(
            access.collection,
            label="mpx",
            submission_id=submission,
            ignore_missing=True,
            notify_on_succeeded=False,
        )
        data.add_item(name)
        return str(document(client.submit_delete(data))["task_id"])

    task_id = access.service.ask(submit, what, kind, stop)
    watch, began_s = TaskWatch(access.timeout_s), time.monotonic()
    looked_s = began_s
    while True:
        state = access.service.ask(
            lambda client: state_of(document(client.get_task(task_id)), task_id), what, kind, stop
        )
        if not state.is_active:
            return state
        watch.observe(looked_s, state)
        in_vain = watch.why_in_vain(looked_s, state)
        if in_vain or looked_s - began_s > access.timeout_s:
            _cancel(access, task_id, what, stop)
            raise in_vain or TransferTimeout(
                f"cannot {what}: Globus task {task_id} takes too long: {state.why}"
            )
        looked_s += wait_s(looked_s - began_s)
        while time.monotonic() < looked_s:
            if stop():
                _cancel_soon(access, task_id, what)
                raise Interrupted
            time.sleep(_LOOK_S)  # whoever stops us is asked, and tells of no event


def _cancel(access: GlobusAccess, task_id: str, what: str, stop: Callable[[], bool]) -> None:
    access.service.ask(lambda client: client.cancel_task(task_id), what, MpxError, stop)


def _cancel_soon(access: GlobusAccess, task_id: str, what: str) -> None:
    """Cancel a task that nobody waits for any more, with little patience; best effort."""
    until_s = time.monotonic() + CANCEL_S
    with contextlib.suppress(MpxError):
        _cancel(access, task_id, what, lambda: time.monotonic() > until_s)
