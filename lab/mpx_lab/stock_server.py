"""A stock globus-gridftp-server on a host of a lab."""

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

from mpx_lab.lab_host import LabHost


@contextlib.contextmanager
def stock_server(host: LabHost, folder: Path) -> Iterator[str]:
    """Run one, anonymous, on the first address of the host, and yield its URL without a path.

    It serves as `nobody`, who must be able to reach what is copied; its log is written into `folder`.
    """
    address = host.addresses[0]
    command = ["globus-gridftp-server", "-aa", "-anonymous-user", "nobody", "-p", "0"]
    command += ["-control-interface", address, "-data-interface", address]
    command += ["-home-dir", str(folder), "-l", str(folder / "server.log")]
    with host.popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            said = process.stdout.readline()  # Server listening at HOST:PORT
            yield f"ftp://{address}:{said.rsplit(':', 1)[1].strip()}"
        finally:
            process.terminate()
