"""How a bench says what it measured: on which machine, with what spread, and whether a limit was kept."""

import math
import os
import platform
import re
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
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


def median(runs: Iterable[Mapping[str, float]], key: str) -> float:
    """Return the median over runs of one of their values."""
    return statistics.median(run[key] for run in runs)


def quantile(values: Sequence[float], share: float) -> float:
    """Return the least of the values that at least `share` of them do not exceed."""
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]


def drawn(
    file: Path,
    draw: Callable[[Any], None],
    panels: tuple[int, int] = (1, 1),
    size: tuple[float, float] = (8.0, 4.5),
) -> str:
    """Draw a figure into a file; return the line that names it.

    `draw` is given the axes of matplotlib, an array of them where there are several `panels` (rows, columns).
    `size`: inches.
    """
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(*panels, figsize=size)
    draw(axes)
    figure.tight_layout()
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=150)
    plt.close(figure)
    return f"figure: {file}"
