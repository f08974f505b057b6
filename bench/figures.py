"""How a bench says what it measured: on which machine, with what spread, and whether a limit was kept."""

import os
import platform
import re
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
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

    def times(self, factor: float) -> "Spread":
        """Return it in another unit."""
        return Spread([value * factor for value in self.values])

    def __format__(self, form: str) -> str:
        """Show median (min to max), each as `form` says: f"{spread:.1f}"."""
        return f"{self.median:{form}} ({min(self.values):{form}} to {self.worst:{form}})"

    def __str__(self) -> str:
        return f"{self:.2f}"


@dataclass(frozen=True)
class Verdict:
    """A limit, what was measured, and whether that keeps it."""

    limit: str
    measured: str
    kept: bool

    def __str__(self) -> str:
        return f"{'kept' if self.kept else 'NOT kept'} / {self.limit} / {self.measured}"


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
