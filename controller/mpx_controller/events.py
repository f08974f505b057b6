"""Events of path sets, and their listeners."""

import asyncio
from dataclasses import dataclass

from mpx_controller.errors import TooMany

MOST_LISTENERS, MOST_EVENTS = 64, 1000  # of one owner, and that wait for one of them


@dataclass(frozen=True)
class Event:
    """Something that has happened to a path set."""

    number: int
    owner: str
    what: str


class Listeners:
    """The event queues of the present listeners."""

    def __init__(self) -> None:
        self._owners: dict[asyncio.Queue[Event], str] = {}

    def add(self, owner: str) -> "asyncio.Queue[Event]":
        """Return a queue of what happens from now on; the oldest is dropped where it is not read.

        Raises TooMany where that owner has as many as it may.
        """
        if sum(by == owner for by in self._owners.values()) >= MOST_LISTENERS:
            raise TooMany(f"{owner} has {MOST_LISTENERS} event streams, the maximum; end some")
        queue: asyncio.Queue[Event] = asyncio.Queue(MOST_EVENTS)
        self._owners[queue] = owner
        return queue

    def remove(self, queue: "asyncio.Queue[Event]") -> None:
        """Stop filling this queue."""
        self._owners.pop(queue, None)

    def tell(self, event: Event) -> None:
        """Put an event into all queues."""
        for queue in self._owners:
            if queue.full():
                queue.get_nowait()
            queue.put_nowait(event)
