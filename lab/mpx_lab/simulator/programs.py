"""Runs Python programs on simulated machines, each on one of its own, until they are to be ended."""

import io
import os
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from mpx.errors import Interrupted, MpxError
from mpx_lab.simulator.machine import run_simulated


class SimulatedPrograms:
    """Programs on simulated machines: `stop` ends them all soon."""

    def __init__(self, kernel: Path) -> None:
        self.stop = threading.Event()
        self._kernel = kernel

    def run(self, words: Sequence[str], slot: int) -> None:
        """Run this Python with these words; no other program may have the same slot, from 1, meanwhile.

        Raises Interrupted after `stop`, and MpxError with the last line that it said where it fails.
        """
        command, errors = [sys.executable, *words], io.BytesIO()
        root, core = Path("/"), slot - 1  # so that two do not share a core
        code = run_simulated(
            self._kernel, command, os.environ, folder=root, core=core, errors=errors, check=self._check
        )
        if code:
            last = errors.getvalue().decode(errors="replace").strip().splitlines()[-1:] or ["nothing"]
            raise MpxError(f"the simulated measurement failed with exit code {code}: {last[0]}")

    def _check(self) -> None:
        if self.stop.is_set():
            raise Interrupted("measuring was ended; what was being measured is measured again")
