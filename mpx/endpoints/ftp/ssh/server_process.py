"""The ssh that starts our server, or a lane to it: up to the line that says that it is there."""

import time
from collections.abc import Callable

from mpx.endpoints.ftp.extensions import stdio
from mpx.endpoints.ftp.extensions.stdio import LaneRequest, Ready, ServeRequest
from mpx.endpoints.ssh.process import SshProcess
from mpx.errors import ConnectionLost, MpxError, UsageError


class NoServer(UsageError):
    """There is no mpx at the other end, where one was looked for."""


class ServerProcess(SshProcess):
    """A running ssh; `socket` goes through it to our server once `begin` has returned."""

    def begin(
        self,
        request: ServeRequest | LaneRequest,
        wait_s: float,
        stop: Callable[[], bool],
        wanted: Callable[[], bytes] | None = None,
    ) -> Ready | None:
        """Send a request and return its answer; `wanted` returns the program if the other end asks for it.

        What comes behind the answer is left in the socket. Raises as `peek`, NoServer where mpx is not there,
        UsageError where Python is not.
        """
        self.send(stdio.encode_request(request))
        until_s, heard = time.monotonic() + wait_s, b"\n"
        while True:
            coming = self.peek(until_s, wait_s, stop)
            found = _find(heard + coming)
            if found is None:
                heard += self.socket.recv(len(coming))
                if len(heard) > stdio.LONGEST_NOISE_BYTES:
                    raise ConnectionLost(f"{self.host} says much, and nothing that mpx understands")
                continue
            kind, line, end = found
            self.socket.recv(end - len(heard))
            if kind == stdio.MAGIC:
                return self._parsed(line)
            if kind != stdio.SEND or wanted is None:
                raise self._refused(kind)
            self.send(wanted())
            heard = b"\n"

    def _parsed(self, line: bytes) -> Ready | None:
        try:
            return stdio.parse_ready(line)
        except ValueError as error:
            raise ConnectionLost(f"{self.host}: {error}") from None

    def _refused(self, kind: bytes) -> MpxError:
        if kind == stdio.NO_PYTHON:
            return UsageError(
                f"{self.host} has no Python 3.9 or later under that name; name one with --remote-python PATH"
            )
        return NoServer(
            f"{self.host} has no mpx where it was looked for; install it there, name it with --remote-mpx "
            "PATH, or have it sent for this copy with --bootstrap"
        )


def _find(heard: bytes) -> tuple[bytes, bytes, int] | None:
    """Return which line of ours has come whole, what it says, and where it ends."""
    for kind in (stdio.MAGIC, stdio.SEND, stdio.NO_PYTHON, stdio.NONE):
        begin = heard.find(kind)
        end = heard.find(b"\n", begin + len(kind)) if begin >= 0 else -1
        if end >= 0:
            return kind, heard[begin + len(kind) : end], end + 1
    return None
