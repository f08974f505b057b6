"""Comma-separated lines with a header, written as they come; times are seconds since the run's epoch."""

import csv
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Self

INTERVAL_S = 0.1  # between two samples of anything


class Log:
    """One file of lines. Each is there for readers at once, so a kill loses nothing."""

    def __init__(self, path: Path, columns: Iterable[str], epoch_s: float) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._epoch_s = epoch_s
        self._file = path.open("w", newline="", encoding="utf-8", buffering=1)
        self._writer = csv.writer(self._file, lineterminator="\n")
        self._writer.writerow(columns)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Write no more."""
        self._file.close()

    def line(self, at_s: float, *values: object) -> None:
        """Write a line; `at_s` is on the monotonic clock, None becomes an empty field."""
        self._writer.writerow([f"{at_s - self._epoch_s:.6f}", *values])


def next_tick(now_s: float, epoch_s: float, interval_s: float = INTERVAL_S) -> float:
    """Return the next whole multiple of the interval after the epoch, so that all files of a run agree."""
    return epoch_s + ((now_s - epoch_s) // interval_s + 1) * interval_s


def now_s() -> float:
    """Return the clock that all files of a run share: CLOCK_MONOTONIC, the same in every namespace."""
    return time.monotonic()
