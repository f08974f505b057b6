"""Which carrier moves bytes to, from or between locations, with what was decided of how they move.

Carriers are imported once they are needed: those of files within this host and those of servers.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from mpx.choices import NEVER, ONLY, PULL, SERVICE
from mpx.endpoints.ftp.session import SessionOptions
from mpx.endpoints.ftp.session_pool import SessionPool
from mpx.endpoints.schemes import capabilities_of
from mpx.engine.capabilities import PartsUp
from mpx.engine.carrier import Carrier, CarrierContext
from mpx.engine.shared_connections import SharedConnections
from mpx.location import ROOT_PORTS, WEB_PORTS, Location, is_through_gfal
from mpx.transfer.registry import (
    BY_HTTP,
    as_gfal,
    as_globus,
    as_lanes,
    as_s3,
    as_web,
    as_xrootd,
    lane_options,
    session_options,
)

if TYPE_CHECKING:
    from mpx.endpoints.gfal.lanes import GfalLanes
    from mpx.engine.relay import RelaySink, RelaySource


def carrier_between(
    source: Location,
    destination: Location,
    context: CarrierContext,
    pools: tuple[SessionPool, SessionPool],
    *,
    shared: tuple[SharedConnections | None, SharedConnections | None],
    is_third_party: bool,
    way: str,
    streams_each: int,
    mode_e: bool,
    parts: bool,
    key: str,
) -> Carrier:
    """Return what brings files from one server to another; `pools` have the sessions with each of them.

    `shared`: see endpoint_at. `way`, `streams_each`: how one of them is told to copy (empty: it is not).
    `mode_e`: the destination receives in MODE E; `parts`: of files are sent and stored; `key`: its journal's.
    """
    if way == SERVICE:
        from mpx.endpoints.globus.carrier import GlobusCarrier

        return GlobusCarrier(as_globus(shared[0]), as_globus(shared[1]), context, key)
    if way and destination.scheme in WEB_PORTS:
        from mpx.endpoints.web.third_party.carrier import WebThirdPartyCarrier
        from mpx.endpoints.web.third_party.way import CopyWay

        webs = as_web(shared[0]), as_web(shared[1])
        return WebThirdPartyCarrier(CopyWay(*webs, way == PULL, streams_each), context)
    stop = context.failure.cancel.is_set
    if way and destination.scheme in ROOT_PORTS:
        from mpx.endpoints.xrootd.pair_carrier import XrootdPairCarrier

        told = lane_options(session_options(context.options, stop, pool=pools[1]))
        return XrootdPairCarrier((as_xrootd(shared[0]), as_xrootd(shared[1])), told, context)
    if is_through_gfal(destination):
        lanes = as_gfal(shared[1]).with_other(as_gfal(shared[0]))
        given = session_options(context.options, stop, pool=pools[1])
        return _gfal_carrier(lanes, source, destination, given, context, streams_each)
    opened = [session_options(context.options, stop, pool=pool) for pool in pools]
    if is_third_party and destination.scheme == "s3":
        from mpx.endpoints.s3.carrier import S3UploadCarrier

        return S3UploadCarrier(as_s3(shared[1]), context, source.host)
    if is_third_party:
        from mpx.endpoints.ftp.two_servers.carrier import ThirdPartyCarrier
        from mpx.endpoints.ftp.two_servers.server_pair import ServerPair

        servers = ServerPair(source, destination, opened[0], opened[1], mode_e, parts)
        return ThirdPartyCarrier(servers, context)
    from mpx.engine.relay_carrier import RelayCarrier

    from_where = _relay_source(source, opened[0], context, shared[0], parts=parts)
    to_where = _relay_sink(destination, opened[1], context, shared[1], mode_e=mode_e, parts=parts)
    return RelayCarrier(from_where, to_where, context, parts=parts)


def _gfal_carrier(
    lanes: "GfalLanes",
    source: Location | None,
    destination: Location | None,
    session: SessionOptions,
    context: CarrierContext,
    streams_each: int = 0,
) -> Carrier:
    """Return what has gfal2 copy; None is this host."""
    from mpx.endpoints.gfal.carrier import GfalCarrier
    from mpx.endpoints.gfal.places import GfalPlaces

    asked = context.options.third_party
    straight = asked if asked in (NEVER, ONLY) else ""
    congestion = context.streams.congestion or ""
    places = GfalPlaces(source, destination, streams_each, straight, congestion)
    return GfalCarrier(lanes, places, lane_options(session), context)


def _relay_source(
    source: Location,
    session: SessionOptions,
    context: CarrierContext,
    shared: SharedConnections | None,
    *,
    parts: bool,
) -> "Callable[[], RelaySource]":
    """Return what makes a source of a relay."""
    if source.scheme in BY_HTTP:
        from mpx.endpoints.web.answers import Answers
        from mpx.endpoints.web.relay_source import WebRelaySource

        web = as_web(shared)
        answers = Answers(web, context, whole_files=not parts)
        return partial(WebRelaySource, web, context, answers, web.pipelining)
    if shared is not None:
        from mpx.endpoints.sftp.relay_source import SftpRelaySource

        return partial(SftpRelaySource, as_lanes(shared), lane_options(session), context)
    from mpx.endpoints.ftp.two_servers.relay_source import FtpRelaySource, SmallFiles

    return partial(FtpRelaySource, source, session, context, SmallFiles())


def _relay_sink(
    destination: Location,
    session: SessionOptions,
    context: CarrierContext,
    shared: SharedConnections | None,
    *,
    mode_e: bool,
    parts: bool,
) -> "Callable[[], RelaySink]":
    """Return what makes a sink of a relay."""
    if destination.scheme == "s3":
        from mpx.endpoints.s3.relay_sink import S3RelaySink

        s3 = as_s3(shared)
        return partial(S3RelaySink, s3, context, s3.pipelining)
    if destination.scheme in BY_HTTP:
        from mpx.endpoints.web.relay_sink import WebRelaySink

        web = as_web(shared)
        return partial(WebRelaySink, web, context, web.pipelining)
    if shared is not None:
        from mpx.endpoints.sftp.relay_sink import SftpRelaySink

        return partial(SftpRelaySink, as_lanes(shared), lane_options(session), context)
    from mpx.endpoints.ftp.two_servers.relay_sink import BlockSink, StreamSink

    if mode_e:
        return partial(BlockSink, destination, session, context, parts=parts)
    return partial(StreamSink, destination, session, context)


def carrier_for(
    far: Location,
    context: CarrierContext,
    pool: SessionPool,
    *,
    upload: bool,
    mode_e: bool,
    restarts: bool,
    congestions: Sequence[str],
    shared: SharedConnections | None = None,
) -> Carrier:
    """Return what moves the bytes to or from `far`: in MODE E if `mode_e`, else in MODE S.

    `pool` has the sessions with the server. `restarts`: the server understands REST.
    `congestions` are those that the server can be told to send with. `shared`: see endpoint_at.
    """
    if far.scheme == "file":
        from mpx.endpoints.local.carrier import LocalCarrier

        return LocalCarrier(context)
    if upload and far.scheme == "s3":
        from mpx.endpoints.s3.carrier import S3UploadCarrier

        return S3UploadCarrier(as_s3(shared), context)
    if far.scheme in BY_HTTP:
        from mpx.endpoints.web.carrier import WebDownloadCarrier, WebUploadCarrier

        web = as_web(shared)
        if upload:
            return WebUploadCarrier(web, context)
        return WebDownloadCarrier(web, context, whole_files=not restarts)
    options = session_options(context.options, context.failure.cancel.is_set, pool=pool)
    if is_through_gfal(far):
        source, destination = (None, far) if upload else (far, None)
        from mpx.endpoints.gfal.process import Opens

        lanes = as_gfal(shared).with_files(Opens.SOURCES if upload else Opens.ALL)
        return _gfal_carrier(lanes, source, destination, options, context)
    if shared is not None:
        from mpx.endpoints.sftp.carrier import SftpCarrier

        return SftpCarrier(
            as_lanes(shared),
            lane_options(options),
            context,
            upload=upload,
            sessions=context.options.max_sessions,
            whole_files=upload and capabilities_of(far).parts_up is PartsUp.IN_TURN,
            switches=upload and capabilities_of(far).switches_congestion,
        )
    if not mode_e:
        from mpx.endpoints.ftp.mode_s.carrier import StreamCarrier

        most = context.options.max_sessions
        whole_files = upload or not restarts
        return StreamCarrier(far, options, context, upload=upload, whole_files=whole_files, sessions=most)
    from mpx.endpoints.ftp.mode_e.carriers import DownloadCarrier, UploadCarrier

    if upload:
        return UploadCarrier(far, options, context)
    return DownloadCarrier(far, options, context, congestions)
