"""XRootD by its own protocol alone: whom it lets in is for each test to say.

It listens on all addresses, so it runs in the network of the calling thread, which is to be one of its own.
"""

import contextlib
import os
import shutil
import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from free_ports import free_ports
from install_peers import find_peer
from interop.stock_server import open_to_everyone
from web.servers.site import ServerProcess
from web.servers.xrootd import ACCOUNT, AS_ACCOUNT


@dataclass(frozen=True)
class RootServer:
    """What it serves; `state` has its configuration and its logs."""

    folder: Path
    state: Path
    port: int
    server: ServerProcess

    @property
    def url(self) -> str:
        """Of its folder, with a slash at its end."""
        return f"root://localhost:{self.port}//"

    def restart(self) -> None:
        """Kill it, as a machine that goes down, and start it anew."""
        self.server.kill()
        self.server.start(lambda: _answers(self.port))


@contextlib.contextmanager
def root_server(
    root: Path, more: str = "", environment: Mapping[str, str] | None = None
) -> Iterator[RootServer]:
    """It runs while in the `with` block, in a new folder `root`; whoever comes may do everything.

    `more`: lines of its configuration, in which {state} is a folder of it; `environment`: beside ours.
    """
    folder, state = root / "served", root / "state"
    for path in (folder, state / "admin", state / "run"):
        path.mkdir(parents=True)
    port = free_ports(1)[0]
    (state / "xrootd.cfg").write_text(
        f"""all.export /
oss.localroot {folder}
all.adminpath {state}/admin
all.pidpath {state}/run
xrd.port {port}
xrootd.chksum max 2 adler32 md5
{more.format(state=state)}
"""
    )
    open_to_everyone(folder)
    for path in (folder, *folder.rglob("*"), state, *state.rglob("*")):
        shutil.chown(path, ACCOUNT, ACCOUNT)
    words = [*AS_ACCOUNT, find_peer("xrootd"), "-I", "v4", "-c", str(state / "xrootd.cfg")]
    given = {**os.environ, **(environment or {})}
    server = ServerProcess(words, state / "log", environment=given, folder=state)
    server.start(lambda: _answers(port))
    try:
        yield RootServer(folder, state, port, server)
    finally:
        server.stop()


def _answers(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False
