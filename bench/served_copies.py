"""Copies of mpx between the two ends of a lab with a controller of its own."""

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from mpx_lab.lab import Lab
from mpx_lab.own_controller import OWN

MPX = [sys.executable, "-m", "mpx"]


@contextmanager
def serving(lab: Lab, folder: Path) -> Iterator[str]:
    """Serve a folder on the first sink; yield the URL of its root."""
    sink = lab.host(lab.topology.sinks[0])
    words = [*MPX, "serve", str(folder), "--writable", "--host", sink.addresses[0], "--port", "2811"]
    words += ["--insecure", "--allow-from", "10.0.0.0/8", "--congestion", "cubic"]
    with sink.popen(words, stdout=subprocess.PIPE) as server:
        try:
            assert server.stdout is not None and server.stdout.readline()
            yield f"ftp://{sink.addresses[0]}/"
        finally:
            server.terminate()


def copying(lab: Lab, folder: Path, words: Sequence[str]) -> "subprocess.Popen[bytes]":
    """Begin `mpx copy` over all paths, on the first source; its state and its report are in `folder`."""
    told = [*MPX, "copy", "--progress", "json", "--controller", str(OWN.rest)]
    return lab.host(lab.topology.sources[0]).popen(
        [*told, "--report", str(folder / "report.json"), *words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env={**os.environ, "MPX_STATE_DIR": str(folder / "state")},
    )
