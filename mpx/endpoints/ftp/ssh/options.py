"""What `ssh://` is told by hand."""

from dataclasses import dataclass, field

from mpx.choices import PortRange
from mpx.endpoints.ftp.ssh.servers import RemoteServers
from mpx.endpoints.ssh.command_line import RemoteProgram


@dataclass(frozen=True, slots=True)
class SshOptions:
    """How to reach the other end of an ssh. `servers`: those of one copy; None: one of its own."""

    program: RemoteProgram = field(default_factory=RemoteProgram)
    data_ports: PortRange | None = None  # there, for direct connections
    servers: RemoteServers | None = None
