"""Removing a file of a collection: a task of its own at the service, as there is no other way."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from mpx.endpoints.globus.access import GlobusAccess
from mpx.endpoints.globus.service import document
from mpx.endpoints.globus.task_state import ACTIVE, state_of, wait_s
from mpx.errors import ConnectionLost, Interrupted, MpxError

if TYPE_CHECKING:
    from globus_sdk import TransferClient


def delete(access: GlobusAccess, name: str, kind: type[MpxError], stop: Callable[[], bool]) -> None:
    """Remove a file; a missing one is fine."""
    import time

    from globus_sdk import DeleteData

    what = f"remove globus://{access.collection}{name}"

    def submit(client: "TransferClient") -> Mapping[str, Any]:
        data = DeleteData(
            access.collection, label="mpx", ignore_missing=True, recursive=False, notify_on_succeeded=False
        )
        data.add_item(name)
        return document(client.submit_delete(data))

    task_id = str(access.service.ask(submit, what, kind, stop)["task_id"])
    began_s = time.monotonic()
    while True:
        told = access.service.ask(lambda client: document(client.get_task(task_id)), what, kind, stop)
        state = state_of(told)
        if state.status not in ACTIVE:
            break
        pause_s = wait_s(time.monotonic() - began_s)
        until_s = time.monotonic() + pause_s
        while (left_s := until_s - time.monotonic()) > 0:
            if stop():
                raise Interrupted
            time.sleep(min(0.1, left_s))
    if not state.is_done:
        raise kind(f"cannot {what}: {state.why}")
    if state.is_done is None:
        raise ConnectionLost(f"cannot {what}")
