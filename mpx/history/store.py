"""What is remembered of earlier copies: a database in the user's state folder, of bounded size.

It holds addresses, times and numbers; neither names of files nor of users, nor passwords. All functions raise
UsageError where it cannot be used: a copy goes on as if there had been none.
"""

import contextlib
import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from mpx.errors import UsageError
from mpx.files.state_database import state_database
from mpx.files.state_folder import StateFolder
from mpx.history.outcome import Outcome, Route

if TYPE_CHECKING:  # imported once a database is opened
    import sqlite3

NAME = "history.sqlite"
LOCKED_S = 0.2  # so long another process may write: no copy waits longer for it
KEPT, MOST = 8, 4000  # outcomes of a route, and of all
_ROUTE = "ours = ? AND server = ? AND port = ? AND is_upload = ? AND policy = ?"
_FOUND = "when_s, rtt_s, streams, goodput_bps, window_bytes"
_TABLE = f"CREATE TABLE IF NOT EXISTS outcomes (ours, server, port, is_upload, policy, {_FOUND})"
_SURPLUS = f"""DELETE FROM outcomes WHERE rowid IN
    (SELECT rowid FROM outcomes WHERE {_ROUTE} ORDER BY rowid DESC LIMIT -1 OFFSET {KEPT})"""
_OLDEST = f"""DELETE FROM outcomes WHERE rowid IN
    (SELECT rowid FROM outcomes ORDER BY rowid DESC LIMIT -1 OFFSET {MOST})"""


def record(route: Route, outcome: Outcome) -> None:
    """Add an outcome; the oldest ones go where there are too many."""
    with state_database(NAME, create=True, waits_s=LOCKED_S) as database:
        if database:
            database.execute(_TABLE)
            database.execute(
                f"INSERT INTO outcomes VALUES ({', '.join('?' * 10)})", (*_key(route), *_values(outcome))
            )
            database.execute(_SURPLUS, _key(route))
            database.execute(_OLDEST)


def outcomes(route: Route) -> Sequence[Outcome]:
    """Return what is remembered of a route, the latest last."""
    with state_database(NAME, create=False, waits_s=LOCKED_S) as database:
        if database:
            rows = database.execute(
                f"SELECT {_FOUND} FROM outcomes WHERE {_ROUTE} ORDER BY rowid", _key(route)
            )
            return [outcome for row in rows if (outcome := _outcome(row))]
    return []


def everything() -> Sequence[tuple[Route, Outcome]]:
    """Return all that is remembered, the latest last."""
    with state_database(NAME, create=False, waits_s=LOCKED_S) as database:
        if database:
            return list(_read(database.execute("SELECT * FROM outcomes ORDER BY rowid")))
    return []


def forget() -> int:
    """Forget everything, and remove the file; return how many outcomes it was, 0 of a damaged one."""
    count = 0
    with contextlib.suppress(UsageError):
        count = len(everything())
    with StateFolder() as folder:
        try:
            folder.unlink(NAME)
        except OSError as error:
            raise UsageError(f"cannot remove {folder.path / NAME}: {error.strerror}") from None
    return count


def _key(route: Route) -> tuple[str, str, int, int, str]:
    return route.ours, route.server, route.port, int(route.is_upload), route.policy


def _values(outcome: Outcome) -> tuple[float, float, int, float, float | None]:
    return outcome.when_s, outcome.rtt_s, outcome.streams, outcome.goodput_bps, outcome.window_bytes


def _read(rows: "sqlite3.Cursor") -> Iterator[tuple[Route, Outcome]]:
    for ours, server, port, is_upload, policy, *found in rows:
        texts = all(isinstance(each, str) for each in (ours, server, policy))
        if texts and isinstance(port, int) and (outcome := _outcome(found)):
            yield Route(ours, server, port, bool(is_upload), policy), outcome


def _outcome(row: Sequence[object]) -> Outcome | None:
    """Return a row that makes sense, as others may write in the file; None for another."""
    when_s, rtt_s, streams, goodput_bps, window_bytes = row
    numbers = (when_s, rtt_s, goodput_bps, *(() if window_bytes is None else (window_bytes,)))
    if not isinstance(streams, int) or not 1 <= streams <= 10_000:
        return None
    values = [float(each) for each in numbers if isinstance(each, (int, float))]
    if len(values) < len(numbers) or not all(0 < each < math.inf for each in values):
        return None
    return Outcome(values[0], values[1], streams, values[2], values[3] if len(values) > 3 else None)
