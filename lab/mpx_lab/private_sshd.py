"""A private sshd on loopback, with keys and settings of its own, and an ssh client that knows only it."""

import contextlib
import getpass
import os
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from mpx.errors import UsageError

LOOPBACK = "127.0.0.1"
HOST = "there"  # as the settings of the client call it
SUBSYSTEM = "Subsystem sftp internal-sftp"  # unless the settings have another
# The exchange of keys that OpenSSH prefers takes each login 50 ms of a processor, this one 3 ms.
CHEAP = ("KexAlgorithms curve25519-sha256", "Ciphers aes128-gcm@openssh.com")
START_S, LOOK_S = 30.0, 0.01
PRIVILEGE_FOLDER = Path("/run/sshd")  # that sshd insists on where it runs as root


class PrivateSshd:
    """Runs from `start` to `stop`; `log` has what it said. `settings`: further lines of its own."""

    def __init__(
        self, folder: Path, program: str, port: int, settings: Sequence[str] = (), address: str = LOOPBACK
    ) -> None:
        """`program`: the path of sshd, which runs with an absolute one only."""
        self.folder = folder
        self.address, self.port = address, port
        self._program = program
        self.log = folder / "log"
        for name in ("host", "user"):
            subprocess.run(
                ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)], check=True
            )
        shutil.copy(folder / "user.pub", folder / "authorized")
        (folder / "sshd_config").write_text(
            "\n".join(
                (
                    *settings,
                    f"Port {self.port}",
                    f"ListenAddress {address}",
                    f"HostKey {folder}/host",
                    f"AuthorizedKeysFile {folder}/authorized",
                    "StrictModes no",
                    "UsePAM no",
                    "PidFile none",
                    "PasswordAuthentication no",
                    *CHEAP,
                    *(() if any(line.startswith("Subsystem ") for line in settings) else (SUBSYSTEM,)),
                    "MaxStartups 100",
                    "",
                )
            )
        )
        host_key = (folder / "host.pub").read_text().split()
        (folder / "known").write_text(f"[{address}]:{self.port} {host_key[0]} {host_key[1]}\n")
        self.client_config = folder / "ssh_config"
        self.configure()
        self._process: subprocess.Popen[bytes] | None = None

    def configure(self, *more: str) -> None:
        """Write the settings of the client, which call the server HOST."""
        lines = (
            f"Host {HOST} localhost {self.address}",
            f" HostName {self.address}",
            f" Port {self.port}",
            f" User {getpass.getuser()}",
            f" IdentityFile {self.folder}/user",
            f" UserKnownHostsFile {self.folder}/known",
            " IdentitiesOnly yes",
            " IdentityAgent none",
            *(f" {line}" for line in more),
        )
        self.client_config.write_text("\n".join(lines) + "\n")

    def start(self) -> None:
        """Start it, and wait until it answers; raises UsageError with its own words where it does not."""
        if os.geteuid() == 0:
            PRIVILEGE_FOLDER.mkdir(mode=0o755, exist_ok=True)
        words = [self._program, "-D", "-e", "-f", str(self.folder / "sshd_config"), "-E", str(self.log)]
        self._process = subprocess.Popen(words)
        until_s = time.monotonic() + START_S
        while self._process.poll() is None and time.monotonic() < until_s:
            with contextlib.suppress(OSError), socket.create_connection((self.address, self.port)):
                return
            time.sleep(LOOK_S)
        said = self.log.read_text().strip().splitlines() if self.log.exists() else []
        raise UsageError(f"sshd does not start: {said[-1] if said else 'it says nothing'}")

    def stop(self) -> None:
        """End it, and each session that it has; none of them writes into its folder any more then."""
        if self._process:
            self._process.send_signal(signal.SIGSTOP)  # it begins no other session meanwhile
            for session in self.sessions():
                _kill(session)
            self._process.kill()
            self._process.wait()
            self._process = None

    def sessions(self) -> list[int]:
        """The processes of its sessions."""
        assert self._process
        return [child for child, parent in _parents() if parent == self._process.pid]


def _kill(process: int) -> None:
    """End a process that is no child of ours, and wait until it has ended."""
    with contextlib.suppress(ProcessLookupError):
        descriptor = os.pidfd_open(process)
        try:
            signal.pidfd_send_signal(descriptor, signal.SIGKILL)
            ended = select.poll()
            ended.register(descriptor, select.POLLIN)
            ended.poll()
        finally:
            os.close(descriptor)


def _parents() -> Iterator[tuple[int, int]]:
    """Yield each process and its parent; not every kernel lists the children of one."""
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended
            after_name = (folder / "stat").read_text().rpartition(")")[2].split()
            yield int(folder.name), int(after_name[1])


@contextlib.contextmanager
def private_sshd(
    program: str,
    port: int,
    settings: Sequence[str] = (),
    address: str = LOOPBACK,
    run: Callable[[Callable[[], None]], None] = lambda start: start(),
) -> Iterator[PrivateSshd]:
    """A running sshd, and in PATH an `ssh` and an `scp` that use its settings.

    `run` is given what starts it, and may do so elsewhere: on a host of a lab.
    """
    with tempfile.TemporaryDirectory(prefix="mpx-sshd-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        sshd = PrivateSshd(folder, program, port, settings, address)
        programs = folder / "bin"
        programs.mkdir()
        for client in ("ssh", "scp"):
            wrapper = programs / client
            wrapper.write_text(f'#!/bin/sh\nexec {shutil.which(client)} -F {sshd.client_config} "$@"\n')
            wrapper.chmod(0o755)
        before = os.environ["PATH"]
        os.environ["PATH"] = f"{programs}:{before}"
        try:
            run(sshd.start)
            yield sshd
        finally:
            os.environ["PATH"] = before
            sshd.stop()
