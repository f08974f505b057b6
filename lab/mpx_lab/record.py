"""Records a run in a folder: parameters, environment, and everything measured (docs/lab-format.md).

with Run(folder, "APT-F5", {"streams": 4}, routes=lab.routes()) as run, judged(lab, run):
    with Background("udp(rate=50Mbit/s)", "udp", source, sink, address, run.flows, run.epoch_s):
        ...
"""

import json
import os
import platform
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import mpx
from mpx.errors import UsageError
from mpx_lab.cpu import CpuLog
from mpx_lab.route_list import Route
from mpx_lab.simulated import is_simulated
from mpx_lab.traffic.log import now_s
from mpx_lab.validity import Validity

FORMAT = "mpx-lab-run-1"


class Run:
    """A run that is being measured; the folder must be new or empty. Raises UsageError where it is not."""

    def __init__(
        self,
        folder: Path,
        what: str,
        parameters: Mapping[str, Any],
        *,
        routes: Sequence[Route] = (),
        seeds: Mapping[str, int] | None = None,
        scale: float = 1.0,
        versions: Mapping[str, str] | None = None,
    ) -> None:
        self.validity: Validity | None = None  # until it is judged
        # Of all programs that take part, by name.
        self.versions = {"mpx": mpx.__version__, "python": platform.python_version(), **(versions or {})}
        self.folder = folder
        self.flows, self.links, self.rtt = folder / "flows", folder / "links", folder / "rtt"
        if folder.exists() and any(folder.iterdir()):
            raise UsageError(f"{folder} is not empty; give each run a folder of its own")
        for subfolder in (self.flows, self.links, self.rtt):
            subfolder.mkdir(parents=True, exist_ok=True)
        self.epoch_s = now_s()
        self._about: dict[str, Any] = {
            "format": FORMAT,
            "what": what,
            "parameters": dict(parameters),
            "scale": scale,
            "seeds": dict(seeds or {}),
            "routes": [asdict(route) for route in routes],
            "machine": machine(),
            "start_unix_s": time.time(),
            "epoch_monotonic_s": self.epoch_s,
        }
        self._cpu = CpuLog(folder / "cpu.csv", self.epoch_s)

    @property
    def now_s(self) -> float:
        """Seconds since the epoch of this run."""
        return now_s() - self.epoch_s

    @property
    def cpu(self) -> CpuLog:
        """The use of the processors so far."""
        return self._cpu

    def __enter__(self) -> Self:
        self._write("running")
        self._cpu.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._cpu.stop()
        self._write("done" if kind is None else "failed")

    def _write(self, status: str) -> None:
        validity = None
        if self.validity:
            validity = {**asdict(self.validity), "reasons": list(self.validity.reasons)}
        seen = {"status": status, "duration_s": self.now_s, "validity": validity}
        about = {**self._about, "versions": self.versions, **seen}
        # Replaced as a whole, so that a reader never sees half of it.
        fresh = self.folder / "run.json.new"
        fresh.write_text(json.dumps(about, indent=2) + "\n")
        fresh.replace(self.folder / "run.json")


def machine() -> dict[str, Any]:
    """Return what a result depends on: the kernel, the processor, the memory, whether time is simulated."""
    model = ""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.partition(":")[2].strip()
            break
    return {
        "kernel": platform.release(),
        "processor": model or platform.machine(),
        "cores": os.cpu_count() or 1,
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "simulated": is_simulated(),
    }
