"""The log of a link: what each direction held, carried and dropped, every 100 ms.

A CSV file with a header. Counters run from the link's start; `queue_max_bytes` and the lateness are those of
the time since the line before. Times are CLOCK_MONOTONIC, in nanoseconds.
"""

import csv
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from mpx_lab.emulator.accounting import NS, TALLIES, Tally
from mpx_lab.shape import Direction


@dataclass(frozen=True)
class Sample:
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


def read_log(file: Path) -> list[Sample]:
    """Read a log; raises OSError, and ValueError where the file is no log of a link."""
    with file.open(newline="") as lines:
        return list(parse_log(lines))


def parse_log(lines: Iterable[str]) -> Iterator[Sample]:
    """Read the lines of a log. A last line that is not whole is left out: the link was killed in it."""
    whole = (line for line in lines if line.endswith("\n"))
    for row in csv.DictReader(whole):
        try:
            yield _sample(row)
        except (KeyError, TypeError) as exc:
            raise ValueError(f"no log of a link: {exc!r}") from exc


def _sample(row: dict[str, str]) -> Sample:
    return Sample(
        time_s=int(row["time_ns"]) / NS,
        direction=Direction(row["direction"]),
        up=row["up"] == "1",
        rate_bps=int(row["rate_bps"]) or None,
        delay_s=int(row["delay_ns"]) / NS,
        queue_max_bytes=int(row["queue_max_bytes"]),
        late_p50_s=int(row["late_p50_ns"]) / NS,
        late_p99_s=int(row["late_p99_ns"]) / NS,
        late_max_s=int(row["late_max_ns"]) / NS,
        **{name: Tally(int(row[f"{name}_frames"]), int(row[f"{name}_bytes"])) for name in TALLIES},
    )
