"""What comes through an ssh before the dialogue: the line that says that our server is there, or why not."""

import time
from collections.abc import Callable

from mpx.endpoints.ftp.extensions import stdio
from mpx.endpoints.ftp.extensions.stdio import LaneRequest, Ready, ServeRequest
from mpx.endpoints.ssh.process import SshProcess
from mpx.errors import ConnectionLost, MpxError, UsageError


class NoServer(UsageError):
    """There is no mpx at the other end, where one was looked for."""


def begin(
    process: SshProcess,
    request: ServeRequest | LaneRequest,
    wait_s: float,
    stop: Callable[[], bool],
    wanted: Callable[[], bytes],
) -> Ready | None:
    """Send a request through an ssh and return its answer; `wanted` returns the program if it is asked for.

    What comes behind the answer is left in the socket. Raises as SshProcess.peek, NoServer where mpx is not
    there, UsageError where Python is not.
    """
    process.send(stdio.encode_request(request))
    until_s, heard = time.monotonic() + wait_s, b"\n"
    while True:
        coming = process.peek(until_s, wait_s, stop)
        found = _find(heard + coming)
        if found is None:
            heard += process.socket.recv(len(coming))
            if len(heard) > stdio.LONGEST_NOISE_BYTES:
                raise ConnectionLost(f"{process.host} says much, and nothing that mpx understands")
            continue
        kind, line, end = found
        process.socket.recv(end - len(heard))
        if kind == stdio.MAGIC:
            return _parsed(process, line)
        if kind != stdio.SEND:
            raise _refused(process, kind)
        process.send(wanted())
        heard = b"\n"


def _parsed(process: SshProcess, line: bytes) -> Ready | None:
    try:
        return stdio.parse_ready(line)
    except ValueError as error:
        raise ConnectionLost(f"{process.host}: {error}") from None


def _refused(process: SshProcess, kind: bytes) -> MpxError:
    if kind == stdio.NO_PYTHON:
        return UsageError(
            f"{process.host} has no Python 3.9 or later under that name; name one with --remote-python PATH"
        )
    return NoServer(
        f"{process.host} has no mpx where it was looked for; install it there, name it with --remote-mpx "
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
