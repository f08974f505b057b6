"""SQLite databases in the state folder. Best effort: what they hold is of use, and nothing depends on it."""

import contextlib
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from mpx.errors import UsageError
from mpx.files.state_folder import StateFolder

if TYPE_CHECKING:  # imported once a database is opened
    import sqlite3

LOCKED_S = 2.0  # so long another process may write


@contextlib.contextmanager
def state_database(name: str, *, create: bool) -> "Iterator[sqlite3.Connection | None]":
    """Open a database; None if it is not there, unless it may be created, or is no file of ours."""
    import sqlite3

    with StateFolder() as folder:
        try:
            os.close(folder.open(name, os.O_RDWR | (os.O_CREAT if create else 0)))
        except OSError:
            yield None
            return
        with contextlib.closing(sqlite3.connect(folder.path / name, LOCKED_S)) as database, database:
            yield database


def damage_passed_over() -> contextlib.AbstractContextManager[None]:
    """Pass over what a file raises that is damaged or no database, or a folder that cannot be opened.

    The messages of sqlite3 may be no UTF-8 then.
    """
    import sqlite3

    return contextlib.suppress(sqlite3.Error, ValueError, TypeError, OverflowError, OSError, UsageError)
