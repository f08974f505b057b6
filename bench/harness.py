"""The harness of all benches: a command line, measuring apart from judging, stored results, verdicts.

A bench measures first and judges afterwards. What it measures are plain values, as JSON holds them, and its
function `judge` makes verdicts of nothing else: stored results (`--results FILE`) are judged like new ones
(`--judge FILE`, tests/bench/test_bench_verdicts.py).
"""

import argparse
import importlib.util
import json
import os
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, Generic, NoReturn, TypeVar

from figures import Verdict, drawn

from mpx.errors import MpxError, UsageError

Judge = Callable[[Any], Iterable[Verdict]]
Results = TypeVar("Results")


def argument(read: Callable[[str], Any]) -> Callable[[str], Any]:
    """Return what reads the value of an option, with the message of our own errors where it cannot."""

    def value(text: str) -> Any:
        try:
            return read(text)
        except UsageError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return value


def command(head: str | None) -> argparse.ArgumentParser:
    """Return the command line of a bench: the head of its file is its help."""
    parser = argparse.ArgumentParser(description=head, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, metavar="FILE", help="write what was measured to it, as JSON")
    parser.add_argument("--judge", type=Path, metavar="FILE", help="only judge what --results wrote")
    return parser


def run(
    parser: argparse.ArgumentParser,
    measure: Callable[[argparse.Namespace], Any],
    judge: Judge,
    show: Callable[[Any, argparse.Namespace], None] | None = None,
) -> NoReturn:
    """Measure as the command line says, or read stored results, and judge; the last step of every bench.

    Exits with 1 where a limit was not kept or nothing was judged, and with a message where `measure` raises
    an MpxError, or is interrupted (130). `measure` returns what JSON holds, and data classes of it. `show`
    prints new and stored results alike, as JSON holds them; a bench that has it needs no argument.
    """
    judging = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    judging.add_argument("--judge", type=Path)
    options, _ = judging.parse_known_args()
    options.results, file = None, options.judge
    if file is None or show:
        options = parser.parse_args()
    try:
        measured = measure(options) if file is None else json.loads(file.read_text())
    except MpxError as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.stderr.write("interrupted; where runs are kept (--data), the same command goes on from there\n")
        sys.exit(130)
    except (OSError, ValueError) as error:
        if file is None:
            raise
        sys.exit(f"cannot read the results in {file}: {error}")
    if show:
        show(as_stored(measured), options)
    sys.exit(conclude(judge, measured, options.results))


def as_stored(measured: Any) -> Any:
    """Return what was measured as JSON holds it."""
    return json.loads(json.dumps(measured, default=asdict))


def conclude(judge: Judge, measured: Any, results: Path | None) -> int:
    """Judge what was measured exactly as it is stored, print the verdicts and return the exit code.

    1 where a limit was not kept, or there was no verdict. `results`: where what was measured is written.
    """
    if results:
        results.write_text(json.dumps(measured, indent=1, default=asdict) + "\n")
    kept = []
    for verdict in judge(as_stored(measured)):
        print(verdict, flush=True)
        kept.append(verdict.kept)
    if not kept:
        print("NOT kept / at least one verdict / none: nothing was judged")
    return 0 if kept and all(kept) else 1


def require_root() -> None:
    """Exit with a message where a bench that builds labs is not run as root."""
    if os.geteuid() != 0:
        sys.exit("this bench makes network namespaces, which needs root: run it again with sudo")


@contextmanager
def work_folder(name: str, where: str | Path = "/dev/shm", mode: int = 0o777) -> Iterator[Path]:
    """Yield a new folder that servers of other users can enter; it is removed afterwards."""
    with tempfile.TemporaryDirectory(prefix=f"mpx-{name}-", dir=where, ignore_cleanup_errors=True) as made:
        folder = Path(made)
        folder.chmod(mode)
        yield folder


class Row(ABC, Generic[Results]):
    """One row of a published evaluation: what is measured or computed, a table, a figure.

    The help is the head of the file that defines it; `name` is that of its figure.
    """

    name: str
    folder: str  # for figures and stored runs, by default
    panels = (1, 1)  # rows and columns of axes
    size = (8.0, 4.5)  # inches

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add options; all rows have these."""
        parser.add_argument("--effort", choices=("quick", "full"), default="quick")
        parser.add_argument(
            "--data",
            "--out",
            type=Path,
            default=Path(self.folder),
            help=f"where runs and figures are kept (default {self.folder})",
        )

    @abstractmethod
    def results(self, options: argparse.Namespace) -> Results:
        """Measure or compute, print the table, and return what came out; raises MpxError."""

    @abstractmethod
    def table(self, results: Results) -> Sequence[str]:
        """Return the lines of the table."""

    @abstractmethod
    def measured(self, results: Results) -> Any:
        """Return what is judged, as JSON holds it; raises MpxError where it must not be judged."""

    @abstractmethod
    def draw(self, results: Results, axes: Any) -> None:
        """Draw the figure on the axes of matplotlib: one, or an array of them where `panels` says so."""


def run_row(row: Row[Any], judge: Judge) -> NoReturn:
    """Run a row as its command line says; see `run`."""
    parser = command(sys.modules[type(row).__module__].__doc__)
    row.arguments(parser)

    def measure(options: argparse.Namespace) -> Any:
        if importlib.util.find_spec("matplotlib") is None:  # else it would show after hours only
            raise UsageError(
                "the figure needs matplotlib, which a user of mpx need not have: run 'make setup', and this "
                "bench with the Python that makes, .venv/VERSION/bin/python"
            )
        results = row.results(options)
        print(drawn(options.data / f"{row.name}.png", partial(row.draw, results), row.panels, row.size))
        return row.measured(results)

    run(parser, measure, judge)


class CellRow(Row[Results]):
    """A row whose runs are kept, a folder each, so that none is measured twice."""

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the option to measure nothing."""
        super().arguments(parser)
        parser.add_argument("--measure-nothing", action="store_true", help="only what is stored already")


@contextmanager
def measuring(missing: int, cells: int) -> Iterator[None]:
    """Say afterwards how long the missing cells took; measuring needs root."""
    require_root()
    began_s = time.monotonic()
    yield
    print(f"measured {missing} of {cells} cells in {time.monotonic() - began_s:.0f} s")
