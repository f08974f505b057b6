"""The log of a link: what each direction held, carried and dropped, every 100 ms in which something happened.

A CSV file with a header. Counters run from the link's start; `queue_max_bytes`, lateness and pickup are
those of the time since the line before. A direction in which nothing happens has no lines, but before the
next one comes the last that was left out: two lines of it that are further apart are the same but for their
time. Times are CLOCK_MONOTONIC, in nanoseconds. A file that reaches its size becomes `NAME.csv.1`, in the
place of an older one.
"""

import csv
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from mpx_lab.emulator.accounting import NS, TALLIES, Tally
from mpx_lab.shape import Direction


@dataclass(frozen=True)
class LinkLogLine:
    """One line of the log."""

    time_s: float  # of time.monotonic()
    direction: Direction
    up: bool
    rate_bps: int | None
    delay_s: float
    queue_max_bytes: int  # since the line before
    received: Tally
    delivered: Tally
    dropped_queue: Tally
    dropped_loss: Tally
    dropped_down: Tally
    dropped_ring: Tally
    dropped_invalid: Tally
    write_errors: Tally
    held: Tally
    queued: Tally
    late_p50_s: float  # since the line before
    late_p99_s: float
    late_max_s: float
    pickup_p50_s: float  # since the line before
    pickup_p99_s: float
    pickup_max_s: float


def read_log(file: Path) -> list[LinkLogLine]:
    """Read a log with the part before it; raises OSError, and ValueError for another file."""
    with _opened(file) as parts:
        return [line for part in parts for line in parse_log(part)]


def copy_log(file: Path, folder: Path) -> None:
    """Copy a log with the part before it into a folder, where `read_log` finds both; raises OSError.

    The link may write on meanwhile; then the last line of the copy need not be whole.
    """
    copy = folder / file.name
    with _opened(file) as parts:
        for part, to in zip(reversed(parts), (copy, older_part(copy)), strict=False):
            with to.open("w", newline="") as out:
                shutil.copyfileobj(part, out)


@contextmanager
def _opened(file: Path) -> Iterator[list[TextIO]]:
    """Open a log, after the part before it if there is one."""
    with ExitStack() as stack:
        parts: list[TextIO] = [stack.enter_context(file.open(newline=""))]
        with suppress(FileNotFoundError):
            older = stack.enter_context(older_part(file).open(newline=""))
            # Where they are the same file, the log was rotated between the two.
            if not os.path.sameopenfile(older.fileno(), parts[0].fileno()):
                parts.insert(0, older)
        yield parts


def older_part(file: Path) -> Path:
    """Return the name of the rotated log; the file need not exist."""
    return file.with_name(f"{file.name}.1")


def parse_log(lines: Iterable[str]) -> Iterator[LinkLogLine]:
    """Read the lines of a log; an incomplete last line is left out, as of a killed link."""
    whole = (line for line in lines if line.endswith("\n"))
    for row in csv.DictReader(whole):
        try:
            yield _line_of(row)
        except (KeyError, TypeError) as exc:
            raise ValueError(f"not the log of a link: {exc!r}") from exc


def _line_of(row: dict[str, str]) -> LinkLogLine:
    return LinkLogLine(
        time_s=int(row["time_ns"]) / NS,
        direction=Direction(row["direction"]),
        up=row["up"] == "1",
        rate_bps=int(row["rate_bps"]) or None,
        delay_s=int(row["delay_ns"]) / NS,
        queue_max_bytes=int(row["queue_max_bytes"]),
        late_p50_s=int(row["late_p50_ns"]) / NS,
        late_p99_s=int(row["late_p99_ns"]) / NS,
        late_max_s=int(row["late_max_ns"]) / NS,
        pickup_p50_s=int(row["pickup_p50_ns"]) / NS,
        pickup_p99_s=int(row["pickup_p99_ns"]) / NS,
        pickup_max_s=int(row["pickup_max_ns"]) / NS,
        **{name: Tally(int(row[f"{name}_frames"]), int(row[f"{name}_bytes"])) for name in TALLIES},
    )
