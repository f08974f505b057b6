"""One ssh: a process whose input and output are one socket of ours, up to the line that says it is there."""

import contextlib
import re
import select
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence

from mpx.endpoints.ftp.extensions import stdio
from mpx.endpoints.ftp.extensions.stdio import LaneRequest, Ready, ServeRequest
from mpx.errors import AuthenticationError, ConnectionLost, Interrupted, MpxError, UsageError
from mpx.text import shown

_READ_BYTES = 65536
_STOP_INTERVAL_S = 0.2
_ENDS_SOON_S = 10.0  # after its output has
_END_S = 1.0  # for an ssh that is not needed any more
_LONGEST_TOLD = 300  # characters of what ssh said
# Ctrl-C goes to all that run in a terminal; a copy that ends in order needs its ssh a little longer.
_UNINTERRUPTED = ("sh", "-c", 'trap "" INT; exec "$@"', "sh")
_OF_LOGIN = re.compile(
    r"permission denied|host key verification failed|authentication fail|no matching host key|access denied|"
    r"too many authentication|remote host identification has changed|account .*(expired|locked)",
    re.IGNORECASE,
)
_IDLE_WORDS = re.compile(r"^(\*\* |Warning: Permanently added|Connection to .* closed|@+$)")


class SshProcess:
    """A running ssh; `socket` goes through it to the program at the other end once `begin` has returned."""

    def __init__(self, words: Sequence[str], command: str, host: str) -> None:
        """Raises UsageError where there is no ssh here."""
        self._host = host
        self._said = tempfile.TemporaryFile()  # noqa: SIM115  closed with us
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

    def begin(
        self,
        request: ServeRequest | LaneRequest,
        wait_s: float,
        stop: Callable[[], bool],
        wanted: Callable[[], bytes],
    ) -> Ready | None:
        """Send a request and return its answer; `wanted` returns the program if the other end asks for it.

        What comes behind the answer is left in the socket. Raises AuthenticationError, ConnectionLost,
        UsageError where mpx is not there, Interrupted.
        """
        self._send(stdio.encode_request(request))
        until_s, heard = time.monotonic() + wait_s, b"\n"
        while True:
            coming = self._coming(until_s, wait_s, stop)
            found = _find(heard + coming)
            if found is None:
                heard += self.socket.recv(len(coming))
                if len(heard) > stdio.LONGEST_NOISE_BYTES:
                    raise ConnectionLost(f"{self._host} says much, and nothing that mpx understands")
                continue
            kind, line, end = found
            self.socket.recv(end - len(heard))
            if kind == stdio.MAGIC:
                return self._parsed(line)
            if kind != stdio.SEND:
                raise self._refused(kind)
            self._send(wanted())
            heard = b"\n"

    def _parsed(self, line: bytes) -> Ready | None:
        try:
            return stdio.parse_ready(line)
        except ValueError as error:
            raise ConnectionLost(f"{self._host}: {error}") from None

    def _refused(self, kind: bytes) -> MpxError:
        if kind == stdio.NO_PYTHON:
            return UsageError(
                f"{self._host} has no Python 3.9 or later under that name; name one with --remote-python PATH"
            )
        return UsageError(
            f"{self._host} has no mpx where it was looked for; install it there, name it with --remote-mpx "
            "PATH, or have it sent for this copy with --bootstrap"
        )

    def _send(self, data: bytes) -> None:
        try:
            self.socket.sendall(data)
        except OSError:
            raise self._ended() from None

    def _coming(self, until_s: float, wait_s: float, stop: Callable[[], bool]) -> bytes:
        """Wait for more, and return it; it stays in the socket."""
        poll = select.poll()
        poll.register(self.socket, select.POLLIN)
        while not poll.poll(1000 * _STOP_INTERVAL_S):
            if stop():
                raise Interrupted
            if time.monotonic() >= until_s:
                raise ConnectionLost(f"ssh to {self._host} brought no answer within {wait_s:g} s")
        try:
            data = self.socket.recv(_READ_BYTES, socket.MSG_PEEK)
        except OSError:
            data = b""
        if not data:
            raise self._ended()
        return data

    def _ended(self) -> MpxError:
        """Return why ssh has ended, in its own words."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_END_S)
        self._said.seek(0)
        lines = self._said.read().decode("utf-8", "replace").splitlines()
        words = [line.strip() for line in lines if line.strip() and not _IDLE_WORDS.match(line.strip())]
        told = shown(words[-1])[:_LONGEST_TOLD] if words else f"it ended with code {self._process.returncode}"
        if any(_OF_LOGIN.search(word) for word in words):
            return AuthenticationError(f"ssh to {self._host}: {told}; try: ssh {self._host} true")
        return ConnectionLost(f"ssh to {self._host}: {told}")

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


def _find(heard: bytes) -> tuple[bytes, bytes, int] | None:
    """Return which line of ours has come whole, what it says, and where it ends."""
    for kind in (stdio.MAGIC, stdio.SEND, stdio.NO_PYTHON, stdio.NONE):
        begin = heard.find(kind)
        end = heard.find(b"\n", begin + len(kind)) if begin >= 0 else -1
        if end >= 0:
            return kind, heard[begin + len(kind) : end], end + 1
    return None
