"""Uploads in several parts that are begun and not ended, and what was stored in one piece.

Those in parts outlive a run: the next one goes on with them, and `mpx unfinished --discard` aborts them. One
database in the user's state directory has a row for each; where it cannot be written an upload begins anew,
and the server keeps its parts until it removes them itself.
"""

import hashlib
import threading
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mpx.errors import UsageError
from mpx.files.state_database import state_database

if TYPE_CHECKING:  # imported once a database is opened
    import sqlite3

LOCKED_S = 5.0  # so long another process may write
UPLOADS = "uploads.sqlite"
_TABLE = (
    "CREATE TABLE IF NOT EXISTS begun (file BLOB PRIMARY KEY, name BLOB, upload TEXT, part_bytes INTEGER, "
    "server TEXT, source TEXT) WITHOUT ROWID"
)


@dataclass(frozen=True, slots=True)
class BegunUpload:
    """An upload in parts: of which object (a name is a slash and a key), and at which server."""

    name: str
    upload_id: str
    part_bytes: int
    server: str
    source: str = ""  # the ETag of the object that the server copies; empty where bytes are sent


@dataclass(frozen=True, slots=True)
class StoredPart:
    """A part that is stored. Sums are of our bytes."""

    number: int
    size_bytes: int
    etag: str  # as the server has it
    md5: bytes
    crc32: int


@dataclass(frozen=True, slots=True)
class ReadyUpload:
    """An upload whose parts are all stored, so that it can be completed."""

    begun: BegunUpload
    parts: tuple[StoredPart, ...]  # in order
    has_crc32: bool  # the server keeps that of the whole object
    md5: str = ""  # of all bytes, in hex; empty where it is not known, or the server has not shown it

    @property
    def size_bytes(self) -> int:
        """Of all parts."""
        return sum(part.size_bytes for part in self.parts)


class Uploads:
    """Those of one bucket, by the name that stands for an unfinished file. Safe for several threads."""

    def __init__(self, bucket: str) -> None:
        self._bucket = bucket
        self._lock = threading.Lock()
        self._stored: dict[str, tuple[str, int]] = {}  # in one piece: name and size; with `_lock` held
        self._ready: dict[str, ReadyUpload] = {}  # with `_lock` held
        self._before: dict[str, str] = {}  # what had the name of an object, by upload; with `_lock` held

    # --- within this run -----------------------------------------------------------------------------

    def stored(self, partial: str, final: str, size_bytes: int) -> None:
        """Note that an object is stored under its final name."""
        with self._lock:
            self._stored[partial] = final, size_bytes

    def stored_at(self, partial: str) -> str | None:
        """Return the final name of an object that is stored in one piece."""
        with self._lock:
            return self._stored[partial][0] if partial in self._stored else None

    def ready(self, partial: str, ready: ReadyUpload) -> None:
        """Note that all parts of an object are stored."""
        with self._lock:
            self._ready[partial] = ready

    def ready_at(self, partial: str) -> ReadyUpload | None:
        """Return what is to be completed."""
        with self._lock:
            return self._ready.get(partial)

    def size_of(self, partial: str) -> int | None:
        """Return how many bytes of an object are stored, whole or in parts; None where none are known."""
        with self._lock:
            ready = self._ready.get(partial)
            return ready.size_bytes if ready else self._stored.get(partial, ("", None))[1]

    def had_before(self, upload_id: str, what: str) -> None:
        """Note what was there under the name of an object, before it was first asked to be completed."""
        with self._lock:
            self._before.setdefault(upload_id, what)

    def before(self, upload_id: str) -> str | None:
        """Return that; None where nobody has looked."""
        with self._lock:
            return self._before.get(upload_id)

    def forget(self, partial: str) -> None:
        """Forget what this run knows of an object."""
        with self._lock:
            self._stored.pop(partial, None)
            self._ready.pop(partial, None)

    # --- beyond it -----------------------------------------------------------------------------------

    def begun(self, partial: str, begun: BegunUpload) -> bool:
        """Keep an upload for later runs; tell whether that could be done."""
        name = begun.name.encode("utf-8", "surrogateescape")
        row = (self._key(partial), name, begun.upload_id, begun.part_bytes, begun.server, begun.source)
        with self._lock, suppress(UsageError), _opened(create=True) as database:
            if database:
                database.execute(_TABLE)
                database.execute("INSERT OR REPLACE INTO begun VALUES (?, ?, ?, ?, ?, ?)", row)
                return True
        return False

    def kept(self, partial: str) -> BegunUpload | None:
        """Return the upload that an earlier run, or this one, has begun, as far as that can be known."""
        with suppress(UsageError):
            return self.looked_up(partial)
        return None

    def looked_up(self, partial: str) -> BegunUpload | None:
        """As `kept`; raises UsageError where the database cannot be read."""
        query = "SELECT name, upload, part_bytes, server, source FROM begun WHERE file = ?"
        with self._lock, _opened(create=False) as database:
            row = database.execute(query, (self._key(partial),)).fetchone() if database else None
            if row is not None:
                name, upload_id, part_bytes, server, source = row
                return BegunUpload(
                    bytes(name).decode("utf-8", "surrogateescape"),
                    str(upload_id),
                    int(part_bytes),
                    str(server),
                    str(source),
                )
        return None

    def ended(self, partial: str) -> None:
        """Forget an upload that is completed, aborted or gone."""
        self.forget(partial)
        with self._lock, suppress(UsageError), _opened(create=False) as database:
            if database:
                database.execute("DELETE FROM begun WHERE file = ?", (self._key(partial),))

    def _key(self, partial: str) -> bytes:
        return file_key(self._bucket, partial)


def file_key(bucket: str, partial: str) -> bytes:
    """Return what the name that stands for an unfinished file is kept by."""
    return hashlib.sha256(f"{bucket}\0{partial}".encode("utf-8", "surrogateescape")).digest()[:16]


def _opened(*, create: bool) -> "AbstractContextManager[sqlite3.Connection | None]":
    return state_database(UPLOADS, create=create, waits_s=LOCKED_S)
