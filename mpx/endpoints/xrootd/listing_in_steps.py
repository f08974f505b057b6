"""What is in a folder of XRootD, told in steps as it comes.

Each name takes 3.5 kB as objects of the library's binding. So they are not held until all are there: servers
send some eighty at a time, and what came is a tenth of that until it is asked for. The library hands out one
such part after the other, in order. At a cluster's head it does not: it asks all its servers, and brings
what they have at once, with 3.5 kB for each name. It says no more than that a part of them has not listed it:
mostly they have no such folder, so each is asked by itself then, and any other reason is a refusal.
"""

import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from XRootD.client.flags import DirListFlags

from mpx.endpoints.sftp.served.server import Answer
from mpx.endpoints.sftp.wire import Attributes, Code, FolderEntry, Names, Reply, Status
from mpx.endpoints.xrootd import meaning
from mpx.endpoints.xrootd.cluster_listing import listed
from mpx.endpoints.xrootd.replacing import Replacing

NAMES_AT_ONCE = 500
_OF_ALL = DirListFlags.STAT | DirListFlags.LOCATE | DirListFlags.MERGE  # of each server of a cluster
_IN_STEPS = DirListFlags.STAT | DirListFlags.CHUNKED
_CONTINUES = 1  # XrdCl::suContinue: more is to come
_END = Status(Code.EOF)

Opened = Callable[[Status | None], None]  # with what was refused


class ListingInSteps:
    """For any thread: names come in threads of the library, and are asked for by another."""

    def __init__(self, refused: Callable[[Any], Status], opened: Opened) -> None:
        """`refused` says what the library's status means; `opened` is called once."""
        self._refused, self._opened = refused, opened
        self._lock = threading.Lock()  # of all below
        self._is_open = self._is_closed = False
        self._entries: deque[FolderEntry] = deque()  # that were not asked for yet
        self._waiting: deque[Answer] = deque()  # that have asked for more than there is yet
        self._end: Status | None = None  # what follows the entries, once that is known

    def read(self, server: Any, name: str, replacing: Replacing) -> None:
        """Have a folder listed; may wait for its server, and for all of it."""
        try:
            if replacing.leads:  # with a callback the library lists one server of it, which may have none
                status, found = server.dirlist(name, _OF_ALL)
                if status.ok and status.code != meaning.WHOLE:
                    status, found = listed(server, name, replacing)
                self._take(status, found)
                return
            status = server.dirlist(name, _IN_STEPS, callback=self._take)
        except Exception as error:
            self.fail(error)
        else:
            if not status.ok:  # it has not even begun
                self._take(status, None)

    def next(self, answer: Answer) -> None:
        """Answer with the next names, as soon as there are some."""
        with self._lock:
            self._waiting.append(answer)
            replies = self._replies()
        for each, reply in replies:
            each(reply)

    def fail(self, error: BaseException) -> None:
        """Note that a part of it was lost: the binding calls nobody with names that are no UTF-8."""
        self._take(meaning.Failed(f"what XRootD answers cannot be read: {error}"), None)

    @property
    def is_ended(self) -> bool:
        """Whether all of it has come."""
        return self._end is not None

    def close(self) -> None:
        """Hold nothing of what is still to come."""
        with self._lock:
            self._is_closed = True
            self._entries.clear()

    def _take(self, status: Any, found: Any, _hosts: Any = None) -> None:
        """Take a part of it, or why there is none."""
        entries: list[FolderEntry] = []
        end = _END if status.ok and status.code != _CONTINUES else None
        try:
            if status.ok:
                entries = [_entry(each) for each in found or ()]
            else:
                end = self._refused(status)
        except Exception as error:
            end = Status(Code.FAILURE, f"what XRootD answers cannot be read: {error}")
        with self._lock:
            is_first, self._is_open = not self._is_open, True
            if not self._is_closed:
                self._entries.extend(entries)
            self._end = self._end or end
            replies = self._replies()
        if is_first:
            self._opened(None if end in (None, _END) else end)
        for answer, reply in replies:
            answer(reply)

    def _replies(self) -> list[tuple[Answer, Reply]]:
        """Return what can be answered now; called with the lock held."""
        replies: list[tuple[Answer, Reply]] = []
        while self._waiting and (self._entries or self._end):
            some = [self._entries.popleft() for _ in range(min(NAMES_AT_ONCE, len(self._entries)))]
            reply = Names(tuple(some)) if some else self._end
            assert reply is not None
            replies.append((self._waiting.popleft(), reply))
        return replies


def _entry(found: Any) -> FolderEntry:
    told = meaning.told_attributes(found.statinfo) if found.statinfo else Attributes()
    return FolderEntry(found.name.encode("utf-8", "surrogateescape"), told)
