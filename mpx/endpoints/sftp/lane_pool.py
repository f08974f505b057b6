"""The SFTP sessions of one copy with one host: no more of them at a time than the server admits.

The first goes through the shared login (SshLogin); further ones have connections of their own where that
needs nobody who types, else they are sessions in the shared connection. Where the server refuses one more,
whoever needs a session waits for its turn, and whoever has one and nothing to do gives it back.
"""

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace

from mpx.endpoints.sftp.session import SftpSession
from mpx.endpoints.ssh.command_line import of_subsystem
from mpx.endpoints.ssh.login import SshLogin
from mpx.endpoints.ssh.process import SshProcess
from mpx.engine.session_turns import TurnsForSessions
from mpx.errors import AuthenticationError, ConnectionLost, MpxError, TransferTimeout
from mpx.report import OnNote, no_note

LOGIN_S = 120.0  # somebody may have to type a password, or to look for a second factor
LOGINS_AT_ONCE = 4  # sshd drops connections where ten log in (MaxStartups)
STANDS_S = 15.0  # a limit, and that no further connection is admitted, before it is put to the test again
MOST_SPARE = 2
SUBSYSTEM = "sftp"


@dataclass(frozen=True, slots=True)
class LaneOptions:
    """How a session is opened: time-outs, whom to ask whether to stop, whether to wait for a turn."""

    connect_timeout_s: float
    timeout_s: float
    stop: Callable[[], bool]
    waits_for_turn: bool = True


class LanePool(TurnsForSessions[SftpSession, SftpSession]):
    """For any thread. `note` takes a line for the report."""

    def __init__(self, login: SshLogin, note: OnNote = no_note) -> None:
        super().__init__(note)
        self.login = login
        self._shells: deque[SshProcess] = deque()  # that compute checksums, and that nobody uses
        self._alone_from_s = 0.0  # when a connection of its own is tried again
        self._first_login = threading.Lock()  # held while it is made, so that the user is asked once
        self._logins = threading.BoundedSemaphore(LOGINS_AT_ONCE)

    def open(self, options: LaneOptions) -> SftpSession:
        """Return a session: one that was given back, else a new one.

        Raises as SftpSession.begin, SessionsFull where the options say that nobody waits for a turn,
        Interrupted.
        """
        while True:
            session = self._take(options)
            if session is not None:
                session.stop = options.stop
                return session
            try:
                return self._opened(options)
            except (AuthenticationError, ConnectionLost, TransferTimeout) as error:
                if not self._is_full(error):
                    raise

    def give_back(self, session: SftpSession) -> None:
        """Take a session back from who does not need it now; all its requests are answered."""
        with self._changed:
            keeps = self.limit is not None or len(self._spare) < MOST_SPARE
            if session in self._sessions and not session.has_ended and keeps:
                self._spare.append(session)
                self._changed.notify_all()
                return
        session.close()

    def take_shell(self) -> SshProcess | None:
        """Return a shell that computes checksums and has been given back, if there is one."""
        with self._changed:
            while self._shells:
                shell = self._shells.popleft()
                if not shell.has_ended:
                    return shell
                shell.close()
        return None

    def give_back_shell(self, shell: SshProcess) -> None:
        """Take a shell back that has nothing to do."""
        with self._changed:
            self._shells.append(shell)

    def close(self) -> None:
        """Close the sessions and shells that nobody uses."""
        while self._spare:
            self._spare.popleft().close()
        while self._shells:
            self._shells.popleft().close()

    def _take(self, options: LaneOptions) -> SftpSession | None:
        """Return a session that was given back; None: the caller is to open one."""
        while True:
            session = self._turn(options.stop, waits=options.waits_for_turn)
            if session is None or not session.has_ended:
                return session
            session.close()

    def _opened(self, options: LaneOptions) -> SftpSession:
        """Open a session; raises what kept it from that."""
        try:
            with self._first_login:
                if all(session.has_ended for session in self._sessions):
                    return self._added(self._first(options))
            return self._added(self._further(options))
        finally:
            with self._changed:
                self._opening -= 1
                self._changed.notify_all()

    def _added(self, session: SftpSession) -> SftpSession:
        with self._changed:
            self._sessions.add(session)
            if self.limit is not None and len(self._sessions) > self.limit:
                self.limit = None  # it admits more than it did
            session.closed = lambda: self._was_closed(session)
        return session

    def _first(self, options: LaneOptions) -> SftpSession:
        self.login.share()
        patient = replace(options, connect_timeout_s=max(options.connect_timeout_s, LOGIN_S))
        return self._started(self.login.first(), patient)

    def _further(self, options: LaneOptions) -> SftpSession:
        if self.login.may_log_in and time.monotonic() >= self._alone_from_s:
            try:
                with self._logins:
                    return self._started(self.login.alone(), options)
            except AuthenticationError:
                self.login.may_log_in = False  # it needs somebody who types
            except (ConnectionLost, TransferTimeout):
                self._alone_from_s = time.monotonic() + STANDS_S
        return self._started(self.login.shared(), options)

    def _started(self, words: list[str], options: LaneOptions) -> SftpSession:
        process = SshProcess(of_subsystem(words), SUBSYSTEM, self.login.name)
        session = SftpSession(process, options.timeout_s, options.stop)
        try:
            session.begin(options.connect_timeout_s)
        except BaseException:
            session.close()
            raise
        return session

    def _was_closed(self, session: SftpSession) -> None:
        with self._changed:
            self._sessions.discard(session)
            self._changed.notify_all()

    def _is_full(self, refusal: MpxError) -> bool:
        """Learn from a refusal how many sessions the server admits; False if it says nothing of that."""
        with self._changed:
            self._changed.wait_for(lambda: not self._opening, LOGIN_S)
            count = sum(not each.has_ended for each in self._sessions)
            if not count or isinstance(refusal, TransferTimeout):
                return False
            self._until_s = time.monotonic() + STANDS_S
            if self.limit is not None and self.limit <= count:
                return True
            self.limit = count
        self._tell_limit("session", count, refusal)
        return True
