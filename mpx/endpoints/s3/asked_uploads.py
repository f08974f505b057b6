"""Uploads in parts that a server was asked to begin, until it has answered.

An answer may be lost, or we may be killed before it comes: then an upload may be there whose name nobody has
heard. So each is noted before it is asked for, in a table beside that of those which have begun.
"""

import contextlib
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mpx.endpoints.s3.uploads import LOCKED_S, UPLOADS, file_key
from mpx.engine.retry import ServerBusy
from mpx.errors import ConnectionLost, Interrupted, TransferTimeout, UsageError
from mpx.files.state_database import state_database

if TYPE_CHECKING:  # imported once a database is opened
    import sqlite3

_TABLE = (
    "CREATE TABLE IF NOT EXISTS asked (id INTEGER PRIMARY KEY, file BLOB, server TEXT, since_s REAL, "
    "until_s REAL)"
)
_IS_THERE = "SELECT 1 FROM sqlite_master WHERE name = 'asked'"
_KILLED_S = 60.0  # within which the server has begun an upload, where we were killed after asking


@dataclass(frozen=True, slots=True)
class AskedUpload:
    """One that may have begun, from when to when by the clock of this host (seconds since 1970)."""

    server: str
    since_s: float
    until_s: float


class AskedUploads:
    """Those of one bucket, by the name that stands for an unfinished file. Safe for several threads.

    Best effort: where nothing can be written nothing is found again.
    """

    def __init__(self, bucket: str) -> None:
        self._bucket = bucket
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def asking(self, partial: str, server: str) -> Iterator[None]:
        """Note, within, that an upload is asked for; it stays noted where the answer is lost."""
        since_s = time.time()
        values = self._key(partial), server, since_s
        row = self._do("INSERT INTO asked (file, server, since_s) VALUES (?, ?, ?)", values)
        try:
            yield
        except (ConnectionLost, TransferTimeout, Interrupted) as error:
            if isinstance(error, ServerBusy):  # it has begun none
                self._do("DELETE FROM asked WHERE id = ?", (row,))
                raise
            self._do("UPDATE asked SET until_s = ? WHERE id = ?", (time.time(), row))
            raise
        except BaseException:
            self._do("DELETE FROM asked WHERE id = ?", (row,))
            raise
        self._do("DELETE FROM asked WHERE id = ?", (row,))

    def unanswered(self, partial: str) -> list[AskedUpload]:
        """Return those of a file that may be there."""
        query = "SELECT server, since_s, until_s FROM asked WHERE file = ?"
        with self._lock, contextlib.suppress(UsageError), _opened(create=False) as database:
            if database is None or not database.execute(_IS_THERE).fetchone():
                return []
            rows = database.execute(query, (self._key(partial),)).fetchall()
            return [
                AskedUpload(str(server), float(since_s), float(until_s or since_s + _KILLED_S))
                for server, since_s, until_s in rows
            ]
        return []

    def settled(self, partial: str) -> None:
        """Forget those of a file, as they were looked for."""
        self._do("DELETE FROM asked WHERE file = ?", (self._key(partial),))

    def _do(self, statement: str, values: tuple[object, ...]) -> int | None:
        with self._lock, contextlib.suppress(UsageError), _opened(create=True) as database:
            if database:
                database.execute(_TABLE)
                return database.execute(statement, values).lastrowid
        return None

    def _key(self, partial: str) -> bytes:
        return file_key(self._bucket, partial)


def _opened(*, create: bool) -> "contextlib.AbstractContextManager[sqlite3.Connection | None]":
    return state_database(UPLOADS, create=create, waits_s=LOCKED_S)
