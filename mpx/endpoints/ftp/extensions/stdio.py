"""What is said to `mpx serve --stdio` before its dialogue begins, and what it answers (docs/extensions.md).

Whatever a shell's profile prints before is skipped: the answer begins with a line of its own. This loads
little, as a client waits for it.
"""

import json
import re
from typing import NamedTuple

from mpx.choices import PortRange

MAGIC = b"\nmpx-stdio 1 "  # what follows to the end of the line is JSON
NONE = b"\nmpx-stdio none"  # instead: there is no mpx (but sshftp, if that follows), ...
NO_PYTHON = b"\nmpx-stdio no python"  # ... no Python that is new enough, or ...
SEND = b"\nmpx-stdio send"  # ... it is to be sent first
LONGEST_NOISE_BYTES = 1 << 20  # before it
LONGEST_LINE_BYTES = 1 << 16
LENGTH_DIGITS = 8
CONTROL, DATA = "control", "data"  # what a lane is for


class ServeRequest(NamedTuple):
    """Serve one client: with this certificate and key (PEM) at both ends, and this secret as its token."""

    pem: str
    secret: str
    ports: PortRange | None = None  # for direct connections
    guest: str = ""  # the certificate (PEM) that another server shows which sends to this one

    def __repr__(self) -> str:
        """Show nothing of the key and the secret."""
        return "ServeRequest"


class LaneRequest(NamedTuple):
    """Pass a connection on to a server that runs already."""

    path: str  # of its socket
    use: str  # CONTROL or DATA


class Ready(NamedTuple):
    """The server runs: where it takes lanes and direct connections (port 0: none)."""

    path: str
    host: str
    port: int


def encode_request(request: ServeRequest | LaneRequest) -> bytes:
    """Return what is sent first."""
    body = json.dumps(request._asdict()).encode("ascii")
    return b"%0*x" % (LENGTH_DIGITS, len(body)) + body


def parse_length(data: bytes) -> int:
    """Read how long a request is; raises ValueError."""
    if not re.fullmatch(rb"[0-9a-f]{%d}" % LENGTH_DIGITS, data):
        raise ValueError("not a request: its length")
    length = int(data, 16)
    if length > LONGEST_LINE_BYTES:
        raise ValueError("not a request: it is too long")
    return length


def parse_request(body: bytes) -> ServeRequest | LaneRequest:
    """Read a request; raises ValueError."""
    try:
        told = json.loads(body)
        if "pem" in told:
            ports = told.get("ports")
            first_last = (int(ports[0]), int(ports[1])) if ports else None
            return ServeRequest(str(told["pem"]), str(told["secret"]), first_last, str(told.get("guest", "")))
        return LaneRequest(str(told["path"]), str(told["use"]))
    except (ValueError, TypeError, KeyError, IndexError, OverflowError, RecursionError):
        raise ValueError("not a request") from None


def encode_ready(ready: Ready | None) -> bytes:
    """Return the line that says so; None for a lane, which has nothing to tell."""
    return MAGIC + json.dumps(ready._asdict() if ready else {}).encode("ascii") + b"\n"


def parse_sshftp(line: bytes) -> str | None:
    """Read what follows NONE: the ssh connection, as the other end sees it, if sshftp is there."""
    verb, _, connection = line.decode("ascii", "replace").strip().partition(" ")
    return connection.strip() if verb == "sshftp" else None


def parse_ready(line: bytes) -> Ready | None:
    """Read what follows MAGIC; None for a lane. Raises ValueError."""
    try:
        told = json.loads(line)
        if told == {}:
            return None
        ready = Ready(str(told["path"]), str(told["host"]), int(told["port"]))
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
        raise ValueError("not an answer of mpx serve --stdio") from None
    if not 0 <= ready.port < 65536:
        raise ValueError("not an answer of mpx serve --stdio: its port")
    return ready
