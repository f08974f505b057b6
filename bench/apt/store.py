"""Cells that were measured, one JSON file each: what was measured once is not measured again."""

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from apt.cell import Cell
from apt.measure import Series


@dataclass(frozen=True)
class Result:
    """What a valid run of a cell gave."""

    series: Series
    streams: Sequence[tuple[float, int]]  # (time since the first byte, streams from then on); mpx only
    told: dict[str, Any]  # lateness, drops, versions and all that is in the file

    def streams_at(self, t_s: float) -> int | None:
        """Return how many streams were open at a time; None where the tool does not tell."""
        before = [count for since_s, count in self.streams if since_s <= t_s]
        return before[-1] if before else None


class Store:
    """A folder of results."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def load(self, cell: Cell) -> Result | None:
        """Return what is stored of a cell, if it is."""
        try:
            told = json.loads(self._file(cell).read_text())
        except FileNotFoundError:
            return None
        series = Series(told["series"]["t_s"], told["series"]["bytes"])
        return Result(series, [(t, n) for t, n in told["streams"]], told)

    def save(self, cell: Cell, told: dict[str, Any]) -> None:
        """Keep a result; nothing half-written is ever found."""
        partial = self._file(cell).with_suffix(".part")
        partial.write_text(json.dumps({"cell": cell.described(), **told}))
        os.replace(partial, self._file(cell))

    def _file(self, cell: Cell) -> Path:
        return self.folder / f"{cell.name}.json"
