"""How connections to a server begin, by the scheme: in the clear, or as secured.py says."""

from mpx.endpoints.ftp.gsi.options import GsiMemory, GsiOptions
from mpx.endpoints.ftp.secured import Security
from mpx.endpoints.ftp.ssh.options import SshOptions
from mpx.location import Location


def security_for(location: Location, ssh: SshOptions, gsi: GsiOptions, memory: GsiMemory) -> Security | None:
    """Return how connections to a location begin; None: in the clear.

    Raises AuthenticationError where there is nothing to log in with, UsageError where it cannot be used.
    """
    if location.scheme == "mpx":
        from mpx.endpoints.ftp.token_security import TokenSecurity

        return TokenSecurity(location)
    if location.scheme == "ssh":
        if ssh.servers and (sshftp := ssh.servers.sshftp_at(location)):
            from mpx.endpoints.ftp.ssh.sshftp_security import SshftpSecurity

            return SshftpSecurity(sshftp)
        from mpx.endpoints.ftp.ssh.security import SshSecurity

        return SshSecurity(location, ssh)
    if location.scheme == "gsiftp":
        from mpx.endpoints.ftp.gsi.security import GsiSecurity

        return GsiSecurity(location, gsi, memory)
    return None
