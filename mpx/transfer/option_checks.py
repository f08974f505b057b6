"""Options given by hand that the server, or a kernel, cannot honour: refused before any byte is sent.

Those that nobody has to be asked about: see refusals.py.
"""

from collections.abc import Callable, Sequence

from mpx.choices import AUTO, NONE
from mpx.engine.capabilities import Question
from mpx.engine.checksum_choice import FOR_SHORT, SHORT_BYTES, ChecksumChoice
from mpx.engine.endpoint import Endpoint, FileInfo, Kind, Part
from mpx.errors import NoChecksum, UsageError
from mpx.files.partial_names import partial_name
from mpx.options import CopyOptions
from mpx.report import Report, Severity
from mpx.transfer.congestion_plan import named

NO_CHECKSUMS = "unverified: the server computes no checksums"


def check_congestion(options: CopyOptions, why_not: Callable[[str], str] | None) -> None:
    """Raise UsageError where a congestion control that was asked for by name may not be used.

    `why_not` says why it may not, None where the sender cannot be told: the plan says so then.
    """
    name = named(options.congestion)
    if name and why_not and (reason := why_not(name)):
        raise UsageError(reason)


def check_links(options: CopyOptions, destination_end: Endpoint) -> None:
    """Raise UsageError if links are to be kept where none can be made; asks the server."""
    if options.links == "keep" and not destination_end.find_out(Question.LINKS).links:
        raise UsageError(
            f"--links keep is not possible here: {destination_end.location.host} makes no symbolic links; "
            "give --links follow or skip"
        )


def choose_checksums(options: CopyOptions, servers: Sequence[Endpoint], report: Report) -> ChecksumChoice:
    """Return which checksums files are compared by: of those that both ends can compute, if there are any.

    `servers`: one, or both ends, or the destination within this host, which compute what we cannot. Raises
    UsageError if one was asked for by hand that they do not offer.
    """
    is_here = servers[0].capabilities.is_here
    exposed = next((told for server in servers if (told := server.protection.exposed)), "")

    def offers(algorithm: str) -> bool:
        return all(algorithm in server.find_out(Question.CHECKSUMS).checksums for server in servers)

    choice = ChecksumChoice(options.checksum, offers, is_here=is_here, is_exposed=bool(exposed))
    if exposed and choice.is_proof:
        report.note(f"{exposed}; each file is compared by {choice.best(None)}", Severity.NOTICE)
    elif exposed:
        report.note(
            f"{exposed}, and what is compared does not show who has changed it on purpose", Severity.WARNING
        )
    if choice.is_by_hand and not choice.verifies:
        raise UsageError(
            f"--checksum {options.checksum} is not possible here: {_who_lacks(options.checksum, servers)}; "
            "give --checksum none to copy unverified"
        )
    choice.is_between = len(servers) > 1
    if not choice.verifies and options.checksum != NONE:
        choice.why_none = _no_checksums(servers)
    report.algorithm = choice.best(None)
    return choice


def note_unverified(choice: ChecksumChoice, report: Report) -> None:
    """Add the line that nothing can be compared, if that is so, now that it is known how data move."""
    if choice.why_none and not choice.verifies:
        report.note(choice.why_none, Severity.WARNING)


def choose_checksums_of_service(options: CopyOptions, report: Report) -> ChecksumChoice:
    """Return that nothing is compared here, as the service compares; UsageError for a checksum by name."""
    if options.checksum not in (AUTO, NONE):
        raise UsageError(
            f"--checksum {options.checksum} is not possible here: Globus compares each file by a checksum "
            "that the collections choose; leave it out, or give --checksum none"
        )
    if options.checksum == AUTO:
        report.note("Globus compares each file at both ends, by a checksum that the collections choose")
        report.algorithm = "globus"
    return ChecksumChoice(NONE, lambda _: False)


def _no_checksums(servers: Sequence[Endpoint]) -> str:
    """Return the line that nothing can be compared; of two servers it says which is to blame."""
    if len(servers) == 1:
        return NO_CHECKSUMS
    lacking = dict.fromkeys(  # one server may be at both ends
        each.location.authority or "this host"
        for each in servers
        if not set(FOR_SHORT) & set(each.find_out(Question.CHECKSUMS).checksums)
    )
    if not lacking:
        return "unverified: the two servers compute no checksum in common"
    compute = "computes" if len(lacking) == 1 else "compute"
    return f"unverified: {' and '.join(lacking)} {compute} no checksums"


def _who_lacks(algorithm: str, servers: Sequence[Endpoint]) -> str:
    host = next(
        each.location.host for each in servers if algorithm not in each.find_out(Question.CHECKSUMS).checksums
    )
    return f"{host or 'this host'} offers no such checksum of files"


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
    if not choice.is_by_hand or far_end.capabilities.is_here:
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
