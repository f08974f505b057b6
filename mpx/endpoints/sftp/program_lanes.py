"""Sessions with programs of ours that serve SFTP: a process for each, so that none harms another."""

from collections.abc import Callable

from mpx.endpoints.child_process import ChildProcess
from mpx.endpoints.sftp.lanes import LaneOptions
from mpx.endpoints.sftp.session import SftpSession
from mpx.engine.session_turns import TurnsForSessions
from mpx.report import OnNote, no_note

MOST_SPARE = 2


class ProgramLanes(TurnsForSessions[SftpSession, SftpSession]):
    """See SftpLanes. As many as are asked for: what the storage admits shows as the goodput of each."""

    begins_in = "/"
    server_url = ""
    least_window_bytes = 512 * 1024

    def __init__(self, name: str, start: Callable[[], ChildProcess], note: OnNote = no_note) -> None:
        """`name`: of the host; `start`: a further process, see its class for what that raises."""
        super().__init__(note)
        self.name = name
        self._start = start

    def open(self, options: LaneOptions, /) -> SftpSession:
        """See SftpLanes."""
        while True:
            spare = self._turn(
                options.stop, waits=options.waits_for_turn, while_waiting=options.while_waiting
            )
            if spare is None:
                return self._opened(options)
            if not (spare.has_ended or spare.is_outdated):
                spare.stop = options.stop
                return spare
            spare.close()

    def give_back(self, lane: SftpSession, /) -> None:
        """See SftpLanes."""
        with self._changed:
            if lane in self._sessions and not lane.has_ended and len(self._spare) < MOST_SPARE:
                self._spare.append(lane)
                self._changed.notify_all()
                return
        lane.close()

    def close(self) -> None:
        """See SftpLanes."""
        while self._spare:
            self._spare.popleft().close()

    def _opened(self, options: LaneOptions) -> SftpSession:
        try:
            session = SftpSession(self._start(), options.timeout_s, options.stop)
            try:
                session.begin(options.connect_timeout_s, options.ahead)
            except BaseException:
                session.close()
                raise
            with self._changed:
                self._sessions.add(session)
            session.closed = lambda: self._was_closed(session)
            return session
        finally:
            with self._changed:
                self._opening -= 1
                self._changed.notify_all()

    def _was_closed(self, session: SftpSession) -> None:
        with self._changed:
            self._sessions.discard(session)
            self._changed.notify_all()
