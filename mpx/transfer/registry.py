"""Which endpoint and which carrier serve a location: the one table of schemes.

Carriers are imported once they are needed: those of files within this host and those of servers.
"""

import socket
from collections.abc import Callable, Sequence
from dataclasses import replace

from mpx.endpoints.ftp.session import SessionOptions
from mpx.endpoints.ftp.session_pool import SessionPool
from mpx.endpoints.local.endpoint import LocalEndpoint
from mpx.engine.carrier import Carrier, CarrierContext
from mpx.engine.endpoint import Endpoint, Note
from mpx.errors import UsageError
from mpx.files.guarded_folders import LocalFolders
from mpx.gridftp import GridFtpEndpoint
from mpx.location import Location
from mpx.net import tcp
from mpx.options import CopyOptions


def session_options(
    options: CopyOptions,
    stop: Callable[[], bool],
    bound: Callable[[int], None] | None = None,
    pool: SessionPool | None = None,
) -> SessionOptions:
    """Return how sessions of this copy are opened; `bound` is told the port of each before it connects."""
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
    )


def open_endpoint(
    location: Location,
    options: CopyOptions,
    stop: Callable[[], bool],
    *,
    writing: bool,
    bound: Callable[[int], None] | None = None,
    note: Note = lambda _: None,
    pool: SessionPool | None = None,
    waits_for_turn: bool = True,
    folders: LocalFolders | None = None,
) -> Endpoint:
    """Return the endpoint of a location; a remote one connects when first used. `bound`: see above.

    `note` takes lines for the report; `pool` has the sessions of the copy and `folders` the folders it
    writes to on this host, if it is for one.
    """
    if location.scheme == "file":
        return LocalEndpoint(location, writing=writing, folders=folders)
    session = replace(session_options(options, stop, bound, pool), waits_for_turn=waits_for_turn)
    return GridFtpEndpoint(location, session, writing=writing, note=note)


def check_pair(source: Location, destination: Location) -> None:
    """Raise UsageError for a pair that no carrier serves."""
    if source.scheme != "file" and destination.scheme != "file":
        raise UsageError(
            "mpx does not yet copy from one server to another; copy to this host first, then from here"
        )


def carrier_for(
    source: Location,
    destination: Location,
    work: CarrierContext,
    *,
    mode_e: bool,
    restarts: bool,
    sessions: int,
    pool: SessionPool,
    congestions: Sequence[str],
) -> Carrier:
    """Return what moves the bytes between the two: in MODE E if `mode_e`, over so many sessions at most.

    `pool` has the sessions with the server. `restarts`: the server understands REST; `congestions` are those
    that it can be told to send with.
    """
    options = session_options(work.options, work.failure.cancel.is_set, pool=pool)
    far = source if destination.scheme == "file" else destination
    if far.scheme == "file":
        from mpx.endpoints.local.carrier import LocalCarrier

        return LocalCarrier(work)
    if not mode_e:
        from mpx.endpoints.ftp.mode_s.carrier import StreamCarrier

        return StreamCarrier(
            far,
            options,
            work,
            upload=far is destination,
            whole_files=far is destination or not restarts,
            sessions=work.options.max_sessions,
        )
    from mpx.endpoints.ftp.mode_e.carriers import DownloadCarrier, UploadCarrier

    if far is destination:
        return UploadCarrier(destination, options, work)
    return DownloadCarrier(source, options, work, sessions=sessions, congestions=congestions)
