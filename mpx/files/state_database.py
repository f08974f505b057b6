"""SQLite databases in the state folder: what they hold is of use, and nothing depends on it."""

import contextlib
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from mpx.errors import UsageError
from mpx.files.state_folder import HINT, StateFolder

if TYPE_CHECKING:  # imported once a database is opened
    import sqlite3


@contextlib.contextmanager
def state_database(name: str, *, create: bool, waits_s: float) -> "Iterator[sqlite3.Connection | None]":
    """Open a database; None if it is not there, unless it may be created.

    It waits `waits_s` while another process writes. Raises UsageError where the folder or the file cannot be
    used, or what is in it makes no sense; one whose damage must not matter suppresses that.
    """
    with StateFolder() as folder:
        path = folder.path / name
        try:
            if not create and not _is_there(folder, name):
                yield None
                return
            os.close(folder.open(name, os.O_RDWR | os.O_CREAT if create else os.O_RDONLY))
            try:
                import sqlite3
            except ImportError as error:  # Python was built without it
                raise UsageError(f"cannot use {path}: {error}") from None
            try:
                with contextlib.closing(sqlite3.connect(path, waits_s)) as database, database:
                    yield database
            except sqlite3.Error as error:
                raise UsageError(f"cannot use {path}: {error}; remove it if it stays so, or {HINT}") from None
        except (ValueError, TypeError, OverflowError, OSError) as error:  # its messages may be no UTF-8
            raise UsageError(f"cannot use {path}: {error}; remove it if it stays so, or {HINT}") from None


def _is_there(folder: StateFolder, name: str) -> bool:
    try:
        folder.stat(name)
    except FileNotFoundError:
        return False
    return True
