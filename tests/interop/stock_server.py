"""A stock globus-gridftp-server for one test: anonymous, on loopback, ended with everything it started."""

import contextlib
import os
import select
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Self

from install_peers import find_peer
from mpx_lab.private_grid import PrivateGrid

STARTED_WITHIN_S = 30


class StockServer:
    """Runs globus-gridftp-server while in the `with` block; the URL of a file is its absolute path.

    Started by root it serves as `nobody`, who must be able to reach and to write `root`: pytest's
    own folders are closed to others, so `root` and its parents in the temporary folder are opened.
    """

    def __init__(
        self,
        root: Path,
        *,
        host: str = "127.0.0.1",
        arguments: tuple[str, ...] = (),
        grid: PrivateGrid | None = None,
        environment: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """`grid`: clients log in with certificates of it, and nobody else does."""
        self.root = root
        self.grid = grid
        self._environment = {**os.environ, **(grid.server_environment if grid else {}), **environment}
        self.host = host
        self.log_path = root.parent / f"{root.name}.server.log"
        self.port = 0  # known once started, and kept from then on
        self._arguments = arguments
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """The URL of the served folder, with a slash at its end."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        if self.grid:
            return f"gsiftp://localhost:{self.port}{self.root}/"
        return f"ftp://{host}:{self.port}{self.root}/"

    @property
    def session_pids(self) -> list[int]:
        """The processes that serve a control connection each."""
        return _children(self._process.pid) if self._process else []

    @property
    def ended_sessions_cpu_s(self) -> float:
        """Processor seconds of all sessions that have ended, as the kernel adds them up for their parent."""
        assert self._process is not None
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[13]) + int(fields[14])) / os.sysconf("SC_CLK_TCK")  # cutime, cstime

    def __enter__(self) -> Self:
        self.start()
        return self

    def start(self) -> None:
        """Start it; once more after `stop` or `kill`, and then on the same port."""
        command = [find_peer("globus-gridftp-server"), "-home-dir", str(self.root)]
        command += [] if self.grid else ["-aa"]
        command += ["-p", str(self.port)]
        command += ["-control-interface", self.host, "-data-interface", self.host]
        command += ["-l", str(self.log_path), "-log-level", "ALL", "-log-module", "stdio:buffer=0"]
        if os.geteuid() == 0:
            command += [] if self.grid else ["-anonymous-user", "nobody"]
            open_to_everyone(self.root)
        self._process = subprocess.Popen(
            [*command, *self._arguments], stdout=subprocess.PIPE, env=self._environment
        )
        try:
            if self.port:
                self._wait_for_greeting(self._process)  # with a given port it prints nothing
            else:
                self.port = self._read_port(self._process)
        except BaseException:
            self.kill()
            raise

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """End the server as an administrator would, and then the sessions it leaves behind."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End the server and its sessions with SIGKILL, as a machine that goes down."""
        self._end(signal.SIGKILL)

    def _end(self, signal_number: signal.Signals) -> None:
        if self._process is None:
            return
        # Frozen first, so that no session is born after we looked; they outlive their parent.
        self._process.send_signal(signal.SIGSTOP)
        sessions = self.session_pids
        if signal_number == signal.SIGKILL:
            self._process.kill()
        else:
            self._process.terminate()
            self._process.send_signal(signal.SIGCONT)
        for pid in sessions:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.wait(30)
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._process = None

    def _wait_for_greeting(self, process: subprocess.Popen[bytes]) -> None:
        deadline_s = time.monotonic() + STARTED_WITHIN_S
        while not _greets((self.host, self.port)):
            assert process.poll() is None, "globus-gridftp-server has ended at once"
            assert time.monotonic() < deadline_s, "globus-gridftp-server does not answer"
            time.sleep(0.02)

    def _read_port(self, process: subprocess.Popen[bytes]) -> int:
        assert process.stdout is not None
        deadline_s = time.monotonic() + STARTED_WITHIN_S
        said = b""
        while b"\n" not in said:
            ready, _, _ = select.select([process.stdout], [], [], max(0, deadline_s - time.monotonic()))
            more = os.read(process.stdout.fileno(), 4096) if ready else b""
            if not more:
                raise AssertionError(f"globus-gridftp-server is not ready; it said {said!r}")
            said += more
        assert b"Server listening at" in said, said
        return int(said.split(b"\n")[0].rsplit(b":", 1)[1])


def end_forgotten_sessions(root: Path) -> None:
    """End the sessions of the server of `root` that have lost their control connection and stay anyway.

    A stock server whose client leaves in the middle of a transfer sometimes waits for ever (2 of 100
    times on a busy machine), and counts that session among those it admits.
    """
    for folder in Path("/proc").iterdir():
        with contextlib.suppress(OSError):  # it has ended meanwhile
            words = (folder / "cmdline").read_bytes().split(b"\0") if folder.name.isdecimal() else []
            if os.fsencode(root) in words and b"-inetd" in words:
                control = folder / "fd" / "0"
                held = str(control.readlink()) if control.is_symlink() else "closed"
                inode = held.removeprefix("socket:[").removesuffix("]")
                if inode not in (folder / "net" / "tcp").read_text().split():
                    os.kill(int(folder.name), signal.SIGKILL)


def _greets(address: tuple[str, int]) -> bool:
    try:
        with socket.create_connection(address, timeout=5) as control:
            return control.recv(3) == b"220"
    except OSError:
        return False


def _children(parent_pid: int) -> list[int]:
    """Return the process ids whose parent is this one, from /proc."""
    children = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            with contextlib.suppress(OSError):  # it has ended meanwhile
                # The name in parentheses may hold anything, so look behind the last one.
                if int((folder / "stat").read_text().rsplit(")", 1)[1].split()[1]) == parent_pid:
                    children.append(int(folder.name))
    return children


def open_to_everyone(root: Path) -> None:
    """Let servers of other users reach a temporary folder, and write there."""
    root.chmod(0o777)
    temporary = Path(tempfile.gettempdir()).resolve()
    for parent in root.resolve().parents:
        if parent.is_relative_to(temporary) and parent != temporary:
            parent.chmod(parent.stat().st_mode | 0o001)
