"""Stores measured cells, a folder each (docs/lab-format.md), so that none is measured twice."""

import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mpx_lab.record_reader import RecordedRun

from apt.cell import Cell
from apt.code import UNKNOWN, agree
from apt.measure import Goodput, since_first_byte
from apt.tools import PAPER, is_mpx, started_file
from mpx.errors import UsageError

INVALID, FAILED = "invalid", "failed"


@dataclass(frozen=True)
class Transfer:
    """One transfer of a run."""

    began_s: float  # when its first byte arrived, in the run's time
    goodput: Goodput
    # (time, streams from then on); mpx only. The time counts from its first decision, some round trips before
    # the first byte, and no report says how many: too little to matter to what is read of it, spans of 10 s.
    streams: Sequence[tuple[float, int]]
    started_s: float | None = None  # when its tool was started, in the run's time; None: not recorded

    def mean_streams(self, from_s: float, to_s: float) -> float | None:
        """Return the mean number of streams between two times; None where the tool does not report it."""
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
        """Whether its tuner explores for ever, as that of mpx does."""
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
    """A folder of runs, each named for its cell.

    Beside it lie those that did not count: NAME.N.invalid, NAME.N.failed if its tool or the bench failed,
    and NAME.CODE.other by other code.
    """

    def __init__(self, folder: Path, code: str | None = None) -> None:
        """`code`: only cells measured by this version count, see apt.code; None: all count."""
        self.folder, self._code = folder, code
        folder.mkdir(parents=True, exist_ok=True)

    def begin(self, cell: Cell) -> Path:
        """Return where the next run of a cell is to be written: an empty folder."""
        unfinished = self.folder / f"{cell.name}.running"
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir()
        return unfinished

    def keep(self, cell: Cell) -> bool:
        """Keep the run that was begun if it is valid, else set it aside; return whether it is valid."""
        unfinished = self.folder / f"{cell.name}.running"
        valid = RecordedRun.open(unfinished).valid
        if valid:
            kept = self.folder / cell.name
            if kept.is_dir():  # measured by another version
                aside = self.folder / f"{cell.name}.{_code_of(kept)}.other"
                shutil.rmtree(aside, ignore_errors=True)
                kept.rename(aside)
            unfinished.rename(kept)
        else:
            self._lay_aside(cell, INVALID)
        return valid

    def fail(self, cell: Cell, reason: str) -> None:
        """Set the run that was begun aside as failed, with the reason in its folder."""
        (self.folder / f"{cell.name}.running" / "failed.txt").write_text(f"{reason}\n")
        self._lay_aside(cell, FAILED)

    def _lay_aside(self, cell: Cell, kind: str) -> None:
        turn = self.thrown_out(cell, kind) + 1
        (self.folder / f"{cell.name}.running").rename(self.folder / f"{cell.name}.{turn}.{kind}")

    def thrown_out(self, cell: Cell, kind: str) -> int:
        """Return how many runs of the cell did not count (INVALID or FAILED), of all versions."""
        return len(list(self.folder.glob(f"{cell.name}.*.{kind}")))

    def has(self, cell: Cell) -> bool:
        """Tell whether the cell has been measured by this version, see code.agree."""
        folder = self.folder / cell.name
        if not folder.is_dir():
            return False
        return self._code is None or agree(_code_of(folder), self._code, cell.tool)

    def load(self, cell: Cell) -> Result:
        """Return what is stored of a cell; raises UsageError if there is nothing that can be read."""
        run = RecordedRun.open(self.folder / cell.name)
        try:
            return Result(run, [_transfer(run, i) for i in range(1, cell.transfers + 1)])
        except (OSError, ValueError, KeyError, IndexError) as error:
            raise UsageError(
                f"{run.folder} cannot be read ({error}); remove it to measure it again"
            ) from None


def _code_of(folder: Path) -> str:
    return str(RecordedRun.open(folder).about["versions"].get("code", UNKNOWN))


def _transfer(run: RecordedRun, number: int) -> Transfer:
    began_s, goodput = since_first_byte(run.goodput(f"transfer-{number}"))
    file = run.folder / started_file(number)
    started_s = json.loads(file.read_text())["started_s"] if file.exists() else None
    if not is_mpx(run.about["parameters"]["tool"]):
        return Transfer(began_s, goodput, [], started_s)
    timeline = json.loads((run.folder / f"report-{number}.json").read_text())["timeline"]
    since_s = timeline[0]["t_s"]
    streams = [(event["t_s"] - since_s, event["streams"]) for event in timeline]
    return Transfer(began_s, goodput, streams, started_s)
