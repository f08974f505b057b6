"""The process that has XRootD's client library, and what it is told by its environment."""

import os
import socket
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mpx.endpoints.child_process import ChildProcess
from mpx.endpoints.web.bearer_tokens import BearerTokens
from mpx.endpoints.xrootd.exits import NO_LIBRARY, NO_LOGIN
from mpx.errors import AuthenticationError, ConnectionLost, MpxError, UsageError
from mpx.location import Location
from mpx.text import shown

_LONGEST_TOLD = 300  # characters of what it said


@dataclass(frozen=True, slots=True)
class XrootdOptions:
    """What the user says of servers of XRootD; None: as the library finds it."""

    connect_timeout_s: float
    timeout_s: float
    ca: str | None = None  # a file or a folder
    certificate: str | None = None  # a proxy, where no key is named
    key: str | None = None
    family: int = socket.AF_UNSPEC


class XrootdProcess(ChildProcess):
    """Serves SFTP over its socket; see mpx/endpoints/xrootd/__main__.py."""

    def __init__(self, location: Location, options: XrootdOptions, tokens: BearerTokens) -> None:
        """Raises UsageError where it cannot be started, and as BearerTokens.check."""
        token = tokens.check(location.host, location.port, time.time())
        url = f"{location.scheme}://{location.user}{'@' if location.user else ''}{location.authority}/"
        words = [sys.executable, "-P", "-m", "mpx.endpoints.xrootd", url]
        try:
            super().__init__(
                words, location.host, environment(options, token.secret if token else "", os.environ)
            )
        except OSError as error:
            raise UsageError(f"cannot start another Python: {error.strerror}") from None

    def late(self, wait_s: float) -> MpxError:
        """See ChildProcess."""
        return ConnectionLost(f"{self.host} brought no answer by XRootD within {wait_s:g} s")

    def ended(self) -> MpxError:
        """See ChildProcess."""
        code, lines = self.code(), self.said().split("\n")
        said = [line.strip() for line in lines if line.strip()]
        told = shown(said[-1])[:_LONGEST_TOLD] if said else f"its process ended with code {code}"
        if code == NO_LIBRARY:
            return UsageError(
                f"root:// needs XRootD's library, which is not installed ({told}); "
                "pip install '.[xrootd]' in place of pip install ."
            )
        if code == NO_LOGIN:
            return AuthenticationError(
                f"{self.host} accepts none of the credentials that were found, or is not trusted: {told}; "
                "get a token (BEARER_TOKEN_FILE) or a proxy (X509_USER_PROXY) for it, and name its CAs by "
                "--ca or X509_CERT_DIR"
            )
        return ConnectionLost(f"{self.host}, by XRootD: {told}")


def environment(options: XrootdOptions, token: str, inherited: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of the process: what the library is told by it."""
    told = {
        **inherited,
        "XRD_CONNECTIONWINDOW": str(max(1, round(options.connect_timeout_s))),
        "XRD_CONNECTIONRETRY": "1",  # who tries again is the copy
        "XRD_REQUESTTIMEOUT": str(max(1, round(options.timeout_s))),
        "XRD_STREAMTIMEOUT": str(max(1, round(options.timeout_s))),
        "XRD_SUBSTREAMSPERCHANNEL": "1",
    }
    if token:
        told["BEARER_TOKEN"] = token
    if options.family == socket.AF_INET:
        told["XRD_NETWORKSTACK"] = "IPv4"
    elif options.family == socket.AF_INET6:
        told["XRD_NETWORKSTACK"] = "IPv6"
    if options.certificate:
        for name in ("X509_USER_PROXY", "X509_USER_CERT", "X509_USER_KEY"):
            told.pop(name, None)  # what is named takes the place of all that is inherited
        told["X509_USER_CERT" if options.key else "X509_USER_PROXY"] = options.certificate
    if options.key:
        told["X509_USER_KEY"] = options.key
    if options.ca:
        is_folder = Path(options.ca).is_dir()
        told["X509_CERT_DIR" if is_folder else "X509_CERT_FILE"] = options.ca
    return told
