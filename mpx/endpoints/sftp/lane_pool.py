"""The sessions of one copy with one host, of SFTP and of checksums: no more of them than the server admits.

The first goes through the shared login (SshLogin). Further ones that move data have connections of their
own, which carry more, where a login needs nobody who types. Else, and where they are only asked, they are
sessions in the shared connection: a login is more work for both ends than most sessions. Where the server
refuses one more, whoever needs a session waits for its turn, and whoever has one and nothing to do gives it
back.
"""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeVar

from mpx.endpoints.sftp import sums_script
from mpx.endpoints.sftp.lanes import LaneOptions
from mpx.endpoints.sftp.session import SftpSession
from mpx.endpoints.sftp.sums_shell import SumsShell
from mpx.endpoints.ssh.command_line import of_subsystem
from mpx.endpoints.ssh.login import SshLogin
from mpx.endpoints.ssh.process import CommandEnded, SessionRefused, SshProcess
from mpx.engine.session_turns import TurnsForSessions
from mpx.errors import AuthenticationError, ConnectionLost, Interrupted, MpxError, TransferTimeout
from mpx.report import OnNote, no_note

LOGIN_S = 120.0  # somebody may have to type a password, or to look for a second factor
LOGINS_AT_ONCE = 4  # sshd drops connections where ten log in (MaxStartups)
STANDS_S = 15.0  # a limit, and that no further connection is admitted, before it is put to the test again
MOST_SPARE = 2
PAUSES_S = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6)  # a session that has just ended counts for a moment
SUBSYSTEM = "sftp"

Lane = SftpSession | SumsShell
OneLane = TypeVar("OneLane", SftpSession, SumsShell)


class LanePool(TurnsForSessions[Lane, Lane]):
    """For any thread. `note` takes a line for the report."""

    server_url = ""  # locations name it
    least_window_bytes = 4 * 1024 * 1024  # twice what ssh has under way in one session

    def __init__(self, login: SshLogin, note: OnNote = no_note) -> None:
        super().__init__(note)
        self.login = login
        self.name = login.name
        self.begins_in = ""  # each begins in the same folder
        self._alone_from_s = 0.0  # when a connection of its own is tried again
        self._first_login = threading.Lock()  # held while it is made, so that the user is asked once
        self._trying_alone = threading.Lock()  # held while it is not known whether a login asks for anything
        self._logins = threading.BoundedSemaphore(LOGINS_AT_ONCE)

    def open(self, options: LaneOptions) -> SftpSession:
        """Return a session: one that was given back, else a new one.

        Raises as SftpSession.begin, SessionsFull where the options say that nobody waits for a turn,
        Interrupted.
        """
        pauses = iter(PAUSES_S)
        while True:
            lane = self._take(options, SftpSession, options.while_waiting)
            if isinstance(lane, SftpSession):
                lane.stop = options.stop
                return lane
            try:
                return self._opened(options)
            except (AuthenticationError, ConnectionLost, TransferTimeout) as error:
                if not (self._is_full(error) or self._is_passing(error, pauses, options)):
                    raise

    def open_shell(self, options: LaneOptions, let_go: Callable[[], None]) -> SumsShell:
        """Return a shell that computes checksums: one that was given back, else a new one.

        `let_go`, while a turn is waited for, lets others have what the caller holds. Raises as
        SumsShell.begin, Interrupted.
        """

        def while_waiting() -> None:
            let_go()
            options.while_waiting()

        pauses = iter(PAUSES_S)
        while True:
            lane = self._take(options, SumsShell, while_waiting)
            if isinstance(lane, SumsShell):
                return lane
            try:
                return self._opened_shell(options)
            except SessionRefused as error:
                if not (self._is_full(error) or self._is_passing(error, pauses, options)):
                    raise
                while_waiting()

    def give_back(self, lane: Lane) -> None:
        """Take a session back from who does not need it now; all its requests are answered."""
        with self._changed:
            few = sum(isinstance(each, SftpSession) for each in self._spare) < MOST_SPARE
            keeps = self.limit is not None or few or isinstance(lane, SumsShell)
            if lane in self._sessions and not lane.has_ended and keeps:
                self._spare.append(lane)
                self._changed.notify_all()
                return
        lane.close()

    def close(self) -> None:
        """Close the sessions that nobody uses."""
        while self._spare:
            self._spare.popleft().close()

    def _take(self, options: LaneOptions, kind: type[Lane], while_waiting: Callable[[], None]) -> Lane | None:
        """Return a session of a kind that was given back; None: the caller is to open one."""
        while True:
            lane = self._turn(
                options.stop,
                waits=options.waits_for_turn,
                while_waiting=while_waiting,
                fits=lambda spare: isinstance(spare, kind),
            )
            if lane is None:
                return None
            if isinstance(lane, kind) and not lane.has_ended:
                return lane
            lane.close()
            if not isinstance(lane, kind):  # so its place is ours
                return None

    def _opened(self, options: LaneOptions) -> SftpSession:
        """Open a session; raises what kept it from that."""
        try:
            with self._first_login:
                if all(lane.has_ended for lane in list(self._sessions)):
                    return self._added(self._first(options))
            return self._added(self._further(options))
        finally:
            self._is_opened()

    def _opened_shell(self, options: LaneOptions) -> SumsShell:
        """Open a shell, in the shared connection where that takes one; raises what kept it from that."""
        try:
            try:
                return self._added(self._started_shell(self.login.shared(), options))
            except SessionRefused:
                shell = self._alone(lambda: self._started_shell(self.login.alone(), options))
                if shell is None:
                    raise
                return self._added(shell)
            except ConnectionLost:
                if self.login.is_up:
                    raise
                with self._first_login:
                    self.give_back(self._added(self._first(options)))
                return self._added(self._started_shell(self.login.shared(), options))
        finally:
            self._is_opened()

    def _is_opened(self) -> None:
        with self._changed:
            self._opening -= 1
            self._changed.notify_all()

    def _added(self, lane: OneLane) -> OneLane:
        with self._changed:
            self._sessions.add(lane)
            if self.limit is not None and len(self._sessions) > self.limit:
                self.limit = None  # it admits more than it did
            lane.closed = lambda: self._was_closed(lane)
        return lane

    def _first(self, options: LaneOptions) -> SftpSession:
        """Open a session where there is none: the connection that is shared may be there, or is made."""
        self.login.share()
        if self.login.is_up:
            try:
                return self._started(self.login.shared(), options)
            except SessionRefused:
                session = self._alone(lambda: self._started(self.login.alone(), options))
                if session is None:
                    raise
                return session
        self.login.check()
        patient = replace(options, connect_timeout_s=max(options.connect_timeout_s, LOGIN_S))
        process = SshProcess(of_subsystem(self.login.first()), SUBSYSTEM, self.login.name)
        try:
            session = self._begun(process, patient)
        except AuthenticationError as error:
            raise self.login.refused(error) from None
        self.login.passed(process.said(), is_in=True)
        return session

    def _further(self, options: LaneOptions) -> SftpSession:
        """Open one more: in a connection of its own where it is to move data, else in the shared one.

        That may be gone while others have connections of their own: it is made anew.
        """

        def alone() -> SftpSession:
            return self._started(self.login.alone(), options)

        if options.moves_data and (session := self._alone(alone)):
            return session
        try:
            return self._started(self.login.shared(), options)
        except SessionRefused:
            if options.moves_data or not (session := self._alone(alone)):
                raise
            return session
        except ConnectionLost:
            if self.login.is_up:
                raise
            with self._first_login:
                return self._first(options)

    def _alone(self, started: Callable[[], OneLane]) -> OneLane | None:
        """Open one in a connection of its own; None where that needs somebody who types, or fails."""
        with contextlib.nullcontext() if self.login.may_log_in else self._trying_alone:
            if self.login.may_log_in is False or time.monotonic() < self._alone_from_s:
                return None
            try:
                with self._logins:
                    lane = started()
            except AuthenticationError:
                self.login.may_log_in = False  # it needs somebody who types
            except CommandEnded:
                raise
            except (ConnectionLost, TransferTimeout):
                self._alone_from_s = time.monotonic() + STANDS_S
            else:
                self.login.may_log_in = True
                return lane
        return None

    def _started(self, words: list[str], options: LaneOptions) -> SftpSession:
        return self._begun(SshProcess(of_subsystem(words), SUBSYSTEM, self.login.name), options)

    def _begun(self, process: SshProcess, options: LaneOptions) -> SftpSession:
        session = SftpSession(process, options.timeout_s, options.stop)
        try:
            session.begin(options.connect_timeout_s)
        except BaseException:
            session.close()
            raise
        self.begins_in = session.begins_in
        return session

    def _started_shell(self, words: list[str], options: LaneOptions) -> SumsShell:
        shell = SumsShell(SshProcess(words, sums_script.command(), self.login.name), options.timeout_s)
        try:
            shell.begin(options.connect_timeout_s, options.stop)
        except BaseException:
            shell.close()
            raise
        return shell

    def _was_closed(self, lane: Lane) -> None:
        with self._changed:
            self._sessions.discard(lane)
            self._changed.notify_all()

    def _is_passing(self, refusal: MpxError, pauses: Iterator[float], options: LaneOptions) -> bool:
        """Wait a moment where a session that has ended may still count; False where that was long enough."""
        pause_s = next(pauses, None)
        if pause_s is None or not isinstance(refusal, SessionRefused):
            return False
        with self._changed:
            self._changed.wait(pause_s)
        if options.stop():
            raise Interrupted
        return True

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
