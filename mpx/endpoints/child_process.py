"""A process of ours whose input and output are one socket, and what it says on standard error.

Imports little: an ssh is started before most of a copy is imported (transfer/early_start.py).
"""

import contextlib
import fcntl
import os
import select
import socket
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence

from mpx.errors import Interrupted, MpxError

_READ_BYTES = 65536
_STOP_INTERVAL_S = 0.2
_ENDS_SOON_S = 10.0  # after its output has
CLOSED_WITHIN_S = 1.0  # for one that is not needed any more
_LONGEST_SAID_BYTES = 1024 * 1024  # another host may write there, too


class ChildProcess(ABC):
    """A running program; `socket` goes to it, or through it to another one."""

    def __init__(
        self,
        words: Sequence[str],
        host: str,
        environment: Mapping[str, str] | None = None,
        inherited: Sequence[int] = (),
    ) -> None:
        """`host`: that it leads to, as shown to people; `inherited`: descriptors that it has, too.

        Raises OSError where it cannot be started.
        """
        self.host = host
        self._said = open(_bounded_memory(), "rb")  # noqa: SIM115  closed with us
        self.socket, theirs = socket.socketpair()
        try:
            with theirs:
                self._process = subprocess.Popen(
                    words,
                    stdin=theirs.fileno(),
                    stdout=theirs.fileno(),
                    stderr=self._said,
                    env=environment,
                    pass_fds=inherited,
                )
        except OSError:
            self.socket.close()
            self._said.close()
            raise

    @property
    def has_ended(self) -> bool:
        """Whether it is not there any more."""
        return self._process.poll() is not None

    @property
    def is_outdated(self) -> bool:
        """Whether a new one is to take its place when it is idle: what lets it in was renewed."""
        return False

    def has_ended_well(self) -> bool:
        """Tell whether it has passed on all that came, once its output has ended; waits for its own end."""
        try:
            return self._process.wait(_ENDS_SOON_S) == 0
        except subprocess.TimeoutExpired:
            return False

    def send(self, data: bytes) -> None:
        """Send something short; raises as `peek`."""
        try:
            self.socket.sendall(data)
        except OSError:
            raise self.ended() from None

    def peek(self, until_s: float, wait_s: float, stop: Callable[[], bool]) -> bytes:
        """Wait for more, and return it; it stays in the socket.

        `until_s`: of time.monotonic(), after a wait of `wait_s`. Raises AuthenticationError, ConnectionLost
        (CommandEnded where the login was fine), Interrupted.
        """
        poll = select.poll()
        poll.register(self.socket, select.POLLIN)
        while not poll.poll(1000 * _STOP_INTERVAL_S):
            if stop():
                raise Interrupted
            if time.monotonic() >= until_s:
                raise self.late(wait_s)
        try:
            data = self.socket.recv(_READ_BYTES, socket.MSG_PEEK)
        except OSError:
            data = b""
        if not data:
            raise self.ended()
        return data

    @abstractmethod
    def late(self, wait_s: float) -> MpxError:
        """Return that what was waited for has not come."""

    @abstractmethod
    def ended(self) -> MpxError:
        """Return why it has ended, in its own words."""

    def code(self) -> int | None:
        """Return its exit code once it has ended, for which it has a moment; None: it runs."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(CLOSED_WITHIN_S)
        return self._process.returncode

    def said(self) -> str:
        """Return what it has said until now."""
        size = os.lseek(self._said.fileno(), 0, os.SEEK_CUR)  # it has the same position
        return os.pread(self._said.fileno(), size, 0).decode("utf-8", "replace")

    def close(self, wait_s: float = CLOSED_WITHIN_S) -> None:
        """End it once it has sent what it still holds, or after so long."""
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)  # another thread may hold it
        self.socket.close()
        try:
            self._process.wait(wait_s)
        except subprocess.TimeoutExpired:
            self._process.terminate()  # so it leaves a terminal as it was
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(CLOSED_WITHIN_S)
            self._process.kill()
            self._process.wait()
        self._said.close()


def _bounded_memory() -> int:
    """Return a file in memory that takes so much and no more; what else is written there is refused."""
    fd = os.memfd_create("mpx-said", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, _LONGEST_SAID_BYTES)
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_GROW)
    return fd
