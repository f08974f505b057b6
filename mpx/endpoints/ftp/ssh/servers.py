"""The servers that a copy has started at the other ends of ssh, shared by all of its sessions."""

import threading
from typing import TYPE_CHECKING

from mpx.choices import PortRange
from mpx.endpoints.ssh.command_line import RemoteProgram
from mpx.location import Location

if TYPE_CHECKING:
    from mpx.endpoints.ftp.ssh.remote_server import RemoteServer


class RemoteServers:
    """One server for each place. For any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._servers: dict[object, RemoteServer] = {}

    def at(self, location: Location, program: RemoteProgram, ports: PortRange | None) -> "RemoteServer":
        """Return that of a location; it starts with its first session."""
        from mpx.endpoints.ftp.ssh.remote_server import RemoteServer

        with self._lock:
            if location.endpoint not in self._servers:
                self._servers[location.endpoint] = RemoteServer(location, program, ports)
            return self._servers[location.endpoint]

    def close(self) -> None:
        """End them."""
        with self._lock:
            servers, self._servers = list(self._servers.values()), {}
        for server in servers:
            server.close()
