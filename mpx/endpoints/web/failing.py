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
    """For any thread. Each file is moved by requests of one kind."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # guards both below
        self._by_name: dict[str, _Row] = {}
        self._all: _Row | None = None  # of all files; None: something else came last

    def judged(self, name: str, error: ServerFailed) -> MpxError:
        """Take the answer about a file; return what it means: itself where it is to be asked again."""
        with self._lock:
            self._all = self._all or _Row()
            of_file = self._by_name.setdefault(name, _Row())
            for row in (self._all, of_file):
                row.add()
            is_of_all = of_file.times >= FEW_TRIES and self._all.is_lasting
            if not (of_file.is_lasting or is_of_all):
                return error
            del self._by_name[name]
        return error.at_last(of_file.times, is_refusal=True)

    def over(self, name: str) -> None:
        """Take note of another answer about a file, whatever it is."""
        with self._lock:
            self._by_name.pop(name, None)
            self._all = None
