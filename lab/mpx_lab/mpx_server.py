"""`mpx serve` on a host of a lab."""

import contextlib
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from mpx_lab.cleanup import end
from mpx_lab.lab_host import LabHost
from mpx_lab.state import LabError

ENDS_WITHIN_S = 5.0
OF_A_LAB = "10.0.0.0/8"  # all its hosts


@contextlib.contextmanager
def mpx_server(
    host: LabHost, folder: Path, options: Sequence[str] = (), *, port: int = 0, allow_from: str = OF_A_LAB
) -> Iterator[str]:
    """Serve a folder, writable, at the first address of a host, and yield the URL without a path.

    Port 0: any that is free. At the end the server is gone. Raises LabError if it does not start.
    """
    words = ["serve", str(folder), "--writable", "--host", host.addresses[0], "--port", str(port)]
    words += ["--insecure", "--allow-from", allow_from, *options]
    command = [sys.executable, "-m", "mpx", *words]
    with host.popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            said = process.stdout.readline()
            url = re.search(r"ftp://[^/\s]+", said)
            if url is None:
                raise LabError(f"mpx serve did not start on {host.name}: its first line is {said.strip()!r}")
            yield url[0]
        finally:
            end([process.pid], ENDS_WITHIN_S)
