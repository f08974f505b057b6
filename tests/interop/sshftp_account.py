"""An account at a private sshd where a stock GridFTP server is enabled for ssh, as its own tool does that."""

import contextlib
import os
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from install_peers import find_peer
from interop.sshd import PrivateSshd, private_sshd

ENABLE = "globus-gridftp-server-enable-sshftp"
AS_ROOT = " -allow-root -anonymous-user root" if os.geteuid() == 0 else ""


@dataclass(frozen=True)
class SshftpAccount:
    """`home`: of the account."""

    sshd: PrivateSshd
    home: Path

    @property
    def script(self) -> Path:
        """What starts the server."""
        return self.home / ".globus/sshftp"

    @property
    def log(self) -> str:
        """What the server was told, and answered, since it was enabled."""
        return (self.home / "log").read_text()

    def enable(self, arguments: str = "", first: str = "", within: str = "") -> None:
        """Enable it anew; `arguments` of the server, what the script does `first`, and what starts it."""
        environment = {**os.environ, "HOME": str(self.home)}
        tool = find_peer(ENABLE)
        subprocess.run([tool, "-nonroot", "-force"], env=environment, check=True, capture_output=True)
        made = self.script.read_text()
        log = f"-l {self.home}/log -log-level ALL -log-module stdio:buffer=0"
        made = made.replace("-ssh", f"-ssh{AS_ROOT} {log} {arguments}", 1)
        made = made.replace("exec ", f"exec {within} ", 1)
        head, _, rest = made.partition("\n")
        self.script.write_text(f"{head}\n{first}\n{rest}")
        (self.home / "log").unlink(missing_ok=True)
        (self.home / ".bashrc").unlink(missing_ok=True)


@contextlib.contextmanager
def sshftp_account(
    *settings: str, start: Callable[..., contextlib.AbstractContextManager[PrivateSshd]] = private_sshd
) -> Iterator[SshftpAccount]:
    """Have one; `settings` of the sshd, which `start` runs. It is to be enabled."""
    with tempfile.TemporaryDirectory(prefix="mpx-sshftp-") as name:
        home = Path(name)
        (
            home / "certificates"
        ).mkdir()  # of CAs: without one the server takes no certificate, whatever is in it
        given = f"SetEnv HOME={home} X509_CERT_DIR={home}/certificates"
        with start(given, *settings) as sshd:
            yield SshftpAccount(sshd, home)
        _end_servers(home)


def _end_servers(home: Path) -> None:
    """End those of an account that have stayed, as a stock server may whose client was killed."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if os.fsencode(home / "log") in path.read_bytes().split(b"\0"):
                os.kill(int(path.parent.name), signal.SIGKILL)
