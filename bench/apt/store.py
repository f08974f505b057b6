"""Cells that were measured, a folder each as docs/lab-format.md has it: none is measured twice."""

import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mpx_lab.record_reader import RecordedRun

from apt.cell import Cell
from apt.measure import Goodput, since_first_byte
from apt.tools import PAPER, is_mpx
from mpx.errors import UsageError


@dataclass(frozen=True)
class Transfer:
    """One transfer of a run."""

    began_s: float  # when its first byte arrived, in the run's time
    goodput: Goodput
    streams: Sequence[tuple[float, int]]  # (time since its first decision, streams from then on); mpx only

    def mean_streams(self, from_s: float, to_s: float) -> float | None:
        """Return the mean number of streams between two times; None where the tool does not tell."""
        if not self.streams:
            return None
        ends = [since_s for since_s, _ in self.streams[1:]] + [to_s]
        spans = [
            (max(0.0, min(end, to_s) - max(begin, from_s)), count)
            for (begin, count), end in zip(self.streams, ends, strict=True)
        ]
        return sum(span * count for span, count in spans) / sum(span for span, _ in spans)


@dataclass(frozen=True)
class Result:
    """What a valid run of a cell gave: its transfers in the order in which they joined."""

    run: RecordedRun
    transfers: Sequence[Transfer]

    @property
    def about(self) -> dict[str, Any]:
        """What run.json says."""
        return self.run.about

    @property
    def goodput(self) -> Goodput:
        """That of the first transfer."""
        return self.transfers[0].goodput

    @property
    def streams(self) -> Sequence[tuple[float, int]]:
        """Those of the first transfer."""
        return self.transfers[0].streams

    @property
    def searches_for_ever(self) -> bool:
        """Whether its tuner never settles: ours looks elsewhere now and then."""
        return not str(self.about["parameters"].get("tool", "")).startswith(PAPER)

    def late_streams(self) -> float | None:
        """Return the mean number of streams of the first transfer in the last third of its time.

        Of a tuner whose search ends it is the last number.
        """
        end_s = self.goodput.end_s
        if self.searches_for_ever:
            return self.transfers[0].mean_streams(end_s * 2 / 3, end_s)
        return float(self.streams[-1][1])


class Store:
    """A folder of runs, each named for its cell; one that did not count lies beside it as NAME.N.invalid."""

    def __init__(self, folder: Path, code: str | None = None) -> None:
        """`code`: only what this code of mpx has measured counts; None: whichever it was."""
        self.folder, self._code = folder, code
        folder.mkdir(parents=True, exist_ok=True)

    def begin(self, cell: Cell) -> Path:
        """Return where the next run of a cell is to be written: an empty folder."""
        unfinished = self.folder / f"{cell.name}.running"
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir()
        return unfinished

    def keep(self, cell: Cell) -> None:
        """Keep the run that was begun, if it is valid; otherwise lay it aside."""
        unfinished = self.folder / f"{cell.name}.running"
        if RecordedRun.open(unfinished).valid:
            kept = self.folder / cell.name
            if kept.is_dir():  # by other code
                code = RecordedRun.open(kept).about["versions"].get("code", "unknown")
                shutil.rmtree(aside := self.folder / f"{cell.name}.{code}.other", ignore_errors=True)
                kept.rename(aside)
            unfinished.rename(kept)
        else:
            turn = len(list(self.folder.glob(f"{cell.name}.*.invalid"))) + 1
            unfinished.rename(self.folder / f"{cell.name}.{turn}.invalid")

    def thrown_out(self, cell: Cell) -> int:
        """Return how many runs of the cell did not count."""
        return len(list(self.folder.glob(f"{cell.name}.*.invalid")))

    def has(self, cell: Cell) -> bool:
        """Tell whether the cell has been measured, by this code if mpx took part in it."""
        folder = self.folder / cell.name
        if not folder.is_dir():
            return False
        if self._code is None or not is_mpx(cell.tool):
            return True
        return bool(RecordedRun.open(folder).about["versions"].get("code") == self._code)

    def load(self, cell: Cell) -> Result:
        """Return what is stored of a cell; raises UsageError if there is nothing that can be read."""
        run = RecordedRun.open(self.folder / cell.name)
        try:
            return Result(run, [_transfer(run, i) for i in range(1, cell.transfers + 1)])
        except (OSError, ValueError, KeyError, IndexError) as error:
            raise UsageError(
                f"{run.folder} cannot be read ({error}); remove it to measure it again"
            ) from None


def _transfer(run: RecordedRun, number: int) -> Transfer:
    began_s, goodput = since_first_byte(run.goodput(f"transfer-{number}"))
    if not is_mpx(run.about["parameters"]["tool"]):
        return Transfer(began_s, goodput, [])
    timeline = json.loads((run.folder / f"report-{number}.json").read_text())["timeline"]
    since_s = timeline[0]["t_s"]
    return Transfer(began_s, goodput, [(event["t_s"] - since_s, event["streams"]) for event in timeline])
