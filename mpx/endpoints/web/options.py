"""How connections to a web server are opened, and what the user says of credentials."""

import socket
from collections.abc import Callable
from dataclasses import dataclass

from mpx.choices import PortRange


def _never() -> bool:
    return False


@dataclass(frozen=True, slots=True)
class WebOptions:
    """For all connections of a copy; `stop` tells whether to give up soon."""

    connect_timeout_s: float = 30.0
    timeout_s: float = 60.0
    family: int = socket.AF_UNSPEC
    source_ports: PortRange | None = None
    source_host: str | None = None
    ca: str | None = None  # file or folder of certificates to trust, in place of the system's
    certificate: str | None = None  # of the user (PEM), with the key in the same file or in `key`
    key: str | None = None
    token_files: tuple[str, ...] = ()  # HOST=FILE, or FILE for all
    send_token_to: tuple[str, ...] = ()  # hosts that a redirect may lead to with credentials
    bound: Callable[[int], None] | None = None  # gets the port of each connection before it connects
    digest_timeout_s: float = 3600.0  # for the digest of a file, which may be read from a tape for it
    asked_checksum: str = ""  # that was asked for by name: what the server has none of is read back
    partial_prefix: str = "."  # of the names of partial files
    rate_bps: float | None = None  # of all that is read back, bit/s
    only_new: bool = False  # nothing that is there is to be replaced
    replaces_unseen: bool = False  # files of which nobody may tell us whether they are there
    stop: Callable[[], bool] = _never
