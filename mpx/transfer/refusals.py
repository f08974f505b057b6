"""What is refused before anything connects: pairs of places, and options that a pair cannot honour.

What only bounds something (`--max-streams`, `--port-range`) is accepted where there is nothing to bound.
Imports little, as an ssh is started once this has passed, and only then the rest of a copy imported.
"""

from collections.abc import Iterable, Sequence

from mpx.choices import ONLY, PULL, PUSH, SCAVENGER, TRANSPORT, port_range
from mpx.endpoints.schemes import SCHEMES, capabilities_of
from mpx.engine.capabilities import Capabilities, PartsUp
from mpx.errors import UsageError
from mpx.location import Location
from mpx.options import OF_CAS, OF_GLOBUS, OF_GSI, OF_S3, OF_SSH, OF_WEB, OF_WEB_TLS, CopyOptions, flag_of
from mpx.text import quoted
from mpx.units import counted

_OF_PLACES = (
    *OF_SSH,
    *OF_GSI,
    *OF_WEB,
    *OF_WEB_TLS,
    *OF_S3,
    *OF_GLOBUS,
    *OF_CAS,
)  # see Capabilities.own_options
OF_CONNECTIONS = (  # mean nothing where no bytes pass a network
    "streams",
    "tuner",
    "initial_streams",
    "share",
    "bandwidth_bps",
    "congestion",
    "policy",
    "probe_first_s",
    "probe_mode",
    "classifier",
    "transport",
    "block_size_bytes",
    "timeout_s",
    "port_range",
    "source_ports",
    "data_address",
    "data_address_from_server",
    *_OF_PLACES,
    "controller",
)


BETWEEN_SERVERS = {  # cannot be applied there, with the values that cannot
    "probe_first_s": (),
    "transport": (TRANSPORT,),
    "policy": (SCAVENGER,),
    "controller": (),
    "block_size_bytes": (),
    "server_subject": (),
}


def check_places(sources: Sequence[Location]) -> None:
    """Raise UsageError for sources in different places."""
    if other := next((source for source in sources if source.endpoint != sources[0].endpoint), None):
        raise UsageError(
            f"{sources[0]} and {other} are in different places: all sources of a copy must be on this "
            "host, or all at one server and of one user; copy them separately"
        )


def check_told_apart(places: Iterable[Location]) -> None:
    """Raise UsageError for two URLs of one name: endpoints know files by their names.

    Such URLs differ in their queries, or in what is encoded in their paths.
    """
    known: dict[tuple[object, ...], Location] = {}
    for place in places:
        other = known.setdefault((place.endpoint, place.name), place)
        if (other.query, other.path) != (place.query, place.path):
            alike = f"{other} and {place} are of one name, {quoted(place.name)}"
            if other.path == place.path:
                raise UsageError(
                    f"{alike}; name each at the destination, in a list with a tab before the name: "
                    f"printf '%s\\t%s\\n' '{other}' NAME1 '{place}' NAME2 | mpx copy --from-file - DST"
                )
            raise UsageError(f"{alike}, by which a copy could not tell them apart; copy them by two commands")


def check_options(
    options: CopyOptions, far: Location, *, far_is_source: bool, near: Location | None = None
) -> None:
    """Raise UsageError for the first option that cannot be applied, whatever the mode.

    `far`: the server's end, or the destination within this host. `near`: the source, where that is a server
    as well.
    """
    if near is None and options.third_party == ONLY:
        raise UsageError("--third-party only is not possible here: it is for copies between two servers")
    at_far, at_near = capabilities_of(far), capabilities_of(near) if near else None
    if options.third_party in (PULL, PUSH) and not (at_near and _is_one_told(at_near, at_far)):
        places = _places(
            scheme
            for scheme, can in SCHEMES.items()
            if _is_one_told(can, can) and can.third_party and not can.third_party.why_not
        )
        raise UsageError(
            f"--third-party {options.third_party} is not possible here: it is for copies between two servers "
            f"of which one is told to copy ({places})"
        )
    if near is not None:
        _check_between_servers(options)
    if options.in_place and (far_is_source or at_far.is_here):
        raise UsageError("--in-place is not possible here: it is for uploads to a server")
    if options.in_place and at_far.parts_up is PartsUp.NUMBERED:
        raise UsageError("--in-place is not possible here: objects appear under their names only once whole")
    if at_far.is_here:
        for name in OF_CONNECTIONS:
            if options.was_given(name) and getattr(options, name) is not None:
                raise UsageError(
                    f"{flag_of(name)} is not possible here: a copy within this host has no connections"
                )
        return
    own = (*at_far.own_options, *(at_near.own_options if at_near else ()))
    for name in _OF_PLACES:
        if options.was_given(name) and name not in own:
            places = _places(scheme for scheme, can in SCHEMES.items() if name in can.own_options)
            raise UsageError(f"{flag_of(name)} is not possible here: it is for {places}")
    source_ports = port_range(options.source_ports, "GLOBUS_TCP_SOURCE_RANGE")
    if options.data_address or source_ports:
        from mpx.net import tcp

        if options.data_address:
            tcp.check_address(options.data_address)
        if source_ports:
            tcp.check_free(options.data_address or "", source_ports)
    port_range(options.port_range, "GLOBUS_TCP_PORT_RANGE")
    if options.block_size_bytes and far_is_source:
        raise UsageError("--block-size is not possible here: the server sends, and chooses the block size")
    if not far_is_source and options.files is not None and options.files > options.max_sessions:
        raise UsageError(sessions_for_files(options.files))
    if not far_is_source:
        check_source_ports(options)


def _is_one_told(source: Capabilities, destination: Capabilities) -> bool:
    """Tell whether one of two servers is told to copy from or to the other, as far as their schemes tell."""
    first, second = source.third_party, destination.third_party
    if first is None or second is None or first.protocol != second.protocol:
        return False
    return bool(first.ways) and not first.is_by_service


def _places(schemes: Iterable[str]) -> str:
    return ", ".join(f"{each}://" for each in schemes)


def _check_between_servers(options: CopyOptions) -> None:
    for name, values in BETWEEN_SERVERS.items():
        value = getattr(options, name)
        if options.was_given(name) and value is not None and (not values or value in values):
            shown = f"{flag_of(name)} {value}" if values else flag_of(name)
            raise UsageError(f"{shown} is not possible here: it is not for copies between two servers")


def check_source_ports(options: CopyOptions) -> None:
    """Raise UsageError if so many streams of ours cannot have a port each."""
    given = port_range(options.source_ports, "GLOBUS_TCP_SOURCE_RANGE")
    if given is None or options.streams is None:
        return
    ports = given[1] - given[0] + 1
    if options.streams > ports:
        raise UsageError(
            f"--streams {options.streams} is not possible here: --source-ports has only "
            f"{counted(ports, 'port')}; widen the range"
        )


def sessions_for_files(files: int) -> str:
    """Return the message for more files at once than there are sessions."""
    return f"--files {files} needs --max-sessions {files}: each file in transfer needs a session"
