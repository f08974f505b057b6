"""`mpx copy`: reads the command line into CopyOptions, shows progress, writes the report."""

import contextlib
import os
import sys
from typing import TYPE_CHECKING, Any

import click

from mpx.commands.copy_options import with_options
from mpx.commands.output import complain
from mpx.errors import Interrupted, MpxError, PartialFailure, UsageError
from mpx.location import parse_location
from mpx.options import CopyOptions
from mpx.signals import Signals
from mpx.transfer.early_start import EarlyStart
from mpx.transfer.told_apart import told_apart
from mpx.units import format_size

if TYPE_CHECKING:  # what a copy itself needs is imported once it begins, not to show the help
    from mpx.report import Report

_DASH = "-"
_OF_COMMENTS = "#"  # in lists of other programs
_STANDARD_OUTPUT = "/dev/stdout"
_MOST_LIST_BYTES = 256 * 1024 * 1024  # of sources

_EPILOG = """
\b
Examples:
  mpx copy results.h5 dtn.example.org:data/
  mpx copy https://archive.example.org/genomes/hg38.fa.gz .
  mpx copy -r run7 davs://se.example.org:1094/vo/run7
  mpx copy -r s3://bucket/run7 run7
  mpx copy -r gsiftp://a.example.org/run7 gsiftp://b.example.org/run7
  mpx copy --rate 800Mbit/s --report r.json big.dat ftp://me@host:2811/~/

The password of a user comes from MPX_PASSWORD or ~/.netrc. Tokens, keys and proxies for each kind of
server: docs/sites.md. The same SRC and DST again continue an interrupted copy.

Exit codes: 0 done, 1 unexpected, 2 usage or impossible option, 3 source not found or not readable,
4 destination refused or locked, 5 not authenticated, 6 cannot reach, 7 timed out, 8 checksum mismatch
or source changed, 9 no space, 10 some files of several failed, 11 no paths from a required
controller, 129, 130 and 143 interrupted.

The guide: docs/user-guide.md in the sources of mpx.
"""


@click.command("copy", epilog=_EPILOG)
@click.argument("names", nargs=-1, metavar="SRC... DST")
@with_options()
@click.option(
    "--from-file",
    metavar="FILE",
    help="read sources from FILE (- is standard input), one per line, "
    "each with an optional tab and name at the destination",
)
@click.option(
    "--report",
    "report_file",
    metavar="FILE",
    help="write the JSON report to FILE (- is standard output; all else is then printed on standard error)",
)
@click.option(
    "--progress",
    type=click.Choice(("auto", "plain", "json", "none")),
    default="auto",
    help="how progress is shown  [default: auto]",
)
@click.option("-v", "--verbose", is_flag=True, help="print every decision and note at the end")
@click.option(
    "-q", "--quiet", is_flag=True, help="print nothing but errors, and progress if --progress is given"
)
@click.pass_context
def copy_command(
    context: click.Context,
    /,
    names: tuple[str, ...],
    from_file: str | None,
    report_file: str | None,
    progress: str,
    verbose: bool,
    quiet: bool,
    **given: Any,
) -> None:
    """Copy files, and with -r folders, between this host and servers, between servers, or within this host.

    SRC and DST are plain names, file: URLs, [USER@]HOST:NAME for ssh://, or URLs: https://HOST[:PORT]/NAME
    (http, davs and dav for WebDAV, gsiftp and ftp for GridFTP and FTP, ssh, which uses SFTP where there is
    no mpx, and mpx for mpx serve are written alike), s3://BUCKET/KEY and globus://COLLECTION/PATH.

    One file goes to DST, or into it if DST ends in / or is a folder; one folder (-r) becomes DST: what is in
    it goes into DST. Several sources go into DST under their own names.
    """
    explicit = {
        name for name in given if context.get_parameter_source(name) is not click.core.ParameterSource.DEFAULT
    }
    if verbose and quiet:
        raise UsageError("-v and -q exclude each other; give one of them")
    if quiet and context.get_parameter_source("progress") is click.core.ParameterSource.DEFAULT:
        progress = "none"
    options = CopyOptions(**{name: given[name] for name in explicit}, explicit=frozenset(explicit))
    sources, targets, destination = _sources(list(names), from_file)
    if report_file == _DASH:
        report_file = _STANDARD_OUTPUT
        context.with_resource(contextlib.redirect_stdout(sys.stderr))
    if report_file:
        from mpx.commands.report_place import check_apart
        from mpx.files.atomic_file import check_writable

        check_apart(report_file, sources, destination)
        check_writable(report_file)
    begun: Report | None = None

    def begin(report: "Report") -> None:
        nonlocal begun
        begun = report

    def so_far() -> "Report":
        from mpx.report import Report

        return begun or Report(" ".join(sources), destination, dry_run=options.dry_run)

    with Signals() as signals, EarlyStart() as early:
        signals.last_words = lambda: _write_interrupted(so_far(), signals, report_file, destination)
        try:
            places = [parse_location(name).absolute() for name in (*sources, destination)]
            told = told_apart(places[:-1], targets)
            early.copy(told, places[-1], options)
            # What a copy needs is imported now, while an ssh may log in.
            from mpx.commands.progress import view
            from mpx.commands.summary import say
            from mpx.transfer.copy import Copy

            with view(progress) as show:
                copy = Copy(told, places[-1], options, signals.cancel, early)
                report = copy.run(targets, begin, show, None if quiet else say)
        except MpxError as error:
            failure, report = signals.translate(error), so_far()
            report.ended_by(failure)
            _write(report, report_file, destination)
            raise _told(report, failure, verbose=verbose, quiet=quiet) from None
        _write(report, report_file, destination)
        _tell(report, verbose=verbose, quiet=quiet)


def _tell(report: "Report", *, verbose: bool, quiet: bool) -> None:
    """Print what was done."""
    from mpx.commands.summary import say, summary, tell_details, tell_unverified

    tell_details(report, verbose=verbose, quiet=quiet)
    if not quiet:
        say(summary(report, verbose=verbose))
        tell_unverified(report, verbose=verbose)


def _told(report: "Report", failure: MpxError, *, verbose: bool, quiet: bool) -> MpxError:
    """Print what was done before a copy failed, and return the error that is told in the end."""
    from mpx.commands.summary import partial_summary, tell_details, tell_unverified

    tell_details(report, verbose=verbose, quiet=quiet)
    if not isinstance(failure, PartialFailure) or report.files.total <= 1:
        return failure
    if not quiet:
        tell_unverified(report, verbose=verbose)
    return PartialFailure(partial_summary(report))


def _sources(names: list[str], from_file: str | None) -> tuple[list[str], list[str | None] | None, str]:
    """Return the sources, their targets and the destination; raises UsageError."""
    if not names:
        raise UsageError("nothing to copy; give SRC and DST, see mpx copy --help")
    *sources, destination = names
    if destination == _DASH:
        raise UsageError(
            f"cannot copy to standard output ('{_DASH}'): a file gets its name only when it is complete and "
            f"verified; name a file as DST, or ./{_DASH} for a file called '{_DASH}'"
        )
    if from_file is None:
        if not sources:
            raise UsageError(f"a source or the destination is missing beside {destination}; give SRC and DST")
        _check_dash(sources)
        return sources, None, destination
    if sources:
        raise UsageError("give sources either on the command line or with --from-file, not both")
    listed, targets = read_list(from_file)
    _check_dash(listed)
    return listed, targets, destination


def _check_dash(sources: list[str]) -> None:
    if _DASH in sources:
        raise UsageError(
            f"'{_DASH}' is not taken as a source; name standard input /dev/stdin, or a file called '{_DASH}' "
            f"./{_DASH}"
        )


def read_list(name: str) -> tuple[list[str], list[str | None]]:
    """Read --from-file: one source per line, with an optional tab and target. Raises UsageError."""
    try:
        if name == "-":
            text = sys.stdin.buffer.read(_MOST_LIST_BYTES + 1) if sys.stdin else b""
        else:
            from pathlib import Path

            with Path(name).open("rb") as file:
                text = file.read(_MOST_LIST_BYTES + 1)
    except OSError as error:
        raise UsageError(f"cannot read {name}: {error.strerror}") from None
    if len(text) > _MOST_LIST_BYTES:
        raise UsageError(f"{name} has more than {format_size(_MOST_LIST_BYTES)}; copy with several lists")
    sources: list[str] = []
    targets: list[str | None] = []
    place = "standard input" if name == "-" else name
    for number, line in enumerate(text.decode("utf-8", "surrogateescape").split("\n"), 1):
        source, tab, target = line.removesuffix("\r").partition("\t")
        if source.startswith(_OF_COMMENTS) and not os.path.lexists(source):
            raise UsageError(
                f"line {number} of {place} begins with {_OF_COMMENTS} and names no file here: lists have no "
                "comments, as names may begin so; remove it"
            )
        if source:
            sources.append(source)
            targets.append(target if tab and target else None)
    if not sources:
        raise UsageError(f"{place} names no source; it needs one on each line")
    return sources, targets


def _write(report: "Report", name: str | None, destination: str) -> None:
    """Write the report; the exit code stays that of the copy where that fails."""
    if name:
        from mpx.commands.report_place import check_apart

        try:
            check_apart(name, [], destination)  # a copied file may have the name by now
            report.write(name)
        except (UsageError, MemoryError) as error:
            complain(f"no report was written: {str(error) or 'not enough memory'}")


def _write_interrupted(report: "Report", signals: Signals, name: str | None, destination: str) -> None:
    """Write the report of a copy that does not end although it is to."""
    report.ended_by(signals.translate(Interrupted()))
    report.close()
    _write(report, name, destination)
