"""`mpx explain`: tells what a report of `mpx copy` says, and draws it."""

import logging
import sys
import warnings
from pathlib import Path

import click

from mpx.errors import UsageError
from mpx.text import quoted

_DASH = "-"

_EPILOG = """
\b
Examples:
  mpx copy --report r.json big.dat davs://se.example.org/data/
  mpx explain r.json
  mpx explain r.json --html r.html

Of the signs before lines, * is what held the copy back, ! what went wrong, and > what would have
been faster.

Exit codes: 0 done, 2 usage: no report, or a file cannot be written.

More: docs/explain.md in the sources of mpx.
"""


@click.command("explain", epilog=_EPILOG)
@click.argument("report", metavar="REPORT")
@click.option("--html", metavar="FILE", help="write a page for a browser, with the picture, to FILE")
@click.option("--png", metavar="FILE", help="draw the picture into FILE (needs matplotlib)")
def explain_command(report: str, html: str | None, png: str | None) -> None:
    """Tell what happened in a copy: what limited it, what was decided and gained, what would be faster.

    REPORT is what mpx copy --report FILE has written; - is standard input.
    """
    from mpx.explain.picture import picture
    from mpx.explain.record import read_report
    from mpx.explain.story import tell
    from mpx.explain.told import lines
    from mpx.files.atomic_file import check_writable, whole

    for file in filter(None, (html, png)):
        _check_apart(file, report)
        check_writable(file)
    if png:
        _check_png(png)
    record = read_report(_read(report), report if report != _DASH else "standard input")
    chapters = tell(record)
    if html:
        from mpx.explain.page import page

        with whole(html) as out:
            out.write(page(record, chapters).encode())
    if png:
        drawn = picture(record)
        if drawn is None:
            raise UsageError(f"nothing to draw in {quoted(report)}: the report has nothing over time")
        from mpx.explain.plot import plot

        plot(drawn, png)
    for line in lines(chapters):
        click.echo(line)


def _read(name: str) -> bytes:
    """Return what is in a file, not much more than a report can have; raises UsageError."""
    from mpx.explain.record import MOST_BYTES

    try:
        if name == _DASH:
            return sys.stdin.buffer.read(MOST_BYTES + 1) if sys.stdin else b""
        with Path(name).open("rb") as file:
            return file.read(MOST_BYTES + 1)
    except (OSError, ValueError) as error:  # ValueError: a name with a NUL
        why = error.strerror if isinstance(error, OSError) else "no such name can be"
        raise UsageError(f"cannot read {quoted(name)}: {why}; give a report of mpx copy --report") from None


def _check_apart(file: str, report: str) -> None:
    """Raise UsageError where a picture would replace the report that it is made of, or has no name."""
    if file == _DASH:
        raise UsageError("a page or picture goes into a file: give its name instead of -")
    try:
        if report != _DASH and Path(file).samefile(report):
            raise UsageError(f"{quoted(file)} is the report itself; give the picture another name")
    except (OSError, ValueError):
        return  # one of them is not there


def _check_png(file: str) -> None:
    """Raise UsageError where it cannot be drawn; known before anything is told."""
    if not file.lower().endswith(".png"):
        raise UsageError(f"--png {quoted(file)}: the picture is a PNG; end its name in .png")
    logging.getLogger().addHandler(logging.NullHandler())  # what matplotlib logs is not for users
    warnings.simplefilter("ignore")
    try:
        import mpx.explain.plot  # noqa: F401
    except ImportError as error:
        why = " ".join(str(error).split())  # some fill several lines
        raise UsageError(
            f"--png needs matplotlib ({why}); install it with mpx, in its sources: pip install '.[plot]'"
        ) from None
