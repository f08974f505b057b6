"""An SFTP session at one end of a relay, and the file that it has open there."""

from collections.abc import Sequence
from dataclasses import replace

from mpx.endpoints.sftp import wire
from mpx.endpoints.sftp.lanes import LaneOptions, SftpLanes
from mpx.endpoints.sftp.session import HANDLES_LEFT, MOST_UNTOLD, SftpSession, request
from mpx.endpoints.sftp.wire import Attributes, Handle, PacketKind, Reply
from mpx.errors import AuthenticationError, ConnectionLost, TransferTimeout

WINDOW_BYTES = 4 * 1024 * 1024  # that may be under way: twice what ssh has under way in one session
MOST_FILES = 48  # small ones that are under way together


class SftpRelayEnd:
    """See RelayEnd: what sources and sinks have in common."""

    def __init__(self, pool: SftpLanes, options: LaneOptions) -> None:
        self._pool = pool
        self._options = replace(options, moves_data=True)
        self._session: SftpSession | None = None  # replaced by the worker's thread only
        self._handle = b""  # of the file under way, as a field; empty: none is

    @property
    def host(self) -> str:
        """See RelayEnd."""
        return self._pool.name

    @property
    def files_at_once(self) -> int:
        """See RelayEnd. It shows with a session."""
        if self._session is None:
            return 1
        handles = (self._session.limits.handles or MOST_UNTOLD) - HANDLES_LEFT
        return max(1, min(MOST_FILES, handles))

    @property
    def pool(self) -> SftpLanes:
        """See RelayEnd."""
        return self._pool

    @property
    def is_wanted(self) -> bool:
        """See RelayEnd."""
        return self._pool.is_wanted

    @property
    def session(self) -> SftpSession:
        """The session that was opened."""
        assert self._session is not None
        return self._session

    def open(self, *, waits: bool) -> None:
        """See RelayEnd."""
        if self._session is not None and self._session.is_outdated and not self._handle:
            self.close()
        if self._session is None:
            self._session = self._pool.open(replace(self._options, waits_for_turn=waits))

    def settle(self) -> bool:
        """See RelayEnd. All that was asked for is answered; nothing is done with the answers."""
        if self._session is None:
            return False
        try:
            self._session.drain()
            self._close_file()
        except (ConnectionLost, TransferTimeout, AuthenticationError):
            return False
        return True

    def give_back(self) -> None:
        """See RelayEnd."""
        session = self._session
        if session is None:
            return
        session.drain()
        self._session = None
        self._pool.give_back(session)

    def close(self) -> None:
        """See RelayEnd."""
        session, self._session, self._handle = self._session, None, b""
        if session is not None:
            session.close()

    def cut(self) -> None:
        """See RelayEnd."""
        if session := self._session:
            session.abort()

    def open_file(self, name: str, flags: int) -> Reply | None:
        """Have a file opened, and keep its handle; return the refusal where there is one."""
        (opened,) = self.open_files([name], flags)
        if not isinstance(opened, bytes):
            return opened
        self._handle = opened
        return None

    def open_files(self, names: Sequence[str], flags: int) -> list[bytes | Reply]:
        """Have files opened together, and return the handle of each as a field, or the refusal."""
        replies = self.session.ask(
            [
                request(PacketKind.OPEN, wire.name(name), wire.u32(flags), wire.attributes(Attributes()))
                for name in names
            ]
        )
        return [wire.text(reply.value) if isinstance(reply, Handle) else reply for reply in replies]

    def _close_file(self) -> None:
        """Have the file closed, whatever the server says to that."""
        handle, self._handle = self._handle, b""
        if handle:
            self.session.submit(request(PacketKind.CLOSE, handle), lambda _: None)
