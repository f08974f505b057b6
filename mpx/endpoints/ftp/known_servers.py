"""How servers took a login in earlier runs: in one write, which goes out before the greeting then, or not.

The first saves each session a round trip; to know the others saves a session that is lost, or 5 s of silence.
Another server may have the address later, so what was seen is believed for some weeks; a server that does not
take a login in one write is tried again after a day. Best effort: where nothing can be read or kept, every
session waits for its greeting, and then sends its login in one write.
"""

import contextlib
import fcntl
import json
import math
import os
import threading
import time
from collections.abc import Callable, Sequence
from enum import StrEnum

from mpx.errors import UsageError
from mpx.files.state_folder import StateFolder

TAKEN_S, REFUSED_S = 30 * 86400.0, 86400.0  # so long what was seen counts: of EARLY, of others
AGAIN_S = 86400.0  # what was seen is not written again before
MOST = 1000  # servers, those that were seen last
_MOST_BYTES = 256 * 1024
_LATEST_S = 1e12  # no clock says more
_NAME = "servers.json"

Server = tuple[str, int]  # its address and port


class Login(StrEnum):
    """How a server takes a login. The words are those of the file."""

    EARLY = "takes a login before its greeting"
    LATE = "takes a login after its greeting"
    STEPS = "takes a login one command after the other"
    SINGLE = "takes one command at a time"


_WORDS = [each.value for each in Login]  # a list, as what is looked for may not be hashable
_Seen = dict[str, tuple[float, Login]]  # by server: when it was, and how it took the login


class KnownServers:
    """What is known of servers from earlier runs and from this one. Safe for several threads and processes.

    `now_s` tells the time in seconds since 1970.
    """

    def __init__(self, now_s: Callable[[], float] = time.time) -> None:
        self._now_s = now_s
        self._lock = threading.Lock()
        self._seen: _Seen | None = None  # None: not read yet
        self._early: set[Server] = set()  # those that took a login before their greeting in this run

    def takes_early(self, server: Server) -> bool:
        """Tell whether a server may be sent a login before it has greeted us."""
        with self._lock:
            seen_s, how = self._known().get(_key(server), (-math.inf, Login.LATE))
            return how is Login.EARLY and 0 <= self._now_s() - seen_s < TAKEN_S

    def is_slow(self, server: Server) -> Login | None:
        """Return STEPS or SINGLE for a server that takes no login in one write; None: it may."""
        with self._lock:
            seen_s, how = self._known().get(_key(server), (-math.inf, Login.LATE))
            is_new = 0 <= self._now_s() - seen_s < REFUSED_S
            return how if is_new and how in (Login.STEPS, Login.SINGLE) else None

    def took_early(self, server: Server) -> None:
        """Note that a server took a login before its greeting: if it refuses the next one it is full."""
        with self._lock:
            self._early.add(server)

    def has_taken_early(self, server: Server) -> bool:
        """Tell whether it did so in this run."""
        with self._lock:
            return server in self._early

    def saw(self, server: Server, how: Login) -> None:
        """Note how a server took a login; EARLY also of one in one write that went out after the greeting."""
        with self._lock:
            seen, now_s = self._known(), self._now_s()
            before_s, how_before = seen.get(_key(server), (-math.inf, how))
            age_s = now_s - before_s
            if how is Login.EARLY and how_before is not Login.EARLY and 0 <= age_s < REFUSED_S:
                return
            if how is how_before and 0 <= age_s < AGAIN_S:
                return
            seen[_key(server)] = (now_s, how)
            with contextlib.suppress(OSError, UsageError), StateFolder() as folder:
                _keep(folder, _key(server), now_s, how)

    def _known(self) -> _Seen:
        if self._seen is None:
            self._seen = {}
            with contextlib.suppress(OSError, UsageError):
                self._seen = _read_file()
        return self._seen


def everything() -> Sequence[tuple[str, float, str]]:
    """Return what is known: servers, when each was seen (seconds since 1970), and how it takes a login.

    Raises OSError, UsageError.
    """
    return [(server, seen_s, how.value) for server, (seen_s, how) in _read_file().items()]


def forget() -> int:
    """Forget all that is known of servers; return of how many it was. Raises OSError, UsageError."""
    count = len(_read_file())
    with StateFolder() as folder:
        folder.unlink(_NAME)
    return count


def _read_file() -> _Seen:
    with StateFolder() as folder:
        try:
            fd = folder.open(_NAME, os.O_RDONLY)
        except FileNotFoundError:
            return {}
        with contextlib.closing(os.fdopen(fd, "rb")) as file:
            return _read(file.read(_MOST_BYTES))


def _key(server: Server) -> str:
    return f"{server[0]} {server[1]}"


def _keep(folder: StateFolder, key: str, now_s: float, how: Login) -> None:
    """Write one server into the file, among those of other runs; raises OSError, where one writes now."""
    fd = folder.open(_NAME, os.O_RDWR | os.O_CREAT)
    with contextlib.closing(os.fdopen(fd, "r+b")) as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        seen = _read(file.read(_MOST_BYTES))
        seen[key] = (now_s, how)
        last = sorted(seen, key=lambda each: seen[each][0])[-MOST:]
        file.seek(0)
        file.write(json.dumps({each: seen[each] for each in last}).encode())
        file.truncate()


def _read(data: bytes) -> _Seen:
    """Return what a file holds; of a damaged one what is whole in it."""
    try:
        stored = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(stored, dict):
        return {}
    return {
        server: (float(each[0]), Login(each[1]))
        for server, each in stored.items()
        if isinstance(each, list)
        and len(each) == 2
        and isinstance(each[0], (int, float))
        and 0 <= each[0] < _LATEST_S
        and each[1] in _WORDS
    }
