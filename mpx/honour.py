"""Options given by hand that this pair of endpoints cannot honour: refused before any byte moves."""

from mpx import tcp
from mpx.endpoint import Endpoint
from mpx.errors import UsageError
from mpx.options import CopyOptions, flag_of
from mpx.report import Report

OF_CONNECTIONS = (  # mean nothing where no bytes pass a network
    "streams",
    "tuner",
    "congestion",
    "block_size_bytes",
    "port_range",
    "source_ports",
    "data_address",
)


def check_options(options: CopyOptions, far_end: Endpoint, *, far_is_source: bool) -> None:
    """Raise UsageError for the first option that cannot be honoured."""
    if far_end.location.scheme == "file":
        for name in OF_CONNECTIONS:
            if getattr(options, name) != getattr(CopyOptions(), name):
                raise UsageError(
                    f"{flag_of(name)} cannot be honoured: a copy within this host has no connections"
                )
    tcp.ports(options.source_ports, "GLOBUS_TCP_SOURCE_RANGE")
    tcp.ports(options.port_range, "GLOBUS_TCP_PORT_RANGE")
    if options.data_address:
        tcp.check_address(options.data_address)
    if options.block_size_bytes and far_is_source:
        raise UsageError("--block-size cannot be honoured: the server sends, so it makes the blocks")
    uploads = not far_is_source and far_end.location.scheme != "file"
    if uploads and options.files is not None and options.files > options.max_sessions:
        raise UsageError(
            f"--files {options.files} needs --max-sessions {options.files}: each file "
            "on its way to a server takes a session"
        )
    if options.congestion and far_is_source:
        raise UsageError(
            f"--congestion {options.congestion} cannot be honoured: the server sends, so its kernel "
            "chooses; set it there with: ip route change ... congctl NAME"
        )
    if options.congestion:
        tcp.check_congestion(options.congestion)


def usable_algorithm(options: CopyOptions, far_end: Endpoint, report: Report) -> str:
    """Return the checksum that both ends can compute, or "none" if it was not asked for by hand.

    Raises UsageError if it was.
    """
    algorithm = options.checksum
    if algorithm != "none" and not far_end.can_checksum(algorithm):
        if options.was_given("checksum"):
            raise UsageError(
                f"--checksum {algorithm} cannot be honoured: the server does not offer it (CKSM); "
                "give --checksum none to copy unverified"
            )
        algorithm = "none"
        report.note("unverified: the server cannot compute checksums of parts of files")
    report.algorithm = algorithm
    return algorithm
