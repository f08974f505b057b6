"""One ssh: a process whose input and output are one socket of ours, and what it says on standard error.

Imports little: it is started before most of a copy is imported (transfer/early_start.py).
"""

import contextlib
import fcntl
import os
import re
import select
import socket
import subprocess
import time
from collections.abc import Callable, Sequence

from mpx.errors import AuthenticationError, ConnectionLost, Interrupted, MpxError, UsageError
from mpx.text import shown

_READ_BYTES = 65536
_STOP_INTERVAL_S = 0.2
_ENDS_SOON_S = 10.0  # after its output has
_END_S = 1.0  # for an ssh that is not needed any more
_OF_SSH = 255  # its exit code where it has failed itself; else that of what ran at the other end
_LONGEST_TOLD = 300  # characters of what ssh said
_LONGEST_SAID_BYTES = 1024 * 1024  # the other end writes there, too
# Ctrl-C goes to all that run in a terminal; a copy that ends in order needs its ssh a little longer.
_UNINTERRUPTED = (
    *("sh", "-c"),
    'trap "" INT; command -v "$1" >/dev/null || { echo "no ssh is installed" >&2; exit 255; }; exec "$@"',
    "sh",
)
_OF_LOGIN = re.compile(
    r"permission denied|host key verification failed|authentication fail|no matching host key|access denied|"
    r"too many authentication|remote host identification has changed|account .*(expired|locked)",
    re.IGNORECASE,
)
_IDLE_WORDS = re.compile(
    r"^(\*\* |Warning: Permanently added|Connection to .* closed|@+$|debug1: |Authenticated |Transferred: |"
    r"Bytes per second: )"
)
# Of an ssh that was to join a shared connection, and did not.
_OF_JOINING = re.compile(r"^(kex_exchange_identification: .*|Connection closed by UNKNOWN port \d+)$")
_OF_SESSIONS = re.compile(r"session open refused|session request failed", re.IGNORECASE)


class CommandEnded(ConnectionLost):
    """The login was fine, but what was to run at the other end has ended, or did not start."""


class SessionRefused(ConnectionLost):
    """The shared connection is there, and the server admits no further session in it."""


class SshProcess:
    """A running ssh; `socket` goes through it to the program at the other end."""

    def __init__(self, words: Sequence[str], command: str, host: str) -> None:
        """`host`: as shown to people. Raises UsageError where there is no ssh here."""
        self.host = host
        self._said = open(_bounded_memory(), "rb")  # noqa: SIM115  closed with us
        self.socket, theirs = socket.socketpair()
        try:
            with theirs:
                self._process = subprocess.Popen(
                    [*_UNINTERRUPTED, *words, command],
                    stdin=theirs.fileno(),
                    stdout=theirs.fileno(),
                    stderr=self._said,
                )
        except OSError as error:
            self.socket.close()
            self._said.close()
            raise UsageError(f"cannot run ssh: {error.strerror}") from None

    @property
    def has_ended(self) -> bool:
        """Whether it is not there any more."""
        return self._process.poll() is not None

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

    def late(self, wait_s: float) -> MpxError:
        """Return that what was waited for has not come."""
        return ConnectionLost(f"ssh to {self.host} brought no answer within {wait_s:g} s")

    def ended(self) -> MpxError:
        """Return why ssh has ended, in its own words."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_END_S)
        lines = [line.strip() for line in self.said().splitlines()]
        words = [line for line in lines if line and not _IDLE_WORDS.match(line)]
        words = [word for word in words if not _OF_JOINING.match(word)] or words
        told = shown(words[-1])[:_LONGEST_TOLD] if words else f"it ended with code {self._process.returncode}"
        if self._process.returncode is not None and 0 <= self._process.returncode < _OF_SSH:
            return CommandEnded(f"ssh to {self.host}: {told}")
        if any(_OF_LOGIN.search(word) for word in words):
            return AuthenticationError(f"ssh to {self.host}: {told}; try: ssh {self.host} true")
        if any(_OF_SESSIONS.search(word) for word in words):
            return SessionRefused(f"ssh to {self.host}: {told}")
        return ConnectionLost(f"ssh to {self.host}: {told}")

    def said(self) -> str:
        """Return what ssh has said until now."""
        size = os.lseek(self._said.fileno(), 0, os.SEEK_CUR)  # ssh has the same position
        return os.pread(self._said.fileno(), size, 0).decode("utf-8", "replace")

    def close(self, wait_s: float = _END_S) -> None:
        """End it once it has sent what it still holds, or after so long."""
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)  # another thread may hold it
        self.socket.close()
        try:
            self._process.wait(wait_s)
        except subprocess.TimeoutExpired:
            self._process.terminate()  # so it leaves a terminal as it was
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_END_S)
            self._process.kill()
            self._process.wait()
        self._said.close()


def _bounded_memory() -> int:
    """Return a file in memory that takes so much and no more; what else is written there is refused."""
    fd = os.memfd_create("mpx-ssh-said", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, _LONGEST_SAID_BYTES)
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_GROW)
    return fd
