"""The files of a host that an ssh leads to, and where nothing better than SFTP serves them."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from mpx.endpoints.sftp.capabilities import SFTP
from mpx.endpoints.sftp.endpoint import SftpEndpoint
from mpx.endpoints.sftp.lane_pool import LanePool
from mpx.endpoints.sftp.lanes import LaneOptions
from mpx.endpoints.sftp.remote_sums import RemoteSums
from mpx.endpoints.tickets import without_tickets
from mpx.engine.capabilities import Capabilities, Question
from mpx.engine.endpoint import Part
from mpx.location import Location


class SshFilesEndpoint(SftpEndpoint):
    """See SftpEndpoint."""

    def __init__(self, location: Location, pool: LanePool, options: LaneOptions, *, writing: bool) -> None:
        super().__init__(location, pool, options, writing=writing)
        self._sums = RemoteSums(pool, options, self.let_go)

    @property
    def capabilities(self) -> Capabilities:
        """See Endpoint."""
        host = self.location.host
        why = f"{host} has no mpx, and ssh moves the data; give --bootstrap too"
        return replace(SFTP, third_party=without_tickets(host), why_program=why)

    def find_out(self, *questions: Question) -> Capabilities:
        """See Endpoint. Checksums are those that the account there has a program for."""
        if Question.CHECKSUMS in questions and not self._sums.is_there:
            return replace(self.capabilities, checksums=(), part_checksums=())
        return self.capabilities

    def checksums(
        self, algorithm: str, parts: Sequence[Part], stop: Callable[[], bool]
    ) -> list[str | Exception]:
        """See Endpoint."""
        if algorithm != RemoteSums.ALGORITHM:
            return [RemoteSums.none(self.location.host, self._refusal) for _ in parts]
        return self._sums.of(parts, self._refusal, stop)
