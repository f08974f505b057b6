"""What is remembered of earlier copies: a database in the user's state folder, of bounded size.

It holds addresses, times and numbers; neither names of files nor of users, nor passwords. Best effort: where
it cannot be read or written a copy begins as if there had been none.
"""

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from mpx.files.state_database import damage_passed_over, state_database
from mpx.history.outcome import Outcome, Route

if TYPE_CHECKING:  # imported once a database is opened
    import sqlite3

NAME = "history.sqlite"
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
    with damage_passed_over(), state_database(NAME, create=True) as database:
        if database:
            database.execute(_TABLE)
            database.execute(
                f"INSERT INTO outcomes VALUES ({', '.join('?' * 10)})", (*_key(route), *_values(outcome))
            )
            database.execute(_SURPLUS, _key(route))
            database.execute(_OLDEST)


def outcomes(route: Route) -> Sequence[Outcome]:
    """Return what is remembered of a route, the latest last."""
    with damage_passed_over(), state_database(NAME, create=False) as database:
        if database:
            rows = database.execute(
                f"SELECT {_FOUND} FROM outcomes WHERE {_ROUTE} ORDER BY rowid", _key(route)
            )
            return [outcome for row in rows if (outcome := _outcome(row))]
    return []


def everything() -> Sequence[tuple[Route, Outcome]]:
    """Return all that is remembered, the latest last."""
    with damage_passed_over(), state_database(NAME, create=False) as database:
        if database:
            return list(_read(database.execute("SELECT * FROM outcomes ORDER BY rowid")))
    return []


def forget(server: str | None = None) -> int:
    """Forget what is remembered of the copies to and from a server's address, or of all; return how many."""
    with damage_passed_over(), state_database(NAME, create=False) as database:
        if database:
            if server is None:
                return database.execute("DELETE FROM outcomes").rowcount
            return database.execute("DELETE FROM outcomes WHERE server = ?", (server,)).rowcount
    return 0


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
