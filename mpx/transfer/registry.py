"""Which endpoint and which carrier serve a location: the one table of schemes.

Carriers are imported once they are needed: those of files within this host and those of servers.
"""

import contextlib
import socket
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from mpx.choices import parse_ports
from mpx.endpoints.ftp.login import log_in
from mpx.endpoints.ftp.session import ClientSession, SessionOptions
from mpx.endpoints.ftp.session_pool import SessionPool
from mpx.endpoints.ftp.ssh.options import SshOptions
from mpx.endpoints.local.endpoint import LocalEndpoint
from mpx.endpoints.ssh.command_line import RemoteProgram
from mpx.engine.carrier import Carrier, CarrierContext
from mpx.engine.endpoint import Endpoint
from mpx.errors import MpxError, UsageError
from mpx.files.guarded_folders import LocalFolders
from mpx.files.source_trees import ANYWHERE, SourceTrees
from mpx.gridftp import GridFtpEndpoint
from mpx.location import Location
from mpx.net import tcp
from mpx.options import CopyOptions
from mpx.report import OnNote, Severity, no_note

if TYPE_CHECKING:  # imported where there is no mpx at the other end of an ssh
    from mpx.endpoints.sftp.lane_pool import LaneOptions, LanePool

SLOWER = "; --bootstrap, or mpx there, is faster"


def session_options(
    options: CopyOptions,
    stop: Callable[[], bool],
    bound: Callable[[int], None] | None = None,
    pool: SessionPool | None = None,
) -> SessionOptions:
    """Return how sessions of this copy are opened; `bound` gets the port of each before it connects."""
    family = socket.AF_INET if options.ipv4 else socket.AF_INET6 if options.ipv6 else socket.AF_UNSPEC
    return SessionOptions(
        options.connect_timeout_s,
        options.timeout_s,
        family,
        source_ports=tcp.ports(options.source_ports, "GLOBUS_TCP_SOURCE_RANGE"),
        data_address=options.data_address,
        data_address_from_server=options.data_address_from_server,
        stop=stop,
        bound=bound,
        pool=pool,
        unreached=set() if pool is None else pool.unreached,
        known=None if pool is None else pool.known,
        ssh=ssh_options(options, pool),
    )


def ssh_options(options: CopyOptions, pool: SessionPool | None) -> SshOptions:
    """Return how the other end of an ssh is reached; sessions of a pool share one server there."""
    ports = parse_ports(options.data_ports) if options.data_ports else None
    servers = pool.remote_servers if pool else None
    program = RemoteProgram(
        options.remote_mpx,
        options.remote_python or "python3",
        bootstrap=options.bootstrap or options.bootstrap_once,
        keep=not options.bootstrap_once,
    )
    return SshOptions(program, ports, servers)


def sftp_lanes(
    location: Location, options: CopyOptions, stop: Callable[[], bool], pool: SessionPool, note: OnNote
) -> "LanePool | None":
    """Find out what serves a location; return the sessions of SFTP where nothing better does.

    None for another scheme, and where mpx is at the other end of the ssh: then the pool has its server. Where
    mpx was named, or is to be sent, nothing takes its place. Raises as ServerProcess.begin.
    """
    if location.scheme != "ssh":
        return None
    from mpx.endpoints.ftp.ssh.server_process import NoServer
    from mpx.endpoints.ssh.process import CommandEnded

    ssh = ssh_options(options, pool)
    server = pool.remote_servers.at(location, ssh.program, ssh.data_ports)
    try:
        server.start(options.connect_timeout_s, stop)
        return None
    except (NoServer, CommandEnded) as error:
        if not ssh.program.is_looked_for:
            raise
        missing: MpxError = error
    from mpx.endpoints.sftp.lane_pool import LaneOptions, LanePool

    lanes = LanePool(server.login, note)
    try:
        lanes.give_back(lanes.open(LaneOptions(options.connect_timeout_s, options.timeout_s, stop)))
    except CommandEnded as error:
        if isinstance(missing, NoServer):
            raise NoServer(f"{missing}; nor does it offer SFTP, which mpx would use instead") from None
        raise CommandEnded(f"{missing}; nor does it offer SFTP: {error}") from None
    note(f"{server.login.name} has no mpx, so SFTP is used{SLOWER}", Severity.NOTICE)
    return lanes


def log_in_to_probe(
    location: Location, options: CopyOptions, pool: SessionPool
) -> Callable[[SessionOptions], ClientSession] | None:
    """Return what opens a session for probes, where that is not in the clear."""
    if location.scheme in ("file", "ftp"):
        return None
    ssh = ssh_options(options, pool)
    return lambda session: log_in(ClientSession(location, replace(session, ssh=ssh)))


def open_endpoint(
    location: Location,
    options: CopyOptions,
    stop: Callable[[], bool],
    *,
    writing: bool,
    bound: Callable[[int], None] | None = None,
    pool: SessionPool | None = None,
) -> Endpoint:
    """Return the endpoint of a location, opened for itself; see session_options."""
    return endpoint_at(location, session_options(options, stop, bound, pool), writing=writing)


@contextlib.contextmanager
def opened_endpoint(
    location: Location, options: CopyOptions, *, writing: bool, note: OnNote = no_note
) -> Iterator[Endpoint]:
    """Open the endpoint of a location for a command that asks only it."""
    with contextlib.ExitStack() as stack:
        pool = stack.enter_context(contextlib.closing(SessionPool(note, remembers=False)))
        lanes = sftp_lanes(location, options, _never, pool, note)
        if lanes is not None:
            stack.enter_context(contextlib.closing(lanes))
        session = session_options(options, _never, pool=pool)
        end = endpoint_at(location, session, writing=writing, note=note, lanes=lanes)
        yield stack.enter_context(contextlib.closing(end))


def _never() -> bool:
    return False


def endpoint_at(
    location: Location,
    session: SessionOptions,
    *,
    writing: bool,
    note: OnNote = no_note,
    folders: LocalFolders | None = None,
    trees: SourceTrees = ANYWHERE,
    lanes: "LanePool | None" = None,
) -> Endpoint:
    """Return the endpoint of a location; a remote one connects when first used.

    `note` takes lines for the report; `folders` has the folders that a copy writes to on this host, and
    `trees` those that it reads; `lanes`: see sftp_lanes.
    """
    if location.scheme == "file":
        return LocalEndpoint(location, writing=writing, folders=folders, trees=trees)
    if lanes is not None:
        from mpx.endpoints.sftp.endpoint import SftpEndpoint

        return SftpEndpoint(location, lanes, lane_options(session), writing=writing)
    return GridFtpEndpoint(location, session, writing=writing, note=note)


def lane_options(session: SessionOptions) -> "LaneOptions":
    """Return how sessions of SFTP are opened."""
    from mpx.endpoints.sftp.lane_pool import LaneOptions

    return LaneOptions(session.connect_timeout_s, session.timeout_s, session.stop, session.waits_for_turn)


def check_pair(source: Location, destination: Location) -> None:
    """Raise UsageError for a pair that no carrier serves."""
    if source.scheme != "file" and destination.scheme != "file":
        raise UsageError(
            "mpx does not yet copy from one server to another; copy to this host first, then from here"
        )


def carrier_for(
    far: Location,
    context: CarrierContext,
    pool: SessionPool,
    *,
    upload: bool,
    mode_e: bool,
    restarts: bool,
    congestions: Sequence[str],
    lanes: "LanePool | None" = None,
) -> Carrier:
    """Return what moves the bytes to or from `far`: in MODE E if `mode_e`, else in MODE S.

    `pool` has the sessions with the server. `restarts`: the server understands REST.
    `congestions` are those that the server can be told to send with. `lanes`: see sftp_lanes.
    """
    if far.scheme == "file":
        from mpx.endpoints.local.carrier import LocalCarrier

        return LocalCarrier(context)
    options = session_options(context.options, context.failure.cancel.is_set, pool=pool)
    if lanes is not None:
        from mpx.endpoints.sftp.carrier import SftpCarrier

        sessions = context.options.max_sessions
        return SftpCarrier(lanes, lane_options(options), context, upload=upload, sessions=sessions)
    if not mode_e:
        from mpx.endpoints.ftp.mode_s.carrier import StreamCarrier

        most = context.options.max_sessions
        whole_files = upload or not restarts
        return StreamCarrier(far, options, context, upload=upload, whole_files=whole_files, sessions=most)
    from mpx.endpoints.ftp.mode_e.carriers import DownloadCarrier, UploadCarrier

    if upload:
        return UploadCarrier(far, options, context)
    return DownloadCarrier(far, options, context, congestions)
