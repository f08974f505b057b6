"""Which endpoint and which carrier serve a location: the one table of schemes.

Carriers are imported once they are needed: those of files within this host and those of servers.
"""

import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from mpx.choices import AUTO, NONE, PULL, port_range
from mpx.endpoints.ftp.gsi.options import GsiMemory, GsiOptions
from mpx.endpoints.ftp.login import log_in
from mpx.endpoints.ftp.session import ClientSession, SessionOptions
from mpx.endpoints.ftp.session_pool import SessionPool
from mpx.endpoints.ftp.ssh.options import SshOptions
from mpx.endpoints.ftp.ssh.servers import RemoteServers
from mpx.endpoints.local.endpoint import LocalEndpoint
from mpx.endpoints.passwords import check_one_password as check_one_password
from mpx.engine.carrier import Carrier, CarrierContext
from mpx.engine.endpoint import Endpoint
from mpx.files.guarded_folders import LocalFolders
from mpx.files.source_trees import ANYWHERE, SourceTrees
from mpx.gridftp import GridFtpEndpoint
from mpx.location import Location
from mpx.options import CopyOptions
from mpx.report import OnNote, no_note
from mpx.transfer.early_start import EarlyStart, data_ports, remote_program

if TYPE_CHECKING:  # imported where there is no mpx at the other end of an ssh
    from mpx.endpoints.sftp.lane_pool import LaneOptions, LanePool
    from mpx.endpoints.web.access import WebAccess
    from mpx.engine.relay import RelaySink, RelaySource


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


def web_access(
    location: Location,
    options: CopyOptions,
    stop: Callable[[], bool],
    queries: Mapping[str, str],
    note: OnNote = no_note,
    bound: Callable[[int], None] | None = None,
) -> "WebAccess | None":
    """Return what connections to a web server share; None for another scheme.

    `queries`: of URLs, by name; `bound`: see session_options.
    """
    if not location.is_web:
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
        rate_bps=options.rate_bps,
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
            replaces_unseen=options.overwrite != "never",
        )
        return S3Access(location, web, aws, note)
    return WebAccess(location, web, queries, note)


def log_in_to_probe(
    location: Location, options: CopyOptions, pool: SessionPool
) -> Callable[[SessionOptions], ClientSession] | None:
    """Return what opens a session for probes, where that is not in the clear."""
    if location.scheme in ("file", "ftp") or location.is_web:
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
    web = web_access(location, options, stop, {location.name: location.query}, bound=bound)
    return endpoint_at(location, session, writing=writing, web=web)


def endpoint_at(
    location: Location,
    session: SessionOptions,
    *,
    writing: bool,
    note: OnNote = no_note,
    folders: LocalFolders | None = None,
    trees: SourceTrees = ANYWHERE,
    lanes: "LanePool | None" = None,
    web: "WebAccess | None" = None,
) -> Endpoint:
    """Return the endpoint of a location; a remote one connects when first used.

    `note` takes lines for the report; `folders` has the folders that a copy writes to on this host, and
    `trees` those that it reads; `lanes`: see sftp_lanes; `web`: see web_access.
    """
    if location.scheme == "file":
        return LocalEndpoint(location, writing=writing, folders=folders, trees=trees)
    if web is not None and location.scheme == "s3":
        from mpx.endpoints.s3.access import S3Access
        from mpx.endpoints.s3.endpoint import S3Endpoint

        assert isinstance(web, S3Access)
        return S3Endpoint(location, web, writing=writing, stop=session.stop)
    if web is not None:
        from mpx.endpoints.web.endpoint import WebEndpoint

        return WebEndpoint(location, web, writing=writing, stop=session.stop)
    if lanes is not None:
        from mpx.endpoints.sftp.endpoint import SftpEndpoint

        return SftpEndpoint(location, lanes, lane_options(session), writing=writing)
    return GridFtpEndpoint(location, session, writing=writing, note=note)


def carrier_between(
    source: Location,
    destination: Location,
    context: CarrierContext,
    pools: tuple[SessionPool, SessionPool],
    *,
    lanes: "tuple[LanePool | None, LanePool | None]",
    web: "tuple[WebAccess | None, WebAccess | None]",
    is_third_party: bool,
    way: str,
    streams_each: int,
    mode_e: bool,
    parts: bool,
) -> Carrier:
    """Return what brings files from one server to another; `pools` have the sessions with each of them.

    `lanes`: those of SFTP, where that is what serves one; `web`: see endpoint_at. `way`, `streams_each`: how
    web servers copy straight (empty: they do not). `mode_e`: the destination receives in MODE E; `parts`: of
    files can be sent and stored.
    """
    if way and web[0] is not None and web[1] is not None:
        from mpx.endpoints.web.third_party.carrier import WebThirdPartyCarrier
        from mpx.endpoints.web.third_party.way import CopyWay

        return WebThirdPartyCarrier(CopyWay(web[0], web[1], way == PULL, streams_each), context)
    stop = context.failure.cancel.is_set
    opened = [session_options(context.options, stop, pool=pool) for pool in pools]
    if is_third_party and web[1] is not None:
        from mpx.endpoints.s3.access import S3Access
        from mpx.endpoints.s3.carrier import S3UploadCarrier

        assert isinstance(web[1], S3Access)
        return S3UploadCarrier(web[1], context, source.host)
    if is_third_party:
        from mpx.endpoints.ftp.two_servers.carrier import ThirdPartyCarrier
        from mpx.endpoints.ftp.two_servers.server_pair import ServerPair

        servers = ServerPair(source, destination, opened[0], opened[1], mode_e, parts)
        return ThirdPartyCarrier(servers, context)
    from mpx.engine.relay_carrier import RelayCarrier

    from_where = _relay_source(source, opened[0], context, lanes[0], web[0])
    to_where = _relay_sink(destination, opened[1], context, lanes[1], web[1], mode_e=mode_e, parts=parts)
    return RelayCarrier(from_where, to_where, context, parts=parts)


def _relay_source(
    source: Location,
    session: SessionOptions,
    context: CarrierContext,
    lanes: "LanePool | None",
    web: "WebAccess | None",
) -> "Callable[[], RelaySource]":
    """Return what makes a source of a relay."""
    if web is not None:
        from mpx.endpoints.web.answers import Answers
        from mpx.endpoints.web.relay_source import WebRelaySource

        return partial(WebRelaySource, web, context, Answers(web, context), web.pipelining)
    if lanes is not None:
        from mpx.endpoints.sftp.relay_source import SftpRelaySource

        return partial(SftpRelaySource, lanes, lane_options(session), context)
    from mpx.endpoints.ftp.two_servers.relay_source import FtpRelaySource, SmallFiles

    return partial(FtpRelaySource, source, session, context, SmallFiles())


def _relay_sink(
    destination: Location,
    session: SessionOptions,
    context: CarrierContext,
    lanes: "LanePool | None",
    web: "WebAccess | None",
    *,
    mode_e: bool,
    parts: bool,
) -> "Callable[[], RelaySink]":
    """Return what makes a sink of a relay."""
    if web is not None and destination.scheme == "s3":
        from mpx.endpoints.s3.access import S3Access
        from mpx.endpoints.s3.relay_sink import S3RelaySink

        assert isinstance(web, S3Access)
        return partial(S3RelaySink, web, context, web.pipelining)
    if web is not None:
        from mpx.endpoints.web.relay_sink import WebRelaySink

        return partial(WebRelaySink, web, context, web.pipelining)
    if lanes is not None:
        from mpx.endpoints.sftp.relay_sink import SftpRelaySink

        return partial(SftpRelaySink, lanes, lane_options(session), context)
    from mpx.endpoints.ftp.two_servers.relay_sink import BlockSink, StreamSink

    if mode_e:
        return partial(BlockSink, destination, session, context, parts=parts)
    return partial(StreamSink, destination, session, context)


def lane_options(session: SessionOptions) -> "LaneOptions":
    """Return how sessions of SFTP are opened."""
    from mpx.endpoints.sftp.lane_pool import LaneOptions

    return LaneOptions(
        session.connect_timeout_s,
        session.timeout_s,
        session.stop,
        session.waits_for_turn,
        while_waiting=session.while_waiting,
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
    web: "WebAccess | None" = None,
) -> Carrier:
    """Return what moves the bytes to or from `far`: in MODE E if `mode_e`, else in MODE S.

    `pool` has the sessions with the server. `restarts`: the server understands REST.
    `congestions` are those that the server can be told to send with. `lanes`, `web`: see endpoint_at.
    """
    if far.scheme == "file":
        from mpx.endpoints.local.carrier import LocalCarrier

        return LocalCarrier(context)
    if web is not None and upload and far.scheme == "s3":
        from mpx.endpoints.s3.access import S3Access
        from mpx.endpoints.s3.carrier import S3UploadCarrier

        assert isinstance(web, S3Access)
        return S3UploadCarrier(web, context)
    if web is not None:
        from mpx.endpoints.web.carrier import WebDownloadCarrier, WebUploadCarrier

        if upload:
            return WebUploadCarrier(web, context)
        return WebDownloadCarrier(web, context, whole_files=not restarts)
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
