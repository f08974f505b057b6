"""What a server answers 500 to again and again, without saying why: that does not pass, so it is a refusal.

Servers say 500 for what passes soon, and for a full disk or a folder that they may not write in.
"""

import threading
import time

from mpx.engine.retry import ServerFailed
from mpx.errors import MpxError

TRIES, LASTS_S = 4, 5.0  # so often and for so long at least: then it is taken for a refusal
FEW_TRIES = 2  # of one file are enough while the server fails at all files for so long


class _Row:
    """Failures, one after the other."""

    def __init__(self) -> None:
        self.times, self._since_s = 0, time.monotonic()

    def add(self) -> None:
        self.times += 1

    @property
    def is_lasting(self) -> bool:
        return self.times >= TRIES and time.monotonic() - self._since_s >= LASTS_S


class ServerFailures:
    """For any thread. `kind`: of requests, the method of questions; none of what moves the data of a file."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # guards both below
        self._by_name: dict[tuple[str, str], _Row] = {}  # by kind and name
        self._all: dict[str, _Row] = {}  # by kind, of all names; not where something else came last

    def judged(self, name: str, error: ServerFailed, kind: str = "") -> MpxError:
        """Take the answer about a name; return what it means: itself where it is to be asked again."""
        with self._lock:
            of_all = self._all.setdefault(kind, _Row())
            of_name = self._by_name.setdefault((kind, name), _Row())
            for row in (of_all, of_name):
                row.add()
            is_of_all = of_name.times >= FEW_TRIES and of_all.is_lasting
            if not (of_name.is_lasting or is_of_all):
                return error
            if not kind:  # else another question follows, which fails like that
                del self._by_name[kind, name]
        return error.at_last(of_name.times, is_refusal=True)

    def over(self, name: str, kind: str = "") -> None:
        """Take note of another answer about a name, whatever it is."""
        with self._lock:
            self._by_name.pop((kind, name), None)
            self._all.pop(kind, None)
