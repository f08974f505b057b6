"""Python on a machine with simulated time, for tests."""

import io
import os
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

from mpx_lab.simulator.machine import run_simulated

Run = Callable[[str], list[str]]


def run_python(kernel: Path, folder: Path, program: str) -> list[str]:
    """Run a program there and return the lines that it says; fails where it does."""
    out, errors = io.BytesIO(), io.BytesIO()
    command = [sys.executable, "-c", textwrap.dedent(program)]
    code = run_simulated(kernel, command, os.environ, folder=folder, out=out, errors=errors)
    assert code == 0, errors.getvalue().decode()
    return out.getvalue().decode().splitlines()
