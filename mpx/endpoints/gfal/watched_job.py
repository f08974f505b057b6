"""A copy or a checksum under way in a process that has gfal2, as mpx watches it."""

import json
import time
from collections.abc import Callable, Sequence

from mpx.endpoints.gfal.meaning import Trouble, explained, is_of_source, trouble
from mpx.endpoints.gfal.process import not_let_in
from mpx.endpoints.gfal.settings import JobState, loaded
from mpx.endpoints.sftp import wire
from mpx.endpoints.sftp.session import SftpSession, extended
from mpx.endpoints.sftp.wire import Extended, Status
from mpx.errors import (
    AuthenticationError,
    ConnectionLost,
    DestinationError,
    IntegrityError,
    Interrupted,
    MpxError,
    NoSpace,
    SourceError,
    TransferTimeout,
    UsageError,
)
from mpx.text import shown

_LONGEST_END_S = 5.0  # of what was cancelled


class WatchedJob:
    """Belongs to one thread, whose session it uses."""

    def __init__(self, session: SftpSession, timeout_s: float, stop: Callable[[], bool]) -> None:
        """`timeout_s`: for how long nothing may move."""
        self._session, self._timeout_s, self._stop = session, timeout_s, stop

    def run(
        self,
        what: str,
        rest: bytes,
        on_state: Callable[[JobState], int],
        *,
        waits_at_first: bool = False,
        on_stop: Callable[[], None] = lambda: None,
    ) -> JobState:
        """Have it done, and return how it ended.

        `on_state` is told how far it is, and returns what shows whether anything moves: nothing needs to at
        first (0) where a server may have to compute something (`waits_at_first`). `on_stop` is called
        before what is under way is ended, which may take longer than we have after a signal. Raises
        Interrupted, TransferTimeout once it has ended, and what the session raises.
        """
        session = self._session
        before, session.stop = session.stop, lambda: False  # who stops waits for what is removed
        try:
            state, moved, moved_s = self._ask(what, rest), -1, time.monotonic()
            while not state.is_over:
                now, now_s = on_state(state), time.monotonic()
                if now != moved:
                    moved, moved_s = now, now_s
                if self._stop():
                    on_stop()
                    self._cancel()
                    raise Interrupted
                is_late = now_s - moved_s > self._timeout_s and not (waits_at_first and not now)
                if is_late:
                    self._cancel()
                    raise TransferTimeout(f"{session.host}: nothing has moved for {self._timeout_s:g} s")
                state = self._ask("watch")
            on_state(state)
            return state
        finally:
            session.stop = before

    def _cancel(self) -> None:
        """Have it end; a process that does not end it is ended by whoever drops the session."""
        until_s = time.monotonic() + _LONGEST_END_S
        state = self._ask("cancel")
        while not state.is_over and time.monotonic() < until_s:
            state = self._ask("watch")

    def _ask(self, what: str, rest: bytes = b"") -> JobState:
        (reply,) = self._session.ask([extended(wire.GFAL, wire.text(what.encode()), wire.text(rest))])
        if isinstance(reply, Extended):
            try:
                return JobState(**loaded(reply.content))
            except (ValueError, TypeError, json.JSONDecodeError) as error:
                raise ConnectionLost(
                    f"{self._session.host}: gfal2's process sends nonsense: {error}"
                ) from None
        words = reply.message if isinstance(reply, Status) else type(reply).__name__
        raise ConnectionLost(f"{self._session.host}: gfal2's process does not do that: {words}")


def error_of(
    state: JobState, host: str, what: str, *, names: Sequence[str], default: type[MpxError]
) -> MpxError:
    """Return the error of a job that has failed.

    `names`: see meaning.py; `default`: of which end it is where gfal2 does not say.
    """
    of_source = is_of_source(state.message, names)
    kind = default if of_source is None else SourceError if of_source else DestinationError
    found, words = trouble(state.code, state.message, names), shown(explained(state.message, names))
    text = f"gfal2 does not {what}: {words}"
    if found is Trouble.LOGIN:
        return AuthenticationError(not_let_in(host, words))
    if found is Trouble.NO_PLUGIN:
        return UsageError(f"{text}; install the package gfal2-plugin-... of that protocol (Debian)")
    kinds: dict[Trouble, type[MpxError]] = {
        Trouble.FULL: NoSpace,
        Trouble.LOST: ConnectionLost,
        Trouble.STOPPED: ConnectionLost,  # not by us
        Trouble.LATE: TransferTimeout,
        Trouble.DAMAGED: IntegrityError,
    }
    return kinds.get(found, kind)(text)
