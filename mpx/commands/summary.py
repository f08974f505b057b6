"""What a person is told of a copy at its end: what failed, what surprises, and in one line what was done."""

from mpx.commands.alike import shown_and_left
from mpx.commands.output import complain
from mpx.engine.path_set import DEFAULT_PATH
from mpx.location import shown_place
from mpx.report import Report, Severity
from mpx.text import named, shown
from mpx.units import format_duration, format_rate, format_size


def say(line: str) -> None:
    """Print a line on standard output, now: an error that follows on standard error stands behind it."""
    print(shown(line), flush=True)


def tell_details(report: Report, *, verbose: bool, quiet: bool) -> None:
    """Print what failed, and unless `quiet` what surprises; if `verbose`, every decision and note too."""
    if not quiet:
        _tell_surprises(report, verbose=verbose)
    if report.files.total > 1:
        failures = [
            (entry["name"], entry["error"].removeprefix(f"{entry['name']}: ")) for entry in report.failures
        ]
        for some, left in [([each], 0) for each in failures] if verbose else shown_and_left(failures):
            for name, cause in some:
                complain(f"not copied {named(name)}: {shown(cause)}")
            if left:
                complain(f"... and {left} more alike; -v names them, as does --report")


def tell_unverified(report: Report, *, verbose: bool) -> None:
    """Print why what was copied is not verified, if anything was; unless `verbose`, of many alike a few."""
    if not report.files.moved + report.files.resumed:
        return
    notes = report.noted(Severity.WARNING)
    for note in notes:
        if verbose or not note.name:
            say(note.text)
    of_files = [] if verbose else [(note.name, note.text) for note in notes if note.name]
    for some, left in shown_and_left(of_files):
        for _, text in some:
            say(text)
        if left:
            say(f"unverified: ... and {left} more alike; -v names them, as does --report")


def summary(report: Report, *, verbose: bool) -> str:
    """Return in one line what was done, or would be done."""
    if report.dry_run:
        return _rehearsed(report)
    files = report.files
    if not files.total:
        return "nothing to copy: there are no files"
    if not files.moved + files.resumed:
        untold = not verbose and any(entry["reason"].severity is Severity.INFO for entry in report.skipped)
        why = ", -v says why" if untold else ""
        return f"nothing to copy: {files.skipped} of {files.total} files skipped{why}"
    return _copied(report)


def partial_summary(report: Report) -> str:
    """Return in one line what was done although some files failed; their causes have been told."""
    files = report.files
    above = "" if files.failed <= report.MOST_LINES else f" (the first {report.MOST_LINES} are named above)"
    failed = (
        f"{files.failed} of {files.total} files {'cannot be' if report.dry_run else 'were not'} copied{above}"
    )
    if report.dry_run:
        return f"{failed}; {_rehearsed(report)}"
    if files.moved + files.resumed:
        return f"{failed}; {_copied(report)}"
    left = f", {files.skipped} skipped" if files.skipped else ""
    return f"{failed}; none was copied to {shown_place(report.destination)}{left}"


def _tell_surprises(report: Report, *, verbose: bool) -> None:
    """Print what was left out or began anew; if `verbose`, every decision and note."""
    if verbose:
        for event in report.timeline:
            rate = format_rate(event.goodput_bps)
            kind = f"{event.congestion} stream" if event.congestion else "stream"
            streams = f"{event.streams:4d} {kind}{'' if event.streams == 1 else 's'}"
            path = "" if event.path == DEFAULT_PATH else f" path {event.path:<3}"
            say(f"{event.t_s:8.2f} s{path} {streams:<18} {rate:>14}  {event.reason}")
        for each in report.decisions.get("paths") or ():
            if "carried_bytes" in each:
                say(f"path {each['path']}: {format_size(each['carried_bytes'])} arrived over it")
    for note in report.noted():
        if verbose or note.severity is Severity.NOTICE:
            say(f"note: {note.text}")
    if report.dry_run:
        return  # it has listed what it would skip
    for entry in report.skipped:
        if verbose or entry["reason"].severity is Severity.NOTICE:
            say(f"skipped {named(entry['name'])}: {entry['reason']}")


def _rehearsed(report: Report) -> str:
    files, size = report.files, report.bytes
    line = f"dry run: {files.total - files.skipped - files.failed} of {files.total} files to copy, "
    return f"{line}{format_size(size.total - size.skipped - size.failed)}; nothing was copied"


def _copied(report: Report) -> str:
    files, size = report.files, report.bytes
    moved = format_size(size.moved + size.resumed)
    there = shown_place(report.destination)
    line = f"copied {files.moved + files.resumed} of {files.total} files to {there}, {moved} in "
    line += f"{format_duration(report.duration_s)}, "
    if size.resumed:
        line += f"{format_size(size.resumed)} of it by an earlier run, "
    line += f"{format_rate(report.goodput_bps)}, {_verified(report)}"
    if files.skipped:
        line += f", {files.skipped} skipped"
    return line


def _verified(report: Report) -> str:
    """Return what was compared of the copied files, by which checksum, and how many bytes if by several."""
    compared: dict[str, int] = report.checksum["bytes"]
    by = [f"{name} {format_size(count)}" for name, count in compared.items() if name != "none"]
    if report.algorithm == "none" or compared.get("none"):  # whatever befell those that failed
        return f"unverified ({', '.join(by)})" if by else "unverified"
    passed, of_all = report.of_passed_bytes, sum(compared.values())
    how = "" if not passed else ", of what passed here"
    if passed != of_all:
        how = how and f"{how}: {format_size(passed)}"
    if len(compared) == 1:
        return f"verified ({report.checksum['algorithm']}{how})"
    return f"verified ({', '.join(by)}{how})" if by else "verified"
