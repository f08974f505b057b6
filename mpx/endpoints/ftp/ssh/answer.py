"""What comes through an ssh before the dialogue: the line that says that our server is there, or why not."""

import contextlib
import time
from collections.abc import Callable
from typing import TypeVar

from mpx.endpoints.ftp.extensions import stdio
from mpx.endpoints.ftp.extensions.stdio import LaneRequest, Ready, ServeRequest
from mpx.endpoints.ssh.process import SshProcess
from mpx.errors import ConnectionLost, Interrupted, MpxError, UsageError

Found = TypeVar("Found")


class NoServer(UsageError):
    """There is no mpx at the other end, where one was looked for.

    `connection`: of the ssh, as SSH_CONNECTION there says, if a GridFTP server can be started in its place.
    """

    def __init__(self, message: str, connection: str | None = None) -> None:
        super().__init__(message)
        self.connection = connection


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
    with contextlib.suppress(MpxError):  # it may have ended already, and told why before
        process.send(stdio.encode_request(request))
    until_s, was_sent = time.monotonic() + wait_s, False
    while True:
        kind, line = heard_of(process, _find, until_s, wait_s, stop)
        if kind == stdio.MAGIC:
            return _parsed(process, line)
        if kind != stdio.SEND:
            raise _refused(process, kind, line)
        if was_sent:
            raise ConnectionLost(f"{process.host} has mpx sent and asks for it again")
        process.send(wanted())
        was_sent = True


def heard_of(
    process: SshProcess,
    find: Callable[[bytes], tuple[Found, int] | None],
    until_s: float,
    wait_s: float,
    stop: Callable[[], bool],
) -> Found:
    """Return what `find` finds in what comes, behind a line end, and up to where; the rest is left.

    Raises as SshProcess.peek, ConnectionLost if much comes and nothing of that.
    """
    heard = b"\n"
    while True:
        coming = process.peek(until_s, wait_s, stop)
        found = find(heard + coming)
        if found is not None:
            what, end = found
            process.socket.recv(end - len(heard))
            return what
        heard += process.socket.recv(len(coming))
        if len(heard) > stdio.LONGEST_NOISE_BYTES:
            raise ConnectionLost(f"{process.host} says much, and nothing that mpx understands")
        if stop():  # `peek` asks only while nothing comes
            raise Interrupted
        if time.monotonic() >= until_s:
            raise process.late(wait_s)


def _parsed(process: SshProcess, line: bytes) -> Ready | None:
    try:
        return stdio.parse_ready(line)
    except ValueError as error:
        raise ConnectionLost(f"{process.host}: {error}") from None


def _refused(process: SshProcess, kind: bytes, line: bytes) -> MpxError:
    if kind == stdio.NO_PYTHON:
        return UsageError(
            f"{process.host} has no Python 3.9 or later under that name; name one with --remote-python PATH"
        )
    return NoServer(
        f"{process.host} has no mpx where it was looked for; install it there, name it with --remote-mpx "
        "PATH, or have it sent for this copy with --bootstrap",
        stdio.parse_sshftp(line),
    )


def _find(heard: bytes) -> tuple[tuple[bytes, bytes], int] | None:
    """Return which line of ours has come whole, what it says, and where it ends."""
    for kind in (stdio.MAGIC, stdio.SEND, stdio.NO_PYTHON, stdio.NONE):
        begin = heard.find(kind)
        end = heard.find(b"\n", begin + len(kind)) if begin >= 0 else -1
        if end >= 0:
            return (kind, heard[begin + len(kind) : end]), end + 1
    return None
