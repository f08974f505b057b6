"""What serves the other end of an ssh: mpx, else a GridFTP server (sshftp), else SFTP."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from mpx.endpoints.ftp.session_pool import SessionPool
from mpx.endpoints.schemes import capabilities_of
from mpx.errors import MpxError, UsageError
from mpx.location import Location
from mpx.options import CopyOptions
from mpx.report import OnNote, Severity
from mpx.transfer.registry import session_options, ssh_options

if TYPE_CHECKING:  # imported where there is no mpx at the other end
    from mpx.endpoints.ftp.ssh.answer import NoServer
    from mpx.endpoints.sftp.lane_pool import LanePool
    from mpx.endpoints.ssh.login import SshLogin

SLOWER = "; --bootstrap, or mpx there, is faster"
_NOT_OF_SSHFTP = ("data_ports", "controller")  # what it cannot be told; SFTP refuses them by name


def find_protocol(
    location: Location,
    options: CopyOptions,
    stop: Callable[[], bool],
    pool: SessionPool,
    note: OnNote,
    *,
    names: Sequence[str],
) -> "LanePool | None":
    """Find out what serves a location; return the sessions of SFTP where nothing better does.

    None for another scheme, and where mpx or a GridFTP server is at the other end of the ssh: then the pool
    has it. Where mpx was named, or is to be sent, nothing takes its place. `names`: that are used there, as
    far as they are known. Raises as answer.begin.
    """
    if not capabilities_of(location).through_ssh:
        return None
    from mpx.endpoints.ftp.ssh.answer import NoServer
    from mpx.endpoints.ssh.process import CommandEnded

    ssh = ssh_options(options, pool.remote_servers)
    if pool.remote_servers.sshftp_at(location):
        return None
    server = pool.remote_servers.at(location, ssh.program, ssh.data_ports)
    try:
        server.start(options.connect_timeout_s, stop)
        return None
    except (NoServer, CommandEnded) as error:
        if not ssh.program.is_looked_for:
            raise
        missing: MpxError = error
    why = _why_not_sshftp(server.login, missing, location, options, stop, pool, names)
    if why is None:
        found = "its GridFTP server is used (sshftp)"
        note(f"{server.login.name} has no mpx, so {found}{SLOWER}", Severity.NOTICE)
        return None
    lanes = _sftp_lanes(server.login, missing, options, stop, note)
    because = f", as its GridFTP server cannot be ({why})" if why else ""
    note(f"{server.login.name} has no mpx, so SFTP is used{because}{SLOWER}", Severity.NOTICE)
    return lanes


def _why_not_sshftp(
    login: "SshLogin",
    missing: "MpxError | NoServer",
    location: Location,
    options: CopyOptions,
    stop: Callable[[], bool],
    pool: SessionPool,
    names: Sequence[str],
) -> str | None:
    """Have a GridFTP server serve a location; return why that cannot be, empty where there is none."""
    connection: str | None = getattr(missing, "connection", None)
    if connection is None:
        return ""
    for name in _NOT_OF_SSHFTP:
        if options.was_given(name) and getattr(options, name):
            return ""
    from mpx.endpoints.ftp.ssh.sshftp import SshftpServer
    from mpx.endpoints.ftp.sshftp_trial import why_not_sshftp

    server = SshftpServer(login, connection)
    pool.remote_servers.serve_by(location, server)
    try:
        why = why_not_sshftp(server, location, pool, session_options(options, stop, pool=pool), names)
    except BaseException:
        pool.remote_servers.serve_by(location, None)
        raise
    if why:
        pool.remote_servers.serve_by(location, None)
        return why
    return None


def turn_to_sftp(
    location: Location,
    why: str,
    options: CopyOptions,
    stop: Callable[[], bool],
    pool: SessionPool,
    note: OnNote,
) -> "LanePool":
    """Return sessions of SFTP in place of the GridFTP server of a location; raises why there are none."""
    sshftp = pool.remote_servers.sshftp_at(location)
    assert sshftp
    lanes = _sftp_lanes(sshftp.login, UsageError(why), options, stop, note)
    pool.remote_servers.serve_by(location, None)
    note(f"SFTP is used in place of sshftp: {why}", Severity.NOTICE)
    return lanes


def _sftp_lanes(
    login: "SshLogin", missing: MpxError, options: CopyOptions, stop: Callable[[], bool], note: OnNote
) -> "LanePool":
    """Return sessions of SFTP; raises why there are none."""
    from mpx.endpoints.ftp.ssh.answer import NoServer
    from mpx.endpoints.sftp.lane_pool import LanePool
    from mpx.endpoints.sftp.lanes import LaneOptions
    from mpx.endpoints.ssh.process import CommandEnded

    lanes = LanePool(login, note)
    try:
        lanes.give_back(lanes.open(LaneOptions(options.connect_timeout_s, options.timeout_s, stop)))
    except CommandEnded as error:
        if isinstance(missing, NoServer):
            raise NoServer(f"{missing}; nor does it offer SFTP, which mpx would use instead") from None
        raise CommandEnded(f"{missing}; nor does it offer SFTP: {error}") from None
    return lanes
