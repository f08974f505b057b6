"""How a bench says what it measured: on which machine, with what spread, and whether a limit was kept.

Every bench measures first and judges then. What it measured are plain values, as JSON holds them, and its
function `judge` makes verdicts of nothing else, so that results that were stored are judged like new ones
(tests/unit/test_bench_verdicts.py).
"""

import argparse
import json
import os
import platform
import re
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


def machine(congestion: str | None = None) -> str:
    """Describe this host in a line; `congestion`: what streams use here, if not the kernel's default."""
    default = Path("/proc/sys/net/ipv4/tcp_congestion_control")
    if congestion is None:
        congestion = f"{default.read_text().strip()} (the kernel's default)"
    found = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    processor = found.group(1) if found else platform.machine()
    return (
        f"{len(os.sched_getaffinity(0))} cores ({processor}), Linux {platform.release()}, "
        f"Python {platform.python_version()}, load {os.getloadavg()[0]:.1f} before, "
        f"congestion control {congestion}"
    )


@dataclass(frozen=True)
class Spread:
    """What several measurements of the same thing gave."""

    values: Sequence[float]

    @property
    def median(self) -> float:
        """The middle one."""
        return statistics.median(self.values)

    @property
    def worst(self) -> float:
        """The largest one."""
        return max(self.values)

    @property
    def least(self) -> float:
        """The smallest one."""
        return min(self.values)

    def times(self, factor: float) -> "Spread":
        """Return it in another unit."""
        return Spread([value * factor for value in self.values])

    def __format__(self, form: str) -> str:
        """Show median (min to max), each as `form` says: f"{spread:.1f}"; without one to two digits."""
        form = form or ".2f"
        return f"{self.median:{form}} ({self.least:{form}} to {self.worst:{form}})"

    def __str__(self) -> str:
        return f"{self}"


@dataclass(frozen=True)
class Verdict:
    """A limit, what was measured, and whether that keeps it."""

    limit: str
    measured: str
    kept: bool

    def __str__(self) -> str:
        return f"{'kept' if self.kept else 'NOT kept'} / {self.limit} / {self.measured}"


def command(head: str | None) -> argparse.ArgumentParser:
    """Return the command line of a bench: the head of its file is its help, and all take `--results`."""
    parser = argparse.ArgumentParser(description=head, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, metavar="FILE", help="write what was measured there, as JSON")
    return parser


def conclude(judge: Callable[[Any], Iterable[Verdict]], measured: Any, results: Path | None) -> int:
    """Judge what was measured exactly as it is stored, print the verdicts and return the exit code.

    `measured`: what JSON holds, and data classes of it. It is written to `results` if that is given.
    """
    stored = json.dumps(measured, indent=1, default=asdict)
    if results:
        results.write_text(stored + "\n")
    return concluded(judge(json.loads(stored)))


def median(runs: Iterable[Mapping[str, float]], key: str) -> float:
    """Return the median over runs of one of their values."""
    return statistics.median(run[key] for run in runs)


def concluded(verdicts: Iterable[Verdict]) -> int:
    """Print verdicts as they come; return the exit code: 1 where a limit was not kept, or there is none."""
    all_kept, any_said = True, False
    for verdict in verdicts:
        print(verdict, flush=True)
        all_kept, any_said = all_kept and verdict.kept, True
    if not any_said:
        print("NOT kept / at least one verdict / none: nothing was judged")
    return 0 if all_kept and any_said else 1


def drawn(file: Path, draw: Callable[[Any], None]) -> str:
    """Draw a figure into a file; return the line that names it. `draw` is given the axes of matplotlib."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(8, 4.5))
    draw(axes)
    figure.tight_layout()
    figure.savefig(file, dpi=150)
    return f"figure: {file}"
