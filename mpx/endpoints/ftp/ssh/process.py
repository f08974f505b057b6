"""One ssh: a process whose input and output are one socket of ours, and what it says on standard error.

Imports little: it is started before most of a copy is imported (transfer/early_start.py).
"""

import contextlib
import os
import socket
import subprocess
from collections.abc import Sequence

from mpx.errors import UsageError

_ENDS_SOON_S = 10.0  # after its output has
_END_S = 1.0  # for an ssh that is not needed any more
# Ctrl-C goes to all that run in a terminal; a copy that ends in order needs its ssh a little longer.
_UNINTERRUPTED = ("sh", "-c", 'trap "" INT; exec "$@"', "sh")


class SshProcess:
    """A running ssh; `socket` goes through it to the other end, which answer.py waits for."""

    def __init__(self, words: Sequence[str], command: str, host: str) -> None:
        """`host`: as shown to people. Raises UsageError where there is no ssh here."""
        self.host = host
        self._said = open(os.memfd_create("mpx-ssh-said"), "rb")  # noqa: SIM115, PTH123  closed with us
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

    def last_words(self) -> tuple[str, int | None]:
        """Return what it has said on standard error, and its exit code, once its output has ended."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_END_S)
        self._said.seek(0)
        return self._said.read().decode("utf-8", "replace"), self._process.returncode

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
