"""`mpx list` and `mpx unfinished`."""

import contextlib
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from mpx.commands.copy_options import with_options
from mpx.commands.sorted_lines import SortedLines
from mpx.endpoints.schemes import capabilities_of, reached
from mpx.engine.endpoint import FileInfo, Kind
from mpx.errors import MpxError, PartialFailure, SourceError, UsageError
from mpx.location import Location, parse_location, shown_place
from mpx.options import OF_CAS, OF_GSI, OF_S3, OF_SSH, OF_WEB, OF_WEB_TLS, CopyOptions, flag_of
from mpx.report import Severity
from mpx.signals import Signals
from mpx.text import shown
from mpx.transfer.early_start import EarlyStart
from mpx.units import counted, format_size

if TYPE_CHECKING:  # as `mpx list` needs no journal
    from mpx.transfer.journal import Leftover
    from mpx.transfer.journal_reader import Contents


@click.command("list")
@click.argument("url", metavar="URL")
@click.option("-l", "--long", is_flag=True, help="show kind, mode, size and time beside the name")
@with_options("data_address_from_server", *OF_GSI, *OF_SSH, *OF_WEB, *OF_WEB_TLS, *OF_S3, *OF_CAS, "via")
def list_command(url: str, long: bool, **given: Any) -> None:
    """List a folder, or describe a file, at a server or on this host, sorted by the bytes of names.

    URL is written as SRC of mpx copy: davs://, dav://, s3://, gsiftp://, ftp://, ssh://, mpx://, or a name of
    this host. https:// and http:// have listings where the server speaks WebDAV.
    """
    options = CopyOptions(**{name: value for name, value in given.items() if value is not None})
    (location,) = reached([parse_location(url).absolute()], options.via)
    if not capabilities_of(location).through_ssh:
        _list(url, location, options, long=long)
        return
    with Signals() as signals, EarlyStart() as early:  # an ssh that asks for a password is not to outlive us
        early.reach(location, options)
        try:
            _list(url, location, options, signals.cancel.is_set, early, long=long)
        except MpxError as error:
            raise signals.translate(error) from None


def _list(
    url: str,
    location: Location,
    options: CopyOptions,
    stop: Callable[[], bool] = lambda: False,
    early: EarlyStart | None = None,
    *,
    long: bool,
) -> None:
    from mpx.transfer.opened_endpoint import opened_endpoint  # while an ssh may log in

    is_local = capabilities_of(location).is_here
    failed: list[MpxError] = []
    broken: MpxError | None = None
    with opened_endpoint(location, options, stop, writing=False, early=early) as endpoint:
        info = endpoint.stat(location.name) or endpoint.stat(location.name, follow=False)
        if info is None:
            raise SourceError(f"{url} does not exist")
        if info.kind is not Kind.FOLDER:
            _print(
                _raw(_line(location.name.rstrip("/").rsplit("/", 1)[-1], info, long=long), is_local=is_local)
            )
            return
        lines = SortedLines()
        try:
            for name, entry in endpoint.entries(location.name):
                if isinstance(entry, MpxError):
                    failed = [*failed, entry] if len(failed) < _MOST_LINES else failed
                else:
                    line = _raw(_line(name, entry, long=long), is_local=is_local)
                    lines.put(_raw(name, is_local=is_local), line)
        except MpxError as error:  # what has come is printed
            broken = error
        for line in lines.drain():
            _print(line)
        if broken:
            raise broken
        if long and (note := endpoint.listing_note()):
            click.echo(shown(f"note: {note.text}"), err=True)
    for each in failed:
        click.echo(shown(f"mpx: not listed: {each}"), err=True)
    if failed:
        raise PartialFailure(f"{url}: the listing has entries that cannot be read; they are named above")


_MOST_LINES = 1000  # about entries that cannot be listed


def _raw(text: str, *, is_local: bool) -> bytes:
    """Return a name, or a line with one, byte for byte as it is there."""
    return os.fsencode(text) if is_local else text.encode("utf-8", "surrogateescape")


def _print(line: bytes) -> None:
    """Print a line: to a program as it is, to a terminal so that it does no harm."""
    if sys.stdout.isatty():
        text = line.decode("utf-8", "surrogateescape")
        line = shown(text).encode(sys.stdout.encoding, "backslashreplace")
    sys.stdout.buffer.write(line + b"\n")


def _line(name: str, info: FileInfo, *, long: bool) -> str:
    name += "/" if info.kind is Kind.FOLDER else ""
    if not long:
        return name
    when = "-"
    if info.modified_s is not None:
        with contextlib.suppress(ValueError, OverflowError, OSError):  # a year that nobody can write
            when = datetime.fromtimestamp(info.modified_s, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
    mode = "----" if info.mode is None else f"{info.mode:04o}"
    size = "-" if info.size_bytes is None else str(info.size_bytes)
    arrow = f" -> {info.link_target}" if info.link_target else ""
    return f"{info.kind.value:<7}{mode:>5} {size:>15} {when:>20} {name}{arrow}"


@click.command("unfinished")
@click.option("--discard", is_flag=True, help="remove the partial files and forget them")
@click.option("--forget", is_flag=True, help="forget them here, and leave the partial files where they are")
@with_options(*OF_WEB, *OF_WEB_TLS, *OF_S3, *OF_CAS)
def unfinished_command(discard: bool, forget: bool, **given: Any) -> None:
    """Show the copies that were interrupted here, and for each the files that have partly arrived.

    Files are counted as far as they had been listed, and bytes as far as they are known here to have arrived;
    the next copy may find more at the destination. The same SRC and DST again continue a copy.
    """
    from mpx.endpoints.globus.discarding import cancel_tasks_of
    from mpx.transfer.discarded_files import discard as discarded
    from mpx.transfer.journal import leftovers
    from mpx.transfer.opened_endpoint import opened_endpoint

    if discard and forget:
        raise UsageError("--discard and --forget exclude each other; give one of them")
    chosen = {name: value for name, value in given.items() if value not in (None, ())}
    if chosen and not discard:
        raise UsageError(f"{flag_of(next(iter(chosen)))} is for --discard; give that too")
    options = CopyOptions(**chosen)
    kept: list[MpxError] = []
    found = False
    for leftover in leftovers():
        found = True
        files = leftover.known.files.values()
        ends = f"{shown_place(leftover.source)} -> {shown_place(leftover.destination)}"
        at = f" (s3:// at {shown(leftover.server)})" if leftover.server else ""
        click.echo(f"{ends}{at}: {_state_of(leftover.known)}")
        for file in files:
            if file.arrived:
                known = f"at least {file.arrived.size} of {counted(file.size_bytes, 'byte')}"
                click.echo(f"    {known} in {_place_of(leftover, file.partial)}")
        if forget:
            leftover.forget()
            click.echo("    forgotten")
        if not discard:
            continue
        try:
            destination = parse_location(leftover.destination)
            for told in cancel_tasks_of(leftover.key, options.timeout_s):
                click.echo(shown(f"    {told}"))
            partial = [file.partial for file in files]
            # What is noted without a server is at AWS.
            there = replace(options, endpoint_url=leftover.server or options.endpoint_url or "")
            with opened_endpoint(destination, there, writing=True, note=_warned, names=partial) as endpoint:
                for what, name in discarded(list(files), endpoint):
                    click.echo(f"    {what}: {_place_of(leftover, name)}")
            leftover.forget()
            click.echo("    discarded")
        except MpxError as error:
            click.echo(shown(f"    kept: {error}"))
            kept.append(error)
    if not found:
        click.echo("nothing is unfinished here", err=True)
    elif not (discard or forget):
        click.echo(_HOW_TO_GO_ON)
    if kept:
        raise type(kept[0])(
            f"not discarded: {len(kept)}, the first because {kept[0]}; if a server is gone for good, "
            "mpx unfinished --forget forgets them here"
        )


def _place_of(leftover: "Leftover", name: str) -> str:
    """Return the name of a partial file as it is shown: at a server, its URL."""
    destination = parse_location(leftover.destination)
    return shown_place(str(replace(destination, name=name, query="", path="")))


def _warned(text: str, severity: Severity = Severity.INFO, /) -> None:
    """Show what the user may have to do something about."""
    if severity >= Severity.WARNING:
        click.echo(shown(f"    {text}"))


_HOW_TO_GO_ON = (
    "to continue one: copy the same SRC to the same DST again, with the same options; "
    "to give all up: mpx unfinished --discard"
)


def _state_of(known: "Contents") -> str:
    """Return in words how many files and bytes of a copy are where they are to be."""
    partly = sum(1 for file in known.files.values() if file.arrived)
    rest = len(known.files) - partly
    why = " (this host was restarted since)" if known.was_restarted else ""
    there = known.finished_bytes + sum(file.arrived.size for file in known.files.values())
    size = known.finished_bytes + sum(file.size_bytes for file in known.files.values())
    return (
        f"{counted(known.finished_files, 'file')} done, {partly} partly there, "
        f"{rest} without confirmed bytes{why}; "
        f"at least {format_size(there)} of {format_size(size)} there"
    )
