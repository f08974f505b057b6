"""How busy the processors were: /proc/stat once a second, as a file of the run."""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from mpx_lab.traffic.log import Log, next_tick, now_s

INTERVAL_S = 1.0  # the kernel counts in steps of 10 ms, so shorter intervals would be inexact
COLUMNS = ("t_s", "core", "user", "system", "interrupts", "steal", "idle")
ALL = "all"
_STAT = Path("/proc/stat")


@dataclass(frozen=True, slots=True)
class CpuUse:
    """Shares (0 to 1) of the time since the previous sample, for one core or for all together."""

    t_s: float
    core: str  # its number, or `all`
    user: float
    system: float
    interrupts: float  # serving the network, mostly
    steal: float  # taken by the host of this virtual machine
    idle: float

    @property
    def busy(self) -> float:
        """The share in which nothing else could have run, time stolen by the hypervisor included."""
        return 1 - self.idle


def parse_stat(text: str) -> dict[str, tuple[int, ...]]:
    """Return the counters of each core, and of all together, from /proc/stat."""
    found = {}
    for line in text.splitlines():
        name, *counters = line.split()
        if name.startswith("cpu"):
            found[name.removeprefix("cpu") or ALL] = tuple(int(counter) for counter in counters[:8])
    return found


def use_between(
    t_s: float, before: Mapping[str, tuple[int, ...]], after: Mapping[str, tuple[int, ...]]
) -> list[CpuUse]:
    """Return what each core did between two samples; cores that are in only one of them are left out."""
    uses = []
    for core in sorted(before.keys() & after.keys(), key=lambda core: (core != ALL, len(core), core)):
        # The counter of waiting for disks may decrease.
        spent = [max(0, late - early) for early, late in zip(before[core], after[core], strict=True)]
        user, nice, system, idle, waiting, hard, soft, steal = spent
        total = sum(spent)
        if total == 0:
            uses.append(CpuUse(t_s, core, 0.0, 0.0, 0.0, 0.0, 1.0))
            continue
        worked, served = (user + nice) / total, (hard + soft) / total
        uses.append(
            CpuUse(t_s, core, worked, system / total, served, steal / total, (idle + waiting) / total)
        )
    return uses


def busy_over(seconds: float, wait: Callable[[float], object]) -> float:
    """Return the busy share of all processors over the next seconds; `wait` sleeps for them."""
    before = parse_stat(_STAT.read_text())
    wait(seconds)
    return use_between(0.0, before, parse_stat(_STAT.read_text()))[0].busy


class CpuLog:
    """Writes cpu.csv while in its `with` block."""

    def __init__(self, file: Path, epoch_s: float) -> None:
        self.uses: list[CpuUse] = []
        self._file = file
        self._epoch_s = epoch_s
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._record, name="cpu-log", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Write the last lines and end."""
        self._ended.set()
        self._thread.join()

    def _record(self) -> None:
        before = parse_stat(_STAT.read_text())
        with Log(self._file, COLUMNS, self._epoch_s) as log:
            ended = False
            while not ended:
                ended = self._ended.wait(next_tick(now_s(), self._epoch_s, INTERVAL_S) - now_s())
                after, at_s = parse_stat(_STAT.read_text()), now_s()
                for use in use_between(at_s - self._epoch_s, before, after):
                    self.uses.append(use)
                    shares = (use.user, use.system, use.interrupts, use.steal, use.idle)
                    log.line(at_s, use.core, *(f"{share:.3f}" for share in shares))
                before = after
