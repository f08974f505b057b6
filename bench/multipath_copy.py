"""A copy of mpx on the first source of a lab with a controller of its own."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from mpx_lab.lab import Lab
from mpx_lab.own_controller import OWN


def copying(lab: Lab, folder: Path, words: Sequence[str]) -> "subprocess.Popen[bytes]":
    """Begin `mpx copy` over all paths, on the first source; its state and its report are in `folder`."""
    told = [sys.executable, "-m", "mpx", "copy", "--progress", "json", "--controller", str(OWN.rest)]
    return lab.host(lab.topology.sources[0]).popen(
        [*told, "--report", str(folder / "report.json"), *words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env={**os.environ, "MPX_STATE_DIR": str(folder / "state")},
    )
