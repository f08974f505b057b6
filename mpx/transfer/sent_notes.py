"""What was sent to servers that keep no modification times, so that it is not sent again.

One database in the user's state directory, with a row for each such file: the size and the modification time
of the source as it was sent, and the time that the server gave the file. Best effort: where a row cannot be
written or read the file is sent once more.
"""

import hashlib
import threading
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from mpx.engine.endpoint import FileInfo
from mpx.errors import UsageError
from mpx.files.state_database import state_database
from mpx.location import Location

if TYPE_CHECKING:  # imported once a database is opened
    import sqlite3

TOLERANCE_S = 1.0
LOCKED_S = 5.0  # so long another process may write
_NAME = "sent.sqlite"
_TABLE = (
    "CREATE TABLE IF NOT EXISTS sent "
    "(file BLOB PRIMARY KEY, size INTEGER, source_s REAL, there_s REAL) WITHOUT ROWID"
)


@dataclass(frozen=True, slots=True)
class Sent:
    """A file as it was sent; times in seconds since 1970, None where nobody told one."""

    name: str  # at the destination
    size_bytes: int
    source_s: float | None
    there_s: float | None


class SentNotes:
    """The notes of one destination. Safe for several threads and processes."""

    def __init__(self, destination: Location, server: str = "") -> None:
        """`server`: where the location does not name it (S3)."""
        self._server = f"{destination.endpoint!r}{server}"
        self._lock = threading.Lock()

    def _key(self, name: str) -> bytes:
        text = f"{self._server}\0{name}".encode("utf-8", "surrogateescape")
        return hashlib.sha256(text).digest()[:16]

    def record(self, files: Iterable[Sent]) -> None:
        """Note files that were sent; what was noted of them before is forgotten."""
        rows = [(self._key(file.name), file.size_bytes, file.source_s, file.there_s) for file in files]
        with self._lock, suppress(UsageError), _opened(create=True) as database:
            if database:
                database.execute(_TABLE)
                database.executemany("INSERT OR REPLACE INTO sent VALUES (?, ?, ?, ?)", rows)

    def knows(self, name: str, source: FileInfo, there: FileInfo) -> bool:
        """Tell whether `source`, as it is, was sent to `name` and is still there as it was."""
        sent = self._sent(name)
        return sent is not None and is_unchanged(sent, source, there)

    def contradicts(self, name: str, source: FileInfo, there: FileInfo) -> bool:
        """Tell whether what is at `name` was sent from here, and `source` is another one since.

        Where no times are kept that of a file is when it was sent: a source that was written in the same
        second would pass for the same.
        """
        sent = self._sent(name)
        if sent is None or sent.source_s is None or source.modified_s in (None, sent.source_s):
            return False
        return is_unchanged(sent, replace(source, modified_s=sent.source_s), there)

    def _sent(self, name: str) -> Sent | None:
        with self._lock, suppress(UsageError), _opened(create=False) as database:
            if database:
                query = "SELECT size, source_s, there_s FROM sent WHERE file = ?"
                row = database.execute(query, (self._key(name),)).fetchone()
                return Sent(name, *row) if row is not None and _are_numbers(row) else None
        return None


def _opened(*, create: bool) -> "AbstractContextManager[sqlite3.Connection | None]":
    return state_database(_NAME, create=create, waits_s=LOCKED_S)


def _are_numbers(row: Sequence[object]) -> bool:
    """Tell whether a row is one that `record` makes: a file of others may hold anything."""
    size_bytes, *times = row
    return isinstance(size_bytes, int) and all(
        each is None or isinstance(each, int | float) for each in times
    )


def is_unchanged(sent: Sent, source: FileInfo, there: FileInfo) -> bool:
    """Tell whether neither the source nor the file at the destination has changed since it was sent."""
    if source.size_bytes != sent.size_bytes or there.size_bytes != sent.size_bytes:
        return False
    if source.modified_s is None or sent.source_s is None or source.modified_s != sent.source_s:
        return False
    if sent.there_s is None or there.modified_s is None:
        return True  # the size is all that can be known
    return abs(there.modified_s - sent.there_s) <= TOLERANCE_S
