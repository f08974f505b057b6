"""A session with one of two servers between which data pass through us."""

from collections.abc import Sequence
from dataclasses import replace

from mpx.endpoints.ftp.session import ClientSession, SessionOptions, Sessions
from mpx.endpoints.ftp.session_pool import give_back_session, is_session_wanted, open_session
from mpx.endpoints.ftp.two_servers.server_pair import turn_to
from mpx.errors import AuthenticationError, ConnectionLost, TransferTimeout
from mpx.location import Location


class FtpRelayEnd:
    """See RelayEnd: what sources and sinks have in common. `opening`: MODE, and what else is said first."""

    def __init__(self, location: Location, options: SessionOptions, opening: Sequence[bytes]) -> None:
        self._location, self._options, self._opening = location, options, tuple(opening)
        self._session: ClientSession | None = None  # replaced by the worker's thread only
        self._is_busy = False  # a transfer has begun, and what the server says at its end was not read

    @property
    def host(self) -> str:
        """See RelayEnd."""
        return self._location.host

    @property
    def files_at_once(self) -> int:
        """See RelayEnd."""
        return 1

    @property
    def pool(self) -> Sessions | None:
        """See RelayEnd."""
        return self._options.pool

    @property
    def is_wanted(self) -> bool:
        """See RelayEnd."""
        return is_session_wanted(self._options)

    @property
    def session(self) -> ClientSession:
        """The session that was opened."""
        assert self._session is not None
        return self._session

    def open(self, *, waits: bool) -> None:
        """See RelayEnd."""
        if self._session is None:
            session = open_session(
                self._location, replace(self._options, waits_for_turn=waits), self._opening
            )
            try:
                turn_to(session, self._opening)
            except BaseException:
                session.close()
                raise
            self._session, self._is_busy = session, False

    def settle(self) -> bool:
        """See RelayEnd. In MODE S, where the end of the data connection is that of a transfer."""
        if self._session is None:
            return False
        if self._is_busy:
            try:
                self._session.reply_to_cut()
            except (AuthenticationError, ConnectionLost, TransferTimeout):
                return False
            self._is_busy = False
        return True

    def give_back(self) -> None:
        """See RelayEnd."""
        session, self._session = self._session, None
        self._leave()
        if session is not None:
            give_back_session(session)

    def close(self) -> None:
        """See RelayEnd."""
        session, self._session = self._session, None
        self._leave()
        if session is not None:
            session.close()

    def cut(self) -> None:
        """See RelayEnd."""
        if session := self._session:
            session.abort()
        self._cut_data()

    def _leave(self) -> None:
        """Close a data connection that stays open with the session."""

    def _cut_data(self) -> None:
        """Reset the data connection; from any thread."""
        raise NotImplementedError
