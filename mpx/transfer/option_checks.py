"""Options given by hand that this pair of endpoints cannot honour: refused before any byte is sent.

What only bounds something (`--max-streams`, `--port-range`) is accepted where there is nothing to bound.
"""

from collections.abc import Callable, Sequence

from mpx.choices import NONE, ONLY, SCAVENGER, TRANSPORT
from mpx.engine.checksum_choice import SHORT_BYTES, ChecksumChoice
from mpx.engine.endpoint import Endpoint, FileInfo, Kind, Part
from mpx.errors import NoChecksum, UsageError
from mpx.files.partial_names import partial_name
from mpx.net import tcp
from mpx.options import OF_GSI, OF_SSH, CopyOptions, flag_of
from mpx.report import Report, Severity
from mpx.transfer.congestion_plan import named
from mpx.units import counted

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
    *OF_GSI,
    *OF_SSH,
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
NO_CHECKSUMS = "unverified: the server computes no checksums"


def check_options(
    options: CopyOptions, far_end: Endpoint, *, far_is_source: bool, near_end: Endpoint | None = None
) -> None:
    """Raise UsageError for the first option that cannot be applied, whatever the mode.

    `near_end`: the source, where that is a server as well.
    """
    schemes = {end.location.scheme for end in (far_end, near_end) if end is not None}
    if near_end is None and options.third_party == ONLY:
        raise UsageError("--third-party only is not possible here: it is for copies between two servers")
    if near_end is not None:
        for name, values in BETWEEN_SERVERS.items():
            value = getattr(options, name)
            if options.was_given(name) and value is not None and (not values or value in values):
                shown = f"{flag_of(name)} {value}" if values else flag_of(name)
                raise UsageError(f"{shown} is not possible here: it is not for copies between two servers")
    if options.in_place and (far_is_source or far_end.location.scheme == "file"):
        raise UsageError("--in-place is not possible here: it is for uploads to a server")
    if far_end.location.scheme == "file":
        for name in OF_CONNECTIONS:
            if options.was_given(name) and getattr(options, name) is not None:
                raise UsageError(
                    f"{flag_of(name)} is not possible here: a copy within this host has no connections"
                )
        return
    for names, scheme in ((OF_SSH, "ssh"), (OF_GSI, "gsiftp")):
        for name in names:
            if options.was_given(name) and scheme not in schemes:
                raise UsageError(f"{flag_of(name)} is not possible here: it is for {scheme}://")
    if options.data_address:
        tcp.check_address(options.data_address)
    source_ports = tcp.ports(options.source_ports, "GLOBUS_TCP_SOURCE_RANGE")
    if source_ports:
        tcp.check_free(options.data_address or "", source_ports)
    tcp.ports(options.port_range, "GLOBUS_TCP_PORT_RANGE")
    if options.block_size_bytes and far_is_source:
        raise UsageError("--block-size is not possible here: the server sends, and chooses the block size")
    if not far_is_source and options.files is not None and options.files > options.max_sessions:
        raise UsageError(sessions_for_files(options.files))
    if not far_is_source:
        check_source_ports(options)


def check_congestion(options: CopyOptions, why_not: Callable[[str], str] | None) -> None:
    """Raise UsageError where a congestion control that was asked for by name may not be used.

    `why_not` says why it may not, None where the sender cannot be told: the plan says so then.
    """
    name = named(options.congestion)
    if name and why_not and (reason := why_not(name)):
        raise UsageError(reason)


def check_links(options: CopyOptions, destination_end: Endpoint) -> None:
    """Raise UsageError if links are to be kept where none can be made; asks the server."""
    if options.links == "keep" and not destination_end.can_link():
        raise UsageError(
            f"--links keep is not possible here: {destination_end.location.host} makes no symbolic links "
            "(SITE SYMLINKFROM); give --links follow or skip"
        )


def check_source_ports(options: CopyOptions) -> None:
    """Raise UsageError if so many streams of ours cannot have a port each."""
    given = tcp.ports(options.source_ports, "GLOBUS_TCP_SOURCE_RANGE")
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


def choose_checksums(options: CopyOptions, servers: Sequence[Endpoint], report: Report) -> ChecksumChoice:
    """Return which checksums files are compared by: of those that both ends can compute, if there are any.

    `servers`: one, or both ends, or the destination within this host, which compute what we cannot. Raises
    UsageError if one was asked for by hand that they do not offer.
    """
    is_here = servers[0].location.scheme == "file"
    exposed = next((told for server in servers if (told := server.protection.exposed)), "")

    def offers(algorithm: str) -> bool:
        return all(server.can_checksum(algorithm) for server in servers)

    choice = ChecksumChoice(options.checksum, offers, is_here=is_here, is_exposed=bool(exposed))
    if exposed and choice.is_proof:
        report.note(f"{exposed}; each file is compared by {choice.best(None)}", Severity.NOTICE)
    elif exposed:
        report.note(
            f"{exposed}, and what is compared does not show who has changed it on purpose", Severity.WARNING
        )
    if choice.is_by_hand and not choice.verifies:
        raise UsageError(
            f"--checksum {options.checksum} is not possible here: the server does not offer it (CKSM, HASH "
            "or XMD5 and the like); give --checksum none to copy unverified"
        )
    if not choice.verifies and options.checksum != NONE:
        report.note(NO_CHECKSUMS, Severity.WARNING)
    report.algorithm = choice.best(None)
    return choice


def check_checksum(
    choice: ChecksumChoice,
    options: CopyOptions,
    far_end: Endpoint,
    sources: Sequence[tuple[str, FileInfo]],
    target: str,
) -> None:
    """Raise UsageError where a server refuses the checksum that was asked for by hand; asks it.

    Of a file of `sources`, if they are the server's; else of a name beside `target` that is not there, of
    which a server says so if it knows the command. A long file is not read for this: a part of it may be
    refused where the whole is not.
    """
    if not choice.is_by_hand or far_end.location.scheme == "file":
        return
    part = Part(partial_name(target.rstrip("/"), "none"), 0, 0, is_whole=True)
    if sources:
        sizes = ((name, info.size_bytes or 0) for name, info in sources if info.kind is Kind.FILE)
        found = next(((name, size) for name, size in sizes if 0 < size <= SHORT_BYTES), None)
        if found is None:
            return
        part = Part(found[0], 0, found[1], is_whole=True)
    (answer,) = far_end.checksums(options.checksum, [part], lambda: False)
    if isinstance(answer, NoChecksum) and not answer.is_of_file:
        raise choice.not_honoured(answer)
