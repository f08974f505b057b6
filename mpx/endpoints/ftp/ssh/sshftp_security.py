"""Connections to a GridFTP server at the other end of ssh: data pass encrypted, or not at all."""

import socket
from collections.abc import Callable, Sequence

from mpx.endpoints.ftp.gsi.data import GsiData
from mpx.endpoints.ftp.secured import CERTIFICATE, DataHosts, Security
from mpx.endpoints.ftp.ssh.sshftp import SshftpServer
from mpx.endpoints.ftp.wire import Reply, command
from mpx.endpoints.passwords import ANONYMOUS
from mpx.errors import AuthenticationError, ConnectionLost, MpxError

_USER = "mpx"  # whoever is named, it is the account of the ssh
_IGNORED, _NOT_LOGGED_IN = 202, 530


class SshftpSecurity(Security):
    """See Security."""

    carries_any_name = False  # the server's telnet driver reads the commands

    def __init__(self, server: SshftpServer) -> None:
        self._server = server

    @property
    def login(self) -> tuple[str, str]:
        """See Security."""
        return _USER, ANONYMOUS

    @property
    def tickets(self) -> None:
        """See Security: data connections are at ports."""

    def control(
        self,
        reach: Callable[[], socket.socket],  # noqa: ARG002  ssh does
        timeout_s: float,
        stop: Callable[[], bool],
    ) -> socket.socket:
        """See Security: ssh reaches the server."""
        return self._server.control(timeout_s, stop)

    @property
    def hosts(self) -> DataHosts:
        """See Security."""
        return self._server.hosts

    @property
    def settings(self) -> tuple[bytes, ...]:
        """See Security."""
        shown = self._server.certificate.handing_over
        return command("DCAU", "A"), command("PBSZ", 1 << 20), command("PROT", "P"), shown

    def settled(self, replies: Sequence[Reply]) -> None:
        """See Security."""
        for line, reply in zip(self.settings, replies, strict=True):
            verb = line.split()[0].decode("ascii")
            if verb == "DCSC" and 400 <= reply.code < 500:
                raise ConnectionLost(f"{self._server.name} does not take a certificate now: {reply.reason}")
            if verb != "PBSZ" and (not reply.is_ok or reply.code == _IGNORED):
                raise AuthenticationError(
                    f"the GridFTP server of {self._server.name} cannot encrypt data: it refuses {verb} "
                    f"({reply.code} {reply.reason})"
                )

    @property
    def secured(self) -> GsiData:
        """See Security."""
        return self._server.certificate.connections(self._server.name, is_private=True)

    @property
    def data_identity(self) -> str:
        """See Security."""
        return CERTIFICATE

    @property
    def is_translated(self) -> bool:
        """See Security."""
        return self._server.is_translated

    def refused(self, reply: Reply, peer: str) -> MpxError | None:  # noqa: ARG002
        """See Security."""
        if reply.code != _NOT_LOGGED_IN:
            return None
        return AuthenticationError(
            f"the GridFTP server of {self._server.name} does not let us in: {reply.reason}"
        )

    def close(self) -> None:
        """See Security: nothing."""
