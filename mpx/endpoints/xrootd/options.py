"""What the user says of servers of XRootD."""

import socket
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class XrootdOptions:
    """None: as the library finds it."""

    connect_timeout_s: float
    timeout_s: float
    ca: str | None = None  # a file or a folder
    certificate: str | None = None  # a proxy, where no key is named
    key: str | None = None
    family: int = socket.AF_UNSPEC
