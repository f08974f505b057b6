"""The process that has XRootD's client library, and what it is told by its environment."""

import os
import socket
import ssl
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from mpx.endpoints.child_process import CLOSED_WITHIN_S, ChildProcess
from mpx.endpoints.xrootd.exits import NO_LIBRARY, NO_LOGIN, NO_TRUST
from mpx.endpoints.xrootd.login import PROXY, XrootdLogin
from mpx.endpoints.xrootd.meaning import has_no_tls
from mpx.endpoints.xrootd.options import XrootdOptions
from mpx.errors import AuthenticationError, ConnectionLost, MpxError, UsageError
from mpx.net.x509.ca_folder import CaFolder
from mpx.text import shown

GRID_CAS = "/etc/grid-security/certificates"  # where the library looks
_OF_CAS = ("X509_CERT_DIR", "X509_CERT_FILE")
_RESET = "connection reset"
_LONGEST_TOLD = 300  # characters of what it said
_LOOK_S = 1.0  # between two looks at the token and the proxy


class XrootdProcess(ChildProcess):
    """Serves SFTP over its socket; see mpx/endpoints/xrootd/__main__.py."""

    def __init__(self, login: XrootdLogin) -> None:
        """Raises UsageError where it cannot be started, and as BearerTokens.check."""
        self._login, self._token, self._looked_s = login, login.token(), time.monotonic()
        self._secret = self._token.secret if self._token else ""
        self._is_outdated = False
        ca = login.options.ca
        self._cas = CaFolder(ca) if ca is not None else None
        told = environment(login.options, self._secret, os.environ, self._cas)
        self._proxy = Path(told.get(PROXY) or f"/tmp/x509up_u{os.geteuid()}")
        self._proxy_id = _identity(self._proxy)
        self._trusts = ca or " and ".join(told[name] for name in _OF_CAS if name in told) or GRID_CAS
        words = [sys.executable, "-P", "-m", "mpx.endpoints.xrootd", login.url]
        try:
            super().__init__(
                words,
                login.location.host,
                told,
            )
        except OSError as error:
            self._remove_cas()
            raise UsageError(f"cannot start another Python: {error.strerror}") from None

    def close(self, wait_s: float = CLOSED_WITHIN_S) -> None:
        """See ChildProcess."""
        super().close(wait_s)
        self._remove_cas()

    def _remove_cas(self) -> None:
        if self._cas:
            self._cas.close()

    @property
    def is_outdated(self) -> bool:
        """See ChildProcess. It logs in with the token that it was begun with, and may read no later proxy."""
        if not self._is_outdated and time.monotonic() - self._looked_s >= _LOOK_S:
            self._looked_s = time.monotonic()
            is_renewed = _identity(self._proxy) != self._proxy_id
            self._is_outdated = is_renewed or self._login.is_outdated(self._secret)
        return self._is_outdated

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
        is_reset = _RESET in told.lower()  # as XRootD 5.5 does to some that begin together
        place = f"{self.host}:{self._login.location.port}"
        if code == NO_TRUST and has_no_tls(told):
            return AuthenticationError(
                f"{place} has no TLS, so nothing was sent; write root:// for a server in the clear"
            )
        if code == NO_TRUST and not is_reset:
            return AuthenticationError(
                f"{self.host} is not trusted, or does not agree on TLS: {told}; if you know the CA of its "
                f"certificate, name that by --ca or X509_CERT_DIR (CAs are looked for in {self._trusts})"
            )
        if code == NO_LOGIN and not is_reset:
            tried = f" (the token found in {self._token.source} among them)" if self._token else ""
            return AuthenticationError(
                f"{self.host} accepts none of the credentials that were found{tried}: {told}; get a token "
                "(BEARER_TOKEN_FILE) or a proxy (X509_USER_PROXY) for it; of a proxy it counts, too, whether "
                "its own CAs are known (--ca, X509_CERT_DIR)"
            )
        return ConnectionLost(f"{place}, by XRootD: {told}")


def _identity(file: Path) -> tuple[int, int] | None:
    """Return what tells a file from another of its name; None: it is not there."""
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns


def environment(
    options: XrootdOptions, token: str, inherited: Mapping[str, str], cas: CaFolder | None = None
) -> dict[str, str]:
    """Return the environment of the process: what the library is told by it. `cas`: of --ca."""
    told = {
        **inherited,
        "XRD_CONNECTIONWINDOW": str(max(1, round(options.connect_timeout_s))),
        "XRD_CONNECTIONRETRY": "1",  # who tries again is the copy
        "XRD_REQUESTTIMEOUT": str(max(1, round(options.timeout_s))),
        "XRD_STREAMTIMEOUT": str(max(1, round(options.timeout_s))),
        "XRD_SUBSTREAMSPERCHANNEL": "1",
        "XRD_METALINKPROCESSING": "0",  # a file named x.meta4 is one to copy, not a list of others to follow
    }
    if token:
        told["BEARER_TOKEN"] = token
    if options.family == socket.AF_INET:
        told["XRD_NETWORKSTACK"] = "IPv4"
    elif options.family == socket.AF_INET6:
        told["XRD_NETWORKSTACK"] = "IPv6"
    if options.certificate:
        for name in (PROXY, "X509_USER_CERT", "X509_USER_KEY"):
            told.pop(name, None)  # what is named takes the place of all that is inherited
        told["X509_USER_CERT" if options.key else PROXY] = options.certificate
    if options.key:
        told["X509_USER_KEY"] = options.key
    if cas:
        for name in _OF_CAS:
            told.pop(name, None)
        told["X509_CERT_DIR"] = cas.folder
    elif not (any(map(told.get, _OF_CAS)) or Path(GRID_CAS).is_dir()):
        told["X509_CERT_DIR"] = ssl.get_default_verify_paths().openssl_capath  # as web servers are known by
    return told
