"""Events of path sets, as server-sent events."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from mpx_controller.config import LOCAL
from mpx_controller.controller import Controller
from mpx_controller.events import Event

EVENTS: dict[str, Any] = {  # what the description of the interface says
    "description": 'Lines of `data: {"path_set": 7, "what": "rerouted: ..."}`; comments meanwhile.',
    "content": {"text/event-stream": {}},
}
ALIVE_S = 15.0  # between two signs of life of a stream of events


class EventStream(StreamingResponse):
    """The events of an owner's path sets; for callers on the controller's own host, of all."""

    def __init__(self, controller: Controller, owner: str) -> None:
        self._listeners = controller.listeners
        self._queue = self._listeners.add(owner)
        super().__init__(_as_text(self._queue, owner), media_type="text/event-stream")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer until the caller has gone."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._listeners.remove(self._queue)


async def _as_text(queue: "asyncio.Queue[Event]", owner: str) -> AsyncIterator[str]:
    while True:
        try:
            event = await asyncio.wait_for(queue.get(), ALIVE_S)
        except TimeoutError:
            yield ": still here\n\n"
            continue
        if owner in (LOCAL, event.owner):
            yield f"data: {json.dumps({'path_set': event.number, 'what': event.what})}\n\n"
