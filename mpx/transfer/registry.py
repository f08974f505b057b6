"""Which endpoint and which carrier serve a location: the one table of schemes.

Carriers are imported once they are needed: those of files within this host and those of servers.
"""

import socket
from collections.abc import Callable, Sequence
from dataclasses import replace

from mpx.choices import parse_ports
from mpx.endpoints.ftp.credentials import check_one_password as check_one_password
from mpx.endpoints.ftp.gsi.options import GsiOptions
from mpx.endpoints.ftp.login import log_in
from mpx.endpoints.ftp.session import ClientSession, SessionOptions
from mpx.endpoints.ftp.session_pool import SessionPool
from mpx.endpoints.ftp.ssh.command_line import RemoteProgram
from mpx.endpoints.ftp.ssh.options import SshOptions
from mpx.endpoints.local.endpoint import LocalEndpoint
from mpx.engine.carrier import Carrier, CarrierContext
from mpx.engine.endpoint import Endpoint
from mpx.files.guarded_folders import LocalFolders
from mpx.files.source_trees import ANYWHERE, SourceTrees
from mpx.gridftp import GridFtpEndpoint
from mpx.location import Location
from mpx.net import tcp
from mpx.options import CopyOptions
from mpx.report import OnNote, no_note


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
        gsi=gsi_options(options, pool),
        without_dcsc=set() if pool is None else pool.without_dcsc,
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


def gsi_options(options: CopyOptions, pool: SessionPool | None = None) -> GsiOptions:
    """Return what the user says of connections with GSI, and the certificate that two servers share."""
    shared = pool.data_certificate if pool else ""
    return GsiOptions(options.encrypt, options.dcau, options.delegate, options.server_subject, shared)


def shared_certificate(source: Location, destination: Location) -> str:
    """Return what data connections between two servers show at both ends; empty where they show nothing."""
    if (source.scheme, destination.scheme) != ("gsiftp", "gsiftp"):
        return ""
    from mpx.endpoints.ftp.gsi.security import data_certificate

    return data_certificate()


def log_in_to_probe(
    location: Location, options: CopyOptions, pool: SessionPool
) -> Callable[[SessionOptions], ClientSession] | None:
    """Return what opens a session for probes, where that is not in the clear."""
    if location.scheme in ("file", "ftp"):
        return None
    ssh, gsi = ssh_options(options, pool), gsi_options(options, pool)
    return lambda session: log_in(ClientSession(location, replace(session, ssh=ssh, gsi=gsi)))


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


def endpoint_at(
    location: Location,
    session: SessionOptions,
    *,
    writing: bool,
    note: OnNote = no_note,
    folders: LocalFolders | None = None,
    trees: SourceTrees = ANYWHERE,
) -> Endpoint:
    """Return the endpoint of a location; a remote one connects when first used.

    `note` takes lines for the report; `folders` has the folders that a copy writes to on this host, and
    `trees` those that it reads.
    """
    if location.scheme == "file":
        return LocalEndpoint(location, writing=writing, folders=folders, trees=trees)
    return GridFtpEndpoint(location, session, writing=writing, note=note)


def carrier_between(
    source: Location,
    destination: Location,
    context: CarrierContext,
    pools: tuple[SessionPool, SessionPool],
    *,
    is_third_party: bool,
    mode_e: bool,
    parts: bool,
) -> Carrier:
    """Return what brings files from one server to another; `pools` have the sessions with each of them.

    `mode_e`: the destination receives in MODE E; `parts`: of files can be sent and stored.
    """
    from mpx.endpoints.ftp.two_servers.carriers import RelayCarrier, ThirdPartyCarrier
    from mpx.endpoints.ftp.two_servers.server_pair import ServerPair

    stop = context.failure.cancel.is_set
    opened = [session_options(context.options, stop, pool=pool) for pool in pools]
    servers = ServerPair(source, destination, opened[0], opened[1], mode_e, parts)
    return (ThirdPartyCarrier if is_third_party else RelayCarrier)(servers, context)


def carrier_for(
    far: Location,
    context: CarrierContext,
    pool: SessionPool,
    *,
    upload: bool,
    mode_e: bool,
    restarts: bool,
    congestions: Sequence[str],
) -> Carrier:
    """Return what moves the bytes to or from `far`: in MODE E if `mode_e`, else in MODE S.

    `pool` has the sessions with the server. `restarts`: the server understands REST.
    `congestions` are those that the server can be told to send with.
    """
    if far.scheme == "file":
        from mpx.endpoints.local.carrier import LocalCarrier

        return LocalCarrier(context)
    options = session_options(context.options, context.failure.cancel.is_set, pool=pool)
    if not mode_e:
        from mpx.endpoints.ftp.mode_s.carrier import StreamCarrier

        most = context.options.max_sessions
        whole_files = upload or not restarts
        return StreamCarrier(far, options, context, upload=upload, whole_files=whole_files, sessions=most)
    from mpx.endpoints.ftp.mode_e.carriers import DownloadCarrier, UploadCarrier

    if upload:
        return UploadCarrier(far, options, context)
    return DownloadCarrier(far, options, context, congestions)
