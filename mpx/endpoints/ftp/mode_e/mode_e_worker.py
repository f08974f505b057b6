"""What the workers of MODE E have in common, in either direction."""

from dataclasses import replace

from mpx.endpoints.ftp.session import SessionOptions
from mpx.engine.session_worker import SessionWorker


class ModeEWorker(SessionWorker):
    """A worker whose sessions are opened with `_options`."""

    _options: SessionOptions

    @property
    def has_part(self) -> bool:
        """Whether it is to move something, as the streams are divided now."""
        raise NotImplementedError

    def connect_early(self) -> None:
        """Make connections for data too, if they will be used; raises as open_session."""

    def open_early(self) -> None:
        """See SessionWorker. It waits for no turn, as there may be nothing to move in the end."""
        if not self.has_part:
            return
        options, self._options = self._options, replace(self._options, waits_for_turn=False)
        try:
            self.open_session()
            self.connect_early()
        except self.retried:
            self.drop()
        finally:
            self._options = options
