"""Giving up a copy that was interrupted: what it has begun at the service is cancelled."""

from functools import partial
from typing import TYPE_CHECKING

from mpx.endpoints.globus.service import GlobusService
from mpx.endpoints.globus.task_book import BegunTask, TaskBook
from mpx.endpoints.globus.tasks import TaskOfOthers, found
from mpx.errors import MpxError

if TYPE_CHECKING:
    from globus_sdk import TransferClient


def cancel_tasks_of(key: str, timeout_s: float) -> list[str]:
    """Cancel the tasks of a copy that may still run; return what users are to be told of them, in lines.

    `key`: of the copy, as its journal has it. What cannot be cancelled is told as well, and goes on.
    """
    tasks = TaskBook(key).begun()
    if not tasks:
        return []
    lines = []
    try:
        service = GlobusService(timeout_s)
    except MpxError as error:
        return [f"its tasks at Globus are not cancelled: {error}"]
    for begun in tasks:
        try:
            task_id = service.ask(partial(_cancel, begun), "cancel a task", MpxError, lambda: False)
        except TaskOfOthers as error:
            lines.append(str(error))
        except MpxError as error:
            name = (
                f"Globus task {begun.task_id}" if begun.task_id else f"a Globus task (mpx {begun.submission})"
            )
            lines.append(f"{name} is not cancelled: {error}; app.globus.org/activity cancels it")
        else:
            lines += [f"Globus task {task_id} was cancelled"] if task_id else []
    service.close()
    return lines


def _cancel(begun: BegunTask, client: "TransferClient") -> str:
    """Cancel a task; return its id, or nothing for one that has ended, or was never heard of."""
    state = found(begun, client)
    if state is None or not state.is_active:
        return ""
    client.cancel_task(state.task_id)
    return state.task_id
