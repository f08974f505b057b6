"""What the benches of Multipath TCP have on the command line, and whether a run counts."""

import argparse
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NoReturn

from figures import machine
from harness import Judge, command, require_root, run
from mpx_lab.judged import judged
from mpx_lab.lab import Lab
from mpx_lab.record import Run

from mpx.errors import UsageError

TRIES = 4  # until a run counts


def options_of(text: str | None) -> argparse.ArgumentParser:
    """Return the command line of a bench of Multipath TCP."""
    parser = command(text)
    parser.add_argument("--quick", action="store_true", help="few and short runs")
    parser.add_argument("--scale", type=float, default=1.0, help="factor of the lab's rates and queues")
    parser.add_argument("--any", action="store_true", help="show what does not count, without verdicts")
    return parser


class Counting:
    """Repeats what does not count, and tells how much that was.

    With `take_any` what does not count is shown in the table; no verdict is made of it.
    """

    def __init__(self, *, take_any: bool, scale: float) -> None:
        self._any, self._scale = take_any, scale
        self.valid = self.invalid = 0
        self.shows_invalid = False  # a run that does not count is in the figures
        self.reasons: list[str] = []

    def run(self, lab: Lab, what: str, do: Callable[[], Any]) -> Any:
        """Return what the first run that counts brought; raises UsageError where none of several does."""
        for _ in range(1 if self._any else TRIES):
            with tempfile.TemporaryDirectory() as folder:
                run = Run(Path(folder) / "run", what, {}, routes=lab.routes(), scale=self._scale)
                with run, judged(lab, run):
                    found = do()
                assert run.validity is not None
                if run.validity.valid:
                    self.valid += 1
                    return found
                self.invalid += 1
                self.reasons = list(run.validity.reasons)
        if not self._any:
            raise UsageError(f"no verdicts: none of {TRIES} runs of {what} counts: {'; '.join(self.reasons)}")
        self.shows_invalid = True
        return found

    @property
    def described(self) -> str:
        """How many runs counted, and why the last that did not, did not."""
        why = f"; the last of them: {'; '.join(self.reasons[:2])}" if self.reasons else ""
        return f"{self.valid} runs count, {self.invalid} do not{why}; scale {self._scale:g}"


def run_counted(
    parser: argparse.ArgumentParser,
    measure: Callable[[argparse.Namespace, Counting], tuple[Any, Iterable[str]]],
    judge: Judge,
) -> NoReturn:
    """Run a bench in labs, see harness.run; there is no verdict where a run that does not count is shown.

    `measure` returns what is judged, and the lines of a table.
    """

    def counted(options: argparse.Namespace) -> Any:
        require_root()
        counting = Counting(take_any=options.any, scale=options.scale)
        measured, lines = measure(options, counting)
        print("\n".join([machine("cubic"), counting.described, "", *lines, ""]))
        if counting.shows_invalid:
            raise UsageError("no verdicts: runs that do not count are in these figures")
        return measured

    run(parser, counted, judge)
