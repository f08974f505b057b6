"""A network of its own with nothing but loopback, for servers that listen on all addresses."""

import contextlib
import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from mpx_lab.namespace import enter


@contextlib.contextmanager
def private_network() -> Iterator[Path]:
    """The file of a new network namespace, for `within`; needs root."""
    held = ["unshare", "-n", "sh", "-c", "ip link set lo up && echo up && exec cat"]
    with subprocess.Popen(held, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"up\n", "unshare or ip has failed"
        yield Path(f"/proc/{holder.pid}/ns/net")
        # The holder ends when its input is closed, as it is here or when this process dies.


@contextlib.contextmanager
def within(namespace: Path) -> Iterator[None]:
    """Have the calling thread, and threads and processes that it starts, in that network.

    Sockets stay in the network in which they were made.
    """
    with Path("/proc/thread-self/ns/net").open("rb") as before:
        enter(namespace)
        try:
            yield
        finally:
            enter(Path(f"/proc/self/fd/{before.fileno()}"))


@contextlib.contextmanager
def servers_folder() -> Iterator[Path]:
    """A folder for servers that work as somebody else, with this thread in a network of its own meanwhile."""
    if os.geteuid() != 0:
        pytest.skip("a network of its own is made by root")
    with (
        tempfile.TemporaryDirectory(prefix="mpx-web-", ignore_cleanup_errors=True) as name,
        private_network() as namespace,
        within(namespace),
    ):
        folder = Path(name)
        folder.chmod(0o755)
        yield folder
