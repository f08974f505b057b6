"""One process of the lab's traffic on a host: started, ready, told to end."""

import select
import subprocess
import sys
from collections.abc import Sequence
from typing import Any, Protocol

from mpx.errors import MpxError

STARTS_WITHIN_S = 30.0
ENDS_WITHIN_S = 15.0


class Host(Protocol):
    """Where a process can be started: a host of the lab."""

    def popen(self, args: Sequence[str], **options: Any) -> subprocess.Popen[bytes]:
        """Start a process there; options as of subprocess.Popen."""


class TrafficProcess:
    """One process of `mpx_lab.traffic` on a host, from when it is ready until it is told to end."""

    def __init__(self, host: Host, module: str, words: Sequence[str]) -> None:
        self._what = f"the background's {module}"
        # It ends when its standard input closes, so it cannot outlive this process. It runs as root: -P keeps
        # it from importing what lies in the current folder.
        self._process = host.popen(
            [sys.executable, "-P", "-m", f"mpx_lab.traffic.{module}", *words],
            start_new_session=True,  # Ctrl-C goes to the program that started it, which ends it in order
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        try:
            said = self._first_line().split()
        except BaseException:
            self._end()
            raise
        self.port = int(said[1]) if len(said) > 1 else 0  # where it listens, 0 if it does not

    @property
    def ended(self) -> bool:
        """Whether it has ended, which before `stop` means that it failed."""
        return self._process.poll() is not None

    def stop(self) -> None:
        """Tell it to end and wait until it has; raises MpxError if it failed or does not end."""
        said = self._end()
        if self._process.returncode:
            code = self._process.returncode
            raise MpxError(f"{self._what} failed with exit code {code}: {said}")

    def _end(self) -> str:
        """End it, by force if it does not by itself, and return what it said on standard error."""
        # Ask first, also where its result is not needed: it has children of its own to end.
        try:
            _, errors = self._process.communicate(timeout=ENDS_WITHIN_S)  # closes its standard input
        except subprocess.TimeoutExpired:
            self._process.kill()
            _, errors = self._process.communicate()
        return bytes(errors).decode(errors="replace").strip()

    def _first_line(self) -> str:
        stdout = self._process.stdout
        assert stdout is not None
        ready, _, _ = select.select([stdout], [], [], STARTS_WITHIN_S)
        line = stdout.readline().decode().strip() if ready else ""
        if not line.startswith("ready"):
            reason = self._end() or f"it was not ready within {STARTS_WITHIN_S:g} s"
            raise MpxError(f"{self._what} did not start: {reason}")
        return line
