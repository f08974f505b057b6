"""A stock globus-gridftp-server on a host of a lab."""

import contextlib
import os
import re
import select
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO

from mpx_lab.cleanup import end
from mpx_lab.lab_host import LabHost
from mpx_lab.state import LabError

STARTS_WITHIN_S = 30.0
ENDS_WITHIN_S = 5.0


@contextlib.contextmanager
def stock_server(
    host: LabHost, folder: Path, options: Sequence[str] = (), environment: Mapping[str, str] | None = None
) -> Iterator[str]:
    """Run one, anonymous, on the first address of the host, and yield its URL without a path.

    `options` of its own and `environment` are added to what it is started with. It serves as `nobody`, who
    must be able to reach what is copied; its log is written into `folder`. At the end it is gone with all its
    sessions, transfers or not. Raises LabError with what it said if it does not start.
    """
    address = host.addresses[0]
    command = ["globus-gridftp-server", "-aa", "-anonymous-user", "nobody", "-p", "0"]
    command += ["-control-interface", address, "-data-interface", address]
    command += ["-home-dir", str(folder), "-l", str(folder / "server.log"), *options]
    whole = {**os.environ, **(environment or {})}
    with (
        tempfile.TemporaryFile("w+") as errors,
        host.popen(command, stdout=subprocess.PIPE, stderr=errors, text=True, env=whole) as process,
    ):
        try:
            said = _first_line(process)  # Server listening at HOST:PORT
            port = re.search(r":(\d+)$", said)
            if port is None:
                end([process.pid], ENDS_WITHIN_S)  # its output is complete then
                errors.seek(0)
                why = f"{said} {errors.read()}".strip() or f"no output within {STARTS_WITHIN_S:g} s"
                raise LabError(f"globus-gridftp-server did not start on {host.name}: {why}")
            yield f"ftp://{address}:{port[1]}"
        finally:
            end([process.pid, *_children_of(process.pid)], ENDS_WITHIN_S)


def _first_line(process: "subprocess.Popen[str]") -> str:
    """Return its first line; empty where none came in time, or it ended."""
    stdout: IO[str] | None = process.stdout
    assert stdout is not None
    came, _, _ = select.select([stdout], [], [], STARTS_WITHIN_S)
    return stdout.readline().strip() if came else ""


def _children_of(pid: int) -> list[int]:
    """Return the sessions of a server: it forks one for each client."""
    found = []
    for status in Path("/proc").glob("[0-9]*/status"):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            if f"PPid:\t{pid}\n" in status.read_text():
                found.append(int(status.parent.name))
    return found
