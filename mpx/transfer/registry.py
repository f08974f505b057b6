"""Which endpoint serves a location, and how what it needs is opened; which carrier: see carriers.py.

These two are the only places that ask for a scheme; what each can is in endpoints/schemes.py.
"""

import socket
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from mpx.choices import AUTO, NONE, port_range
from mpx.endpoints.ftp.gsi.options import GsiMemory, GsiOptions
from mpx.endpoints.ftp.login import log_in
from mpx.endpoints.ftp.session import ClientSession, SessionOptions
from mpx.endpoints.ftp.session_pool import SessionPool
from mpx.endpoints.ftp.ssh.options import SshOptions
from mpx.endpoints.ftp.ssh.servers import RemoteServers
from mpx.endpoints.local.endpoint import LocalEndpoint
from mpx.endpoints.passwords import check_one_password as check_one_password
from mpx.engine.endpoint import Endpoint
from mpx.engine.shared_connections import SharedConnections
from mpx.files.guarded_folders import LocalFolders
from mpx.files.source_trees import ANYWHERE, SourceTrees
from mpx.gridftp import GridFtpEndpoint
from mpx.location import ROOT_PORTS, WEB_PORTS, Location, is_through_gfal
from mpx.options import CopyOptions
from mpx.report import OnNote, no_note
from mpx.transfer.early_start import EarlyStart, data_ports, remote_program

if TYPE_CHECKING:  # imported where there is no mpx at the other end of an ssh
    from mpx.endpoints.gfal.lanes import GfalLanes
    from mpx.endpoints.globus.access import GlobusAccess
    from mpx.endpoints.s3.access import S3Access
    from mpx.endpoints.sftp.lane_pool import LanePool
    from mpx.endpoints.sftp.lanes import LaneOptions, SftpLanes
    from mpx.endpoints.web.access import WebAccess
    from mpx.endpoints.xrootd.lanes import XrootdLanes
    from mpx.endpoints.xrootd.options import XrootdOptions

BY_HTTP = (*WEB_PORTS, "s3", "globus")  # schemes


def session_options(
    options: CopyOptions,
    stop: Callable[[], bool],
    bound: Callable[[int], None] | None = None,
    pool: SessionPool | None = None,
    servers: RemoteServers | None = None,
) -> SessionOptions:
    """Return how sessions of this copy are opened; `bound` gets the port of each before it connects.

    `servers`: those that were started for it, where there is no pool to have them.
    """
    return SessionOptions(
        options.connect_timeout_s,
        options.timeout_s,
        _family(options),
        source_ports=port_range(options.source_ports, "GLOBUS_TCP_SOURCE_RANGE"),
        data_address=options.data_address,
        data_address_from_server=options.data_address_from_server,
        stop=stop,
        bound=bound,
        pool=pool,
        unreached=set() if pool is None else pool.unreached,
        known=None if pool is None else pool.known,
        ssh=ssh_options(options, pool.remote_servers if pool else servers),
        gsi=gsi_options(options, pool),
        gsi_memory=GsiMemory() if pool is None else pool.gsi_memory,
    )


def _family(options: CopyOptions) -> int:
    return socket.AF_INET if options.ipv4 else socket.AF_INET6 if options.ipv6 else socket.AF_UNSPEC


def ssh_options(options: CopyOptions, servers: RemoteServers | None) -> SshOptions:
    """Return how the other end of an ssh is reached; sessions with the same `servers` share one there."""
    return SshOptions(remote_program(options), data_ports(options), servers)


def gsi_options(options: CopyOptions, pool: SessionPool | None = None) -> GsiOptions:
    """Return what the user says of connections with GSI, and the certificate that two servers share."""
    shared = pool.data_certificate if pool else ""
    return GsiOptions(
        options.encrypt, options.dcau, options.delegate, options.server_subject, shared, options.ca
    )


def shared_certificate(source: Location, destination: Location) -> str:
    """Return what data connections between two servers show at both ends; empty where they show nothing."""
    if (source.scheme, destination.scheme) != ("gsiftp", "gsiftp"):
        return ""
    from mpx.endpoints.ftp.gsi.data_certificate import data_certificate

    return data_certificate()


def shared_connections(
    location: Location,
    options: CopyOptions,
    stop: Callable[[], bool],
    given: Sequence[Location] = (),
    note: OnNote = no_note,
    bound: Callable[[int], None] | None = None,
) -> SharedConnections | None:
    """Return what connections to a server share; None where sessions of FTP do, or may.

    `given`: what the user has named there, beside it; `bound`: see session_options.
    """
    if location.scheme in ROOT_PORTS:
        return _xrootd_lanes(location, options, note)
    if is_through_gfal(location):
        return _gfal_lanes(location, options, note)
    if location.scheme not in BY_HTTP:
        return None
    from mpx.endpoints.web.access import WebAccess
    from mpx.endpoints.web.options import WebOptions

    ports = port_range(options.source_ports, "GLOBUS_TCP_SOURCE_RANGE")
    web = WebOptions(
        options.connect_timeout_s,
        options.timeout_s,
        _family(options),
        ports,
        options.data_address,
        options.ca,
        options.certificate,
        options.key,
        options.token_files,
        options.send_token_to,
        bound=bound,
        asked_checksum="" if options.checksum in (AUTO, NONE) else options.checksum,
        partial_prefix=options.partial_prefix,
        rate_bps=options.rate_bps,
        only_new=options.overwrite == "never",
        replaces_unseen=options.overwrite != "never",
        stop=stop,
    )
    if location.scheme == "s3":
        from mpx.endpoints.s3.access import S3Access
        from mpx.endpoints.s3.options import S3Options

        aws = S3Options(
            options.profile,
            options.region,
            options.endpoint_url,
            options.sign_request,
            options.request_payer,
            replaces_unseen=options.overwrite != "never",
        )
        return S3Access(location, web, aws, note)
    if location.scheme == "globus":
        from mpx.endpoints.globus.access import GlobusAccess

        return GlobusAccess(location, web, note)
    return WebAccess(location, web, [location, *given], note)


def _xrootd_lanes(location: Location, options: CopyOptions, note: OnNote) -> "XrootdLanes":
    from mpx.endpoints.web.bearer_tokens import BearerTokens
    from mpx.endpoints.xrootd.lanes import XrootdLanes
    from mpx.endpoints.xrootd.login import XrootdLogin

    told, tokens = _xrootd_options(options), BearerTokens(options.token_files)
    return XrootdLanes(XrootdLogin(location, told, tokens), note)


def _gfal_lanes(location: Location, options: CopyOptions, note: OnNote) -> "GfalLanes":
    from mpx.endpoints.gfal.lanes import GfalLanes
    from mpx.endpoints.gfal.process import GfalOptions
    from mpx.endpoints.web.bearer_tokens import BearerTokens

    told = GfalOptions(_xrootd_options(options), options.ipv6)
    return GfalLanes([location], told, BearerTokens(options.token_files), note)


def _xrootd_options(options: CopyOptions) -> "XrootdOptions":
    from mpx.endpoints.xrootd.options import XrootdOptions

    return XrootdOptions(
        options.connect_timeout_s,
        options.timeout_s,
        options.ca,
        options.certificate,
        options.key,
        _family(options),
    )


def log_in_to_probe(
    location: Location, options: CopyOptions, pool: SessionPool
) -> Callable[[SessionOptions], ClientSession] | None:
    """Return what opens a session for probes, where that is not in the clear."""
    if location.scheme in ("file", "ftp", *BY_HTTP, *ROOT_PORTS) or is_through_gfal(location):
        return None
    ssh, gsi = ssh_options(options, pool.remote_servers), gsi_options(options, pool)
    return lambda session: log_in(ClientSession(location, replace(session, ssh=ssh, gsi=gsi)))


def open_endpoint(
    location: Location,
    options: CopyOptions,
    stop: Callable[[], bool],
    *,
    writing: bool,
    bound: Callable[[int], None] | None = None,
    pool: SessionPool | None = None,
    early: EarlyStart | None = None,
) -> Endpoint:
    """Return the endpoint of a location, opened for itself; see session_options.

    `early`: what was begun for it before.
    """
    session = session_options(options, stop, bound, pool, early.servers if early else None)
    shared = shared_connections(location, options, stop, bound=bound)
    return endpoint_at(location, session, writing=writing, shared=shared)


def endpoint_at(
    location: Location,
    session: SessionOptions,
    *,
    writing: bool,
    note: OnNote = no_note,
    folders: LocalFolders | None = None,
    trees: SourceTrees = ANYWHERE,
    shared: SharedConnections | None = None,
) -> Endpoint:
    """Return the endpoint of a location; a remote one connects when first used.

    `note` takes lines for the report; `folders` has the folders that a copy writes to on this host, and
    `trees` those that it reads; `shared`: see shared_connections, or of SFTP where that serves an ssh.
    """
    if location.scheme == "file":
        return LocalEndpoint(location, writing=writing, folders=folders, trees=trees)
    if location.scheme == "s3":
        from mpx.endpoints.s3.endpoint import S3Endpoint

        return S3Endpoint(location, as_s3(shared), writing=writing, stop=session.stop)
    if location.scheme == "globus":
        from mpx.endpoints.globus.endpoint import GlobusEndpoint

        return GlobusEndpoint(location, as_globus(shared), writing=writing, stop=session.stop)
    if location.scheme in WEB_PORTS:
        from mpx.endpoints.web.endpoint import WebEndpoint

        return WebEndpoint(location, as_web(shared), writing=writing, stop=session.stop)
    if location.scheme in ROOT_PORTS:
        from mpx.endpoints.xrootd.endpoint import XrootdEndpoint

        return XrootdEndpoint(location, as_xrootd(shared), lane_options(session), writing=writing)
    if is_through_gfal(location):
        from mpx.endpoints.gfal.endpoint import GfalEndpoint

        return GfalEndpoint(location, as_lanes(shared), lane_options(session), writing=writing)
    if shared is not None:
        from mpx.endpoints.sftp.ssh_files import SshFilesEndpoint

        return SshFilesEndpoint(location, as_pool(shared), lane_options(session), writing=writing)
    return GridFtpEndpoint(location, session, writing=writing, note=note)


def lane_options(session: SessionOptions) -> "LaneOptions":
    """Return how sessions of SFTP are opened."""
    from mpx.endpoints.sftp.lanes import LaneOptions

    return LaneOptions(
        session.connect_timeout_s,
        session.timeout_s,
        session.stop,
        session.waits_for_turn,
        while_waiting=session.while_waiting,
    )


def as_web(shared: SharedConnections | None) -> "WebAccess":
    """Return what connections to a web server share, S3 among them, and that of a collection."""
    from mpx.endpoints.web.access import WebAccess

    return shared if isinstance(shared, WebAccess) else as_globus(shared).web()


def as_globus(shared: SharedConnections | None) -> "GlobusAccess":
    """Return what all that asks about a collection shares."""
    from mpx.endpoints.globus.access import GlobusAccess

    assert isinstance(shared, GlobusAccess)
    return shared


def as_s3(shared: SharedConnections | None) -> "S3Access":
    """Return what connections to a server of S3 share."""
    from mpx.endpoints.s3.access import S3Access

    assert isinstance(shared, S3Access)
    return shared


def as_xrootd(shared: SharedConnections | None) -> "XrootdLanes":
    """Return the processes that reach a server of XRootD."""
    from mpx.endpoints.xrootd.lanes import XrootdLanes

    assert isinstance(shared, XrootdLanes)
    return shared


def as_gfal(shared: SharedConnections | None) -> "GfalLanes":
    """Return the processes that have gfal2 for a server."""
    from mpx.endpoints.gfal.lanes import GfalLanes

    assert isinstance(shared, GfalLanes)
    return shared


def as_lanes(shared: SharedConnections | None) -> "SftpLanes":
    """Return the sessions of SFTP with a host, or with programs of ours."""
    from mpx.endpoints.sftp.program_lanes import ProgramLanes

    return shared if isinstance(shared, ProgramLanes) else as_pool(shared)


def as_pool(shared: SharedConnections | None) -> "LanePool":
    """Return the sessions of SFTP with a host that an ssh leads to."""
    from mpx.endpoints.sftp.lane_pool import LanePool

    assert isinstance(shared, LanePool)
    return shared
