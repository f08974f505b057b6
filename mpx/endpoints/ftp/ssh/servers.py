"""The servers that a copy has started at the other ends of ssh, shared by all of its sessions."""

import threading
from typing import TYPE_CHECKING

from mpx.choices import PortRange
from mpx.endpoints.ssh.command_line import RemoteProgram
from mpx.location import Location

if TYPE_CHECKING:
    from mpx.endpoints.ftp.ssh.remote_server import RemoteServer
    from mpx.endpoints.ftp.ssh.sshftp import SshftpServer
    from mpx.endpoints.ftp.ssh.start import EarlySsh


class RemoteServers:
    """One server for each place. For any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._early: dict[object, EarlySsh] = {}
        self._servers: dict[object, RemoteServer] = {}
        self._sshftp: dict[object, SshftpServer] = {}

    def log_in(self, location: Location, program: RemoteProgram) -> None:
        """Begin to log in before the first session is wanted. Raises UsageError where there is no ssh."""
        from mpx.endpoints.ftp.ssh.start import early_ssh

        early = early_ssh(location, program)
        with self._lock:
            self._early[location.endpoint] = early

    def at(self, location: Location, program: RemoteProgram, ports: PortRange | None) -> "RemoteServer":
        """Return that of a location; it starts with its first session."""
        from mpx.endpoints.ftp.ssh.remote_server import RemoteServer

        with self._lock:
            if location.endpoint not in self._servers:
                early = self._early.pop(location.endpoint, None)
                self._servers[location.endpoint] = RemoteServer(location, program, ports, early)
            return self._servers[location.endpoint]

    def serve_by(self, location: Location, sshftp: "SshftpServer | None") -> None:
        """Have a GridFTP server serve a location in place of ours, which is not there; None: not any more."""
        with self._lock:
            before = self._sshftp.pop(location.endpoint, None)
            if sshftp is not None:
                self._sshftp[location.endpoint] = sshftp
        if before is not None:
            before.close()

    def sshftp_at(self, location: Location) -> "SshftpServer | None":
        """Return the GridFTP server that serves a location, if it is not ours."""
        with self._lock:
            return self._sshftp.get(location.endpoint)

    def close(self) -> None:
        """End them."""
        with self._lock:
            unused, self._early = list(self._early.values()), {}
            servers, self._servers = list(self._servers.values()), {}
            others, self._sshftp = list(self._sshftp.values()), {}
        for other in others:
            other.close()
        for early in unused:
            early.close()
        for server in servers:
            server.close()
