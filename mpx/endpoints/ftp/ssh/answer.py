"""What comes through an ssh before the dialogue: the line that says that our server is there, or why not."""

import re
import select
import socket
import time
from collections.abc import Callable

from mpx.endpoints.ftp.extensions import stdio
from mpx.endpoints.ftp.extensions.stdio import LaneRequest, Ready, ServeRequest
from mpx.endpoints.ftp.ssh.process import SshProcess
from mpx.errors import AuthenticationError, ConnectionLost, Interrupted, MpxError, UsageError
from mpx.text import shown

_READ_BYTES = 65536
_STOP_INTERVAL_S = 0.2
_LONGEST_TOLD = 300  # characters of what ssh said
_OF_LOGIN = re.compile(
    r"permission denied|host key verification failed|authentication fail|no matching host key|access denied|"
    r"too many authentication|remote host identification has changed|account .*(expired|locked)",
    re.IGNORECASE,
)
_IDLE_WORDS = re.compile(r"^(\*\* |Warning: Permanently added|Connection to .* closed|@+$)")


def begin(
    process: SshProcess,
    request: ServeRequest | LaneRequest,
    wait_s: float,
    stop: Callable[[], bool],
    wanted: Callable[[], bytes],
) -> Ready | None:
    """Send a request through an ssh and return its answer; `wanted` returns the program if it is asked for.

    What comes behind the answer is left in the socket. Raises AuthenticationError, ConnectionLost,
    UsageError where mpx is not there, Interrupted.
    """
    _send(process, stdio.encode_request(request))
    until_s, heard = time.monotonic() + wait_s, b"\n"
    while True:
        coming = _coming(process, until_s, wait_s, stop)
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
        _send(process, wanted())
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
    return UsageError(
        f"{process.host} has no mpx where it was looked for; install it there, name it with --remote-mpx "
        "PATH, or have it sent for this copy with --bootstrap"
    )


def _send(process: SshProcess, data: bytes) -> None:
    try:
        process.socket.sendall(data)
    except OSError:
        raise _ended(process) from None


def _coming(process: SshProcess, until_s: float, wait_s: float, stop: Callable[[], bool]) -> bytes:
    """Wait for more, and return it; it stays in the socket."""
    poll = select.poll()
    poll.register(process.socket, select.POLLIN)
    while not poll.poll(1000 * _STOP_INTERVAL_S):
        if stop():
            raise Interrupted
        if time.monotonic() >= until_s:
            raise ConnectionLost(f"ssh to {process.host} brought no answer within {wait_s:g} s")
    try:
        data = process.socket.recv(_READ_BYTES, socket.MSG_PEEK)
    except OSError:
        data = b""
    if not data:
        raise _ended(process)
    return data


def _ended(process: SshProcess) -> MpxError:
    """Return why ssh has ended, in its own words."""
    said, code = process.last_words()
    lines = [line.strip() for line in said.splitlines()]
    words = [line for line in lines if line and not _IDLE_WORDS.match(line)]
    told = shown(words[-1])[:_LONGEST_TOLD] if words else f"it ended with code {code}"
    if any(_OF_LOGIN.search(word) for word in words):
        return AuthenticationError(f"ssh to {process.host}: {told}; try: ssh {process.host} true")
    return ConnectionLost(f"ssh to {process.host}: {told}")


def _find(heard: bytes) -> tuple[bytes, bytes, int] | None:
    """Return which line of ours has come whole, what it says, and where it ends."""
    for kind in (stdio.MAGIC, stdio.SEND, stdio.NO_PYTHON, stdio.NONE):
        begin = heard.find(kind)
        end = heard.find(b"\n", begin + len(kind)) if begin >= 0 else -1
        if end >= 0:
            return kind, heard[begin + len(kind) : end], end + 1
    return None
