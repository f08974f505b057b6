"""Which servers took a login in one write in earlier runs: these are sent it before they have greeted us.

That saves each session a round trip. Another server may have the address later, so it is believed for some
weeks; one that did not take it is asked again after a day. Best effort: where nothing can be read or kept,
every session waits for its greeting.
"""

import contextlib
import fcntl
import json
import math
import os
import threading
import time
from collections.abc import Callable

from mpx.errors import UsageError
from mpx.files.state_folder import StateFolder

TAKEN_S, REFUSED_S = 30 * 86400.0, 86400.0  # so long what was seen counts
AGAIN_S = 86400.0  # what was seen is not written again before
MOST = 1000  # servers, those that were seen last
_MOST_BYTES = 256 * 1024
_LATEST_S = 1e12  # no clock says more
_NAME = "servers.json"

Server = tuple[str, int]  # its address and port
_Seen = dict[str, tuple[float, bool]]  # by server: when it was, and whether it took the login


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
            seen_s, took = self._known().get(_key(server), (-math.inf, False))
            return took and 0 <= self._now_s() - seen_s < TAKEN_S

    def took_early(self, server: Server) -> None:
        """Note that a server took a login before its greeting: if it refuses the next one it is full."""
        with self._lock:
            self._early.add(server)

    def has_taken_early(self, server: Server) -> bool:
        """Tell whether it did so in this run."""
        with self._lock:
            return server in self._early

    def saw(self, server: Server, *, took: bool) -> None:
        """Note whether a server took a login in one write, or before its greeting where it was sent so."""
        with self._lock:
            seen, now_s = self._known(), self._now_s()
            before_s, took_before = seen.get(_key(server), (-math.inf, took))
            age_s = now_s - before_s
            if took and not took_before and 0 <= age_s < REFUSED_S:
                return
            if took == took_before and 0 <= age_s < AGAIN_S:
                return
            seen[_key(server)] = (now_s, took)
            with contextlib.suppress(OSError, UsageError), StateFolder() as folder:
                _keep(folder, _key(server), now_s, took)

    def _known(self) -> _Seen:
        if self._seen is None:
            self._seen = {}
            with contextlib.suppress(OSError, UsageError), StateFolder() as folder:
                fd = folder.open(_NAME, os.O_RDONLY)
                with contextlib.closing(os.fdopen(fd, "rb")) as file:
                    self._seen = _read(file.read(_MOST_BYTES))
        return self._seen


def _key(server: Server) -> str:
    return f"{server[0]} {server[1]}"


def _keep(folder: StateFolder, key: str, now_s: float, took: bool) -> None:
    """Write one server into the file, among those of other runs; raises OSError, where one writes now."""
    fd = folder.open(_NAME, os.O_RDWR | os.O_CREAT)
    with contextlib.closing(os.fdopen(fd, "r+b")) as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        seen = _read(file.read(_MOST_BYTES))
        seen[key] = (now_s, took)
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
        server: (float(each[0]), each[1])
        for server, each in stored.items()
        if isinstance(each, list)
        and len(each) == 2
        and isinstance(each[0], (int, float))
        and 0 <= each[0] < _LATEST_S
        and isinstance(each[1], bool)
    }
