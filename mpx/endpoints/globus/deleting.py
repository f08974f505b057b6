"""Removing a file of a collection: a task of its own at the service, as there is no other way."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from mpx.endpoints.globus.access import GlobusAccess
from mpx.endpoints.globus.service import document
from mpx.endpoints.globus.task_state import state_of, wait_s
from mpx.endpoints.globus.task_watch import TaskWatch
from mpx.errors import Interrupted, MpxError, TransferTimeout

if TYPE_CHECKING:
    from globus_sdk import TransferClient

_LOOK_S = 0.1  # at whether nobody waits any more


def delete(access: GlobusAccess, name: str, kind: type[MpxError], stop: Callable[[], bool]) -> None:
    """Remove a file; a missing one is fine."""
    what = f"remove globus://{access.collection}{name}"

    def submit(client: "TransferClient") -> str:
        from globus_sdk import DeleteData

        data = DeleteData(access.collection, label="mpx", ignore_missing=True, notify_on_succeeded=False)
        data.add_item(name)
        return str(document(client.submit_delete(data))["task_id"])

    task_id = access.service.ask(submit, what, kind, stop)
    watch, began_s = TaskWatch(access.timeout_s), time.monotonic()
    looked_s = began_s
    while True:
        state = access.service.ask(
            lambda client: state_of(document(client.get_task(task_id))), what, kind, stop
        )
        if not state.is_active:
            break
        watch.observe(looked_s, state)
        in_vain = watch.why_in_vain(looked_s, state)
        if in_vain or looked_s - began_s > access.timeout_s:
            access.service.ask(lambda client: client.cancel_task(task_id), what, kind, stop)
            raise in_vain or TransferTimeout(
                f"cannot {what}: Globus task {task_id} takes too long: {state.why}"
            )
        looked_s += wait_s(looked_s - began_s)
        while time.monotonic() < looked_s:
            if stop():
                raise Interrupted
            time.sleep(_LOOK_S)
    access.changed()
    if not state.is_done:
        raise kind(f"cannot {what}: {state.why}")
