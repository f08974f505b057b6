"""How much of a file is stored so far, asked over another session: in MODE S no marker tells."""

from dataclasses import replace

from mpx.endpoints.ftp.session import ClientSession, SessionOptions
from mpx.endpoints.ftp.session_pool import open_session
from mpx.endpoints.ftp.stored_size import stored_sizes
from mpx.errors import MpxError
from mpx.location import Location


class StoredObserver:
    """Used by one thread, but for `cut`. Opens its session when first asked."""

    def __init__(self, location: Location, options: SessionOptions) -> None:
        self._location, self._options = location, replace(options, waits_for_turn=False)
        self._session: ClientSession | None = None

    def stored_bytes(self, name: str) -> int | None:
        """Return how many bytes are stored under a name; None where that cannot be known."""
        try:
            if self._session is None:
                self._session = open_session(self._location, self._options)
            (stored,) = stored_sizes(self._session, [self._session.name(name)])
        except MpxError:
            self.close()
            return None
        return stored

    def cut(self) -> None:
        """Reset the session; from any thread."""
        if session := self._session:
            session.abort()

    def close(self) -> None:
        """Close the session, if there is one."""
        session, self._session = self._session, None
        if session:
            session.close()
