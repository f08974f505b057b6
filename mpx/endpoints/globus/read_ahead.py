"""Folders that are listed before they are asked for: those that a walk through a tree comes to next.

A listing takes the service some tenths of a second at least, however short it is; it answers several at once.
"""

import posixpath
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, TypeVar

from mpx.errors import MpxError

AT_ONCE = 4  # of 20 requests a second that the service takes of a user
_MOST_KNOWN = 20_000  # folders that a walk has seen and not come to
Page = TypeVar("Page")


class FolderReadAhead(Generic[Page]):
    """For one thread, that walks depth first, and begins with the folder that it has seen last.

    `ask`: lists a folder, given what tells that nobody waits for that any more; called by threads of its own,
    too.
    """

    def __init__(self, ask: Callable[[str, Callable[[], bool]], Page], at_once: int = AT_ONCE) -> None:
        self._ask, self._at_once = ask, at_once
        self._seen: deque[str] = deque(maxlen=_MOST_KNOWN)
        self._begun: dict[str, Future[Page]] = {}
        self._pool: ThreadPoolExecutor | None = None
        self._closed = threading.Event()

    def page(self, folder: str) -> Page:
        """Return the listing of a folder, begun before or not; raises what `ask` raises."""
        name = folder.rstrip("/")
        is_walk = bool(self._seen) and (self._seen[-1] == name or name in self._seen)
        while is_walk and self._seen.pop() != name:
            pass  # the walk has left those out
        begun = self._begun.pop(name, None)
        if is_walk:
            self._begin()
        if begun is not None:
            try:
                return begun.result()
            except MpxError:
                pass  # it is asked once more, by who can try again
        return self._ask(folder, lambda: False)

    def found(self, folder: str, names: Sequence[str]) -> None:
        """Take which folders are in one that was listed."""
        self._seen.extend(posixpath.join(folder.rstrip("/") or "/", name) for name in names)

    def _begin(self) -> None:
        """Begin to list those that come next, in the place of those that come later."""
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._at_once, "mpx-globus-listing")
        following = [self._seen[-1 - i] for i in range(min(self._at_once, len(self._seen)))]
        for name in [name for name in self._begun if name not in following]:
            self._begun.pop(name).cancel()
        for name in following:
            if name not in self._begun:
                self._begun[name] = self._pool.submit(self._ask, name, self._closed.is_set)

    def close(self) -> None:
        """Begin nothing any more, and end what is under way: else a process waits for that at its end."""
        self._seen.clear()
        self._begun.clear()
        if self._pool is not None:
            self._closed.set()
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool, self._closed = None, threading.Event()


def each(calls: Sequence[Callable[[], Page]], at_once: int = AT_ONCE) -> list[Page]:
    """Return what calls return, several of which are made at once; raises what the first of them raises."""
    if len(calls) < 2:
        return [call() for call in calls]
    with ThreadPoolExecutor(min(at_once, len(calls)), "mpx-globus-several") as pool:
        return [begun.result() for begun in [pool.submit(call) for call in calls]]
