"""Opens a file of a server of XRootD, and refuses one that the server leads elsewhere.

The library follows a server that says that a file is one of this host, and reads or writes that. So none is
opened in a way that empties it (`OpenFlags.DELETE`): it is cut once it is known where it is.
"""

import threading
from collections.abc import Callable
from functools import partial
from typing import Any

from XRootD import client
from XRootD.client.flags import AccessMode, OpenFlags

from mpx.endpoints.sftp.wire import Code, Open, Status
from mpx.endpoints.xrootd import meaning

OPEN_TRIES, OPEN_AGAIN_S = 10, 2.0
_FILE_MODE = AccessMode.UR | AccessMode.UW | AccessMode.GR | AccessMode.OR
_OF_XROOTD = ("root", "roots", "xroot", "xroots")

Done = Callable[[Any, Status | None], None]  # the file, or why there is none
Refused = Callable[[Any], Status]  # of what the library says


class FileOpening:
    """One file that is to be opened; `done` is called by a thread of the library, or before `begin` returns.

    One that is open for another client may be so for one that was lost a moment ago: it is tried again.
    """

    def __init__(self, url: str, asked: int, refused: Refused, done: Done) -> None:
        """`asked`: flags of SFTP."""
        self._url, self._refused, self._done = url, refused, done
        self._empties = bool(asked & Open.TRUNCATE)
        ways: tuple[int, ...] = (OpenFlags.READ,)
        if asked & Open.WRITE:
            ways = (OpenFlags.UPDATE, OpenFlags.NEW) if asked & Open.CREATE else (OpenFlags.UPDATE,)
        self._ways = ways[::-1] if self._empties else ways  # what is stored whole is new, mostly
        self._first: Status | None = None  # the refusal of the first way

    def begin(self, tries: int = OPEN_TRIES) -> None:
        """Have it opened."""
        flags, *_ = self._ways
        file = client.File()
        try:
            status = file.open(self._url, flags, _FILE_MODE, callback=partial(self._opened, file, tries))
        except (ValueError, TypeError) as error:
            self._done(None, meaning.not_taken(error))
        else:
            if not status.ok:  # it has not even begun
                self._done(None, self._refused(status))

    def _opened(self, file: Any, tries: int, status: Any, _found: Any, hosts: Any) -> None:
        """Take what became of it. `hosts`: that it was led to."""
        urls = [str(each.url) for each in hosts or ()]
        if refusal := astray(file) if status.ok else _astray(*urls[-1:]):
            if status.ok:
                file.close(callback=lambda *_: file)  # which is to live as long
            self._done(None, refusal)
        elif not status.ok:
            is_locked = status.code == meaning.ERROR_RESPONSE and status.errno == meaning.LOCKED
            if is_locked and tries > 1:
                threading.Timer(OPEN_AGAIN_S, self.begin, (tries - 1,)).start()
            else:
                self._not_opened(self._refused(status))
        elif self._empties and self._ways[0] == OpenFlags.UPDATE:
            self._cut(file)
        else:
            self._done(file, None)

    def _not_opened(self, reply: Status) -> None:
        """Try the other way: of a file that is missing or, as it seems, there."""
        is_missing = reply.code == Code.NO_SUCH_FILE
        may_be_other = reply.code == Code.FAILURE if self._ways[0] == OpenFlags.NEW else is_missing
        if len(self._ways) > 1 and may_be_other:
            self._first, self._ways = reply, self._ways[1:]
            self.begin()
        else:
            self._done(None, self._first if self._first and self._empties and is_missing else reply)

    def _cut(self, file: Any) -> None:
        def cut(status: Any, _found: Any, _hosts: Any) -> None:
            refusal = astray(file) if status.ok else self._refused(status)
            if refusal is not None:
                file.close(callback=lambda *_: file)
            self._done(None if refusal else file, refusal)

        status = file.truncate(0, callback=cut)
        if not status.ok:
            cut(status, None, None)


def astray(file: Any) -> Status | None:
    """Return the refusal of an open file that is no server's any more: one may lead elsewhere at any time."""
    return _astray(str(file.get_property("LastURL")))


def _astray(url: str = "") -> Status | None:
    scheme, found, _ = url.partition("://")
    if not found or scheme in _OF_XROOTD:
        return None
    return Status(Code.PERMISSION_DENIED, meaning.ASTRAY)
