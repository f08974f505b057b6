"""An SFTP session at one end of a relay, and the file that it has open there."""

from dataclasses import replace

from mpx.endpoints.sftp import wire
from mpx.endpoints.sftp.lane_pool import LaneOptions, LanePool
from mpx.endpoints.sftp.session import SftpSession, request
from mpx.endpoints.sftp.wire import Attributes, Handle, PacketKind, Reply

WINDOW_BYTES = 4 * 1024 * 1024  # that may be under way: twice what ssh has under way in one session


class SftpRelayEnd:
    """See RelayEnd: what sources and sinks have in common."""

    def __init__(self, pool: LanePool, options: LaneOptions) -> None:
        self._pool = pool
        self._options = replace(options, moves_data=True)
        self._session: SftpSession | None = None  # replaced by the worker's thread only

    @property
    def host(self) -> str:
        """See RelayEnd."""
        return self._pool.login.name

    @property
    def pool(self) -> LanePool:
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
        if self._session is None:
            self._session = self._pool.open(replace(self._options, waits_for_turn=waits))

    def give_back(self) -> None:
        """See RelayEnd."""
        session = self._session
        if session is None:
            return
        while session.outstanding:
            session.pump()
        self._session = None
        self._pool.give_back(session)

    def close(self) -> None:
        """See RelayEnd."""
        session, self._session = self._session, None
        if session is not None:
            session.close()

    def cut(self) -> None:
        """See RelayEnd."""
        if session := self._session:
            session.abort()

    def open_file(self, name: str, flags: int) -> bytes | Reply:
        """Have a file opened, and return its handle as a field, or the refusal."""
        fields = (wire.name(name), wire.u32(flags), wire.attributes(Attributes()))
        (reply,) = self.session.ask([request(PacketKind.OPEN, *fields)])
        return wire.text(reply.value) if isinstance(reply, Handle) else reply
