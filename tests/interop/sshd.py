"""A private sshd for tests: see mpx_lab/private_sshd.py."""

import contextlib
import tempfile
from collections.abc import Iterator

from free_ports import free_ports
from install_peers import find_peer
from mpx_lab import private_sshd as lab
from mpx_lab.private_sshd import HOST, PrivateSshd

__all__ = ["HOST", "PrivateSshd", "private_sshd"]


@contextlib.contextmanager
def private_sshd(*settings: str) -> Iterator[PrivateSshd]:
    """As that of the lab, with a free port; skips the test where there is no sshd.

    Its sessions have a home of their own: what the shell of whoever runs the tests does as it starts is not
    run for each of thousands of commands, and may take longer than they do.
    """
    with tempfile.TemporaryDirectory(prefix="mpx-ssh-home-") as home:
        given = next((line for line in settings if line.startswith("SetEnv ")), "SetEnv")
        if " HOME=" not in given:
            settings = (f"{given} HOME={home}", *settings)  # sshd takes the first of several
        with lab.private_sshd(find_peer("sshd"), free_ports(1)[0], settings) as sshd:
            yield sshd
