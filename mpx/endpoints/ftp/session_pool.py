"""The control sessions of one copy with one server: no more of them at a time than the server admits.

How many that is shows when one more is refused while others are open; it is then remembered, and put to the
test again after some time, as others may have left meanwhile. Until then
whoever needs a session waits for its turn, and whoever has one and nothing to do gives it back. A session
goes from hand to hand logged in, so that a turn costs no login.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from mpx.endpoints.ftp.gsi.options import GsiMemory
from mpx.endpoints.ftp.known_servers import KnownServers
from mpx.endpoints.ftp.login import log_in
from mpx.endpoints.ftp.session import ClientSession, SessionOptions
from mpx.endpoints.ftp.ssh.servers import RemoteServers
from mpx.endpoints.ftp.wire import command
from mpx.engine.session_turns import TurnsForSessions
from mpx.errors import (
    AuthenticationError,
    ConnectionLost,
    Interrupted,
    MpxError,
    SessionEnded,
    TokenRefused,
    TransferTimeout,
)
from mpx.location import Location
from mpx.net import tcp
from mpx.report import OnNote, no_note

PAUSES_S = (0.1, 0.2, 0.4, 0.8)  # before a refusal is believed: servers count sessions that have just ended
JUST_CLOSED_S = 3.0
GREETING_S = 10.0  # of a further session, at most: some servers accept connections that they never serve
AT_ONCE_S = 1.0  # a connection that takes longer to fail says nothing of how many the server admits
STALE_S = 5.0  # a session that nobody used for so long is asked whether it is still there
FIRST_STANDS_S, LONGEST_STANDS_S = 15.0, 240.0  # a limit, before one more is tried; twice as long each time
MOST_SPARE = 1  # sessions kept for others where any number is admitted


@dataclass(frozen=True, slots=True)
class _Refusal:
    """How opening a session failed."""

    error: MpxError
    was_connected: bool  # and then turned away
    took_s: float

    @property
    def is_fast(self) -> bool:
        """Whether it says something of the server, and not only of the way to it."""
        return self.was_connected or self.took_s < AT_ONCE_S

    @property
    def is_explicit(self) -> bool:
        """Whether the server said so."""
        return isinstance(self.error, (AuthenticationError, SessionEnded))


class SessionPool(TurnsForSessions[ClientSession, tuple[ClientSession, float]]):
    """Safe for several threads. `note` takes a line for the report.

    `remembers`: use what earlier runs saw of servers, and keep what is seen. `servers`: where one was reached
    before; they end with the pool.
    """

    def __init__(
        self, note: OnNote = no_note, *, remembers: bool = True, servers: RemoteServers | None = None
    ) -> None:
        super().__init__(note)
        self.unreached: set[bytes] = set()  # see SessionOptions
        self.gsi_memory = GsiMemory(note)
        self.data_certificate = ""  # see GsiOptions
        self.known = KnownServers() if remembers else None
        self.remote_servers = servers or RemoteServers()
        self._was_admitted = False
        self._closed_s = -JUST_CLOSED_S  # when a session was closed last
        self._is_doubtful = False  # the limit: the server did not say so
        self._stands_s = FIRST_STANDS_S  # the limit

    def open(self, location: Location, options: SessionOptions, ahead: Sequence[bytes] = ()) -> ClientSession:
        """Return a session that is logged in: one that was given back, else a new one.

        A new one asks `ahead` with its login. Waits for a turn where the server admits no more, if the
        options say so, else raises SessionsFull. Raises Interrupted when stopped meanwhile, and as `log_in`.
        """
        pauses = iter(PAUSES_S)
        while True:
            session = self._take(options)
            if session is not None:
                return session
            refusal = self._try(location, options, ahead)
            if isinstance(refusal, ClientSession):
                return refusal
            pause_s = next(pauses, None) if self._is_passing(refusal) else None
            if pause_s is not None:
                self._pause(pause_s, options)
            elif not self._is_full(refusal):
                raise refusal.error

    def give_back(self, session: ClientSession) -> None:
        """Take a session back from who does not need it now. No command of it may be unanswered."""
        session.ahead.forget_names()
        session.is_rtt_new = False
        with self._changed:
            keeps = self.limit is not None or len(self._spare) < MOST_SPARE
            if session in self._sessions and not session.is_aborted and keeps:
                self._spare.append((session, time.monotonic()))
                self._changed.notify_all()
                return
        session.close()

    def close(self) -> None:
        """Close the sessions that nobody uses, and end servers that were started for them."""
        while self._spare:
            session, _ = self._spare.popleft()
            session.close()
        self.remote_servers.close()

    # --- turns ---------------------------------------------------------------------------------------

    def _take(self, options: SessionOptions) -> ClientSession | None:
        """Return a session that was given back; None: the caller is to open one."""
        while True:
            waits, meanwhile = options.waits_for_turn, options.while_waiting
            spare = self._turn(options.stop, waits=waits, while_waiting=meanwhile)
            if spare is None:
                return None
            session, since_s = spare
            session.options = options
            try:
                if time.monotonic() - since_s < STALE_S or _is_alive(session):
                    return session
            except BaseException:
                session.close()
                raise
            session.close()

    def _pause(self, pause_s: float, options: SessionOptions) -> None:
        """Wait before a refusal is put to the test once more; ends early when a session is given back."""
        with self._changed:
            self._changed.wait_for(lambda: bool(self._spare), pause_s)
        if options.stop():
            raise Interrupted

    # --- opening -------------------------------------------------------------------------------------

    def _try(
        self, location: Location, options: SessionOptions, ahead: Sequence[bytes]
    ) -> "ClientSession | _Refusal":
        """Open a session; return it, or how the server refused it. Raises UsageError and Interrupted."""
        greeting_s = GREETING_S if self._sessions else None
        began_s, session = time.monotonic(), None
        try:
            session = ClientSession(location, options)
            session = log_in(session, greeting_s, ahead)
        except BaseException as error:
            with self._changed:
                self._opening -= 1
                self._changed.notify_all()
            lost = AuthenticationError, ConnectionLost, TransferTimeout
            if not isinstance(error, lost) or isinstance(error, TokenRefused):
                raise
            return _Refusal(error, session is not None, time.monotonic() - began_s)
        with self._changed:
            self._opening -= 1
            self._was_admitted = True
            self._sessions.add(session)
            if self.limit is not None and len(self._sessions) > self.limit:
                self.limit, self._stands_s = None, FIRST_STANDS_S  # it admits more than it did
            session.closed = partial(self._was_closed, session)
            self._changed.notify_all()
        return session

    def _was_closed(self, session: ClientSession) -> None:
        with self._changed:
            self._sessions.discard(session)
            self._closed_s = time.monotonic()
            if self._is_doubtful and not self._sessions and not self._opening:
                self.limit, self._is_doubtful = None, False  # the server was gone
            self._changed.notify_all()

    def _is_passing(self, refusal: "_Refusal") -> bool:
        """Tell whether a refusal may be over soon: servers still count sessions that have just ended."""
        with self._changed:
            others = bool(self._sessions or self._opening)
            just_closed = time.monotonic() - self._closed_s < JUST_CLOSED_S
        if not refusal.is_fast or isinstance(refusal.error, TransferTimeout):
            return False
        if isinstance(refusal.error, AuthenticationError):
            return self._was_admitted and just_closed
        if isinstance(refusal.error, SessionEnded):
            return just_closed or not self._was_admitted
        return others or just_closed  # it may have been an accident

    def _is_full(self, refusal: "_Refusal") -> bool:
        """Learn from a refusal how many sessions the server admits; False if it says nothing of that."""
        if not refusal.is_fast:
            return False
        with self._changed:
            # How many there are is known when those that are being opened are let in, or refused too.
            self._changed.wait_for(lambda: not self._opening, GREETING_S)
            count = sum(tcp.is_open(each.connection) for each in self._sessions)
            if not count:
                return False  # it is the server that is gone, though not everyone has noticed yet
            if self.limit is not None and time.monotonic() >= self._until_s:
                self._stands_s = min(2 * self._stands_s, LONGEST_STANDS_S)
            self._until_s = time.monotonic() + self._stands_s
            if self.limit is not None and self.limit <= count:
                return True
            self.limit, self._is_doubtful = count, not refusal.is_explicit
        what = "session" if refusal.was_connected else "connection"
        self._tell_limit(what, count, refusal.error)
        return True


def open_session(location: Location, options: SessionOptions, ahead: Sequence[bytes] = ()) -> ClientSession:
    """Return a session that is logged in, one of the pool if there is one; see SessionPool.open."""
    if options.pool is not None:
        return options.pool.open(location, options, ahead)
    return log_in(ClientSession(location, options), ahead=ahead)


def is_session_wanted(options: SessionOptions) -> bool:
    """Tell whether somebody waits for a session of the pool, if there is one; see SessionPool.is_wanted."""
    return options.pool is not None and options.pool.is_wanted


def give_back_session(session: ClientSession) -> None:
    """Let others have a session, or close it where there is no pool; see SessionPool.give_back."""
    if session.options.pool is not None:
        session.options.pool.give_back(session)
    else:
        session.close()


def _is_alive(session: ClientSession) -> bool:
    try:
        session.call(command("NOOP"))
    except (ConnectionLost, TransferTimeout):
        return False
    return True
