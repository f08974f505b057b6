"""The user's own certificate and key, found as grid tools find them: a proxy, or certificate and key.

`X509_USER_PROXY`, else `/tmp/x509up_u<uid>`, else `X509_USER_CERT` and `X509_USER_KEY`, else `~/.globus`.
Keys are read once, from files that nobody else may read, and stay in memory.
"""

import os
import re
import ssl
import stat
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.types import CertificateIssuerPrivateKeyTypes, PrivateKeyTypes
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from mpx.errors import AuthenticationError
from mpx.net.tls import show_key
from mpx.net.x509.names import UNREADABLE
from mpx.net.x509.proxies import is_limited, is_older_proxy, is_proxy, own_name

_MAKE_PROXY = "make a new proxy: grid-proxy-init, or voms-proxy-init --voms VO"
_PROXIES = "/tmp/x509up_u"  # and the number of a user
_LARGEST_BYTES = 1 << 20
_MOST_SAID = 200  # characters of why something cannot be read
_BLOCK = re.compile(rb"-----BEGIN [A-Z0-9 ]+-----.+?-----END [A-Z0-9 ]+-----", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Credential:
    """A chain of certificates, the leaf first, with the key of the leaf."""

    place: str  # where it was found, as shown to people
    chain: tuple[x509.Certificate, ...]
    pem: str = field(repr=False)  # all of it, the key too
    advice: str = _MAKE_PROXY  # what to do where it is of no use

    @property
    def name(self) -> str:
        """Whom it is about, as /O=Grid/CN=Alice."""
        return own_name(self.chain)

    @property
    def is_limited(self) -> bool:
        """Whether what it signs has to be limited, too."""
        return any((is_proxy(each) or is_older_proxy(each)) and is_limited(each) for each in self.chain)

    @property
    def expires(self) -> datetime:
        """When the first of its certificates does."""
        return min(each.not_valid_after_utc for each in self.chain)

    @property
    def key(self) -> CertificateIssuerPrivateKeyTypes:
        """The key of the leaf, to sign with."""
        found = _loaded(self.pem)
        return cast("CertificateIssuerPrivateKeyTypes", found)  # a certificate is of it, so it can sign

    def load_into(self, context: ssl.SSLContext) -> None:
        """Have a context show this certificate; raises AuthenticationError for a key of another."""
        try:
            show_key(context, self.pem)
        except OSError as error:
            why = getattr(error, "reason", None) or error.strerror
            raise AuthenticationError(f"{self.place} cannot be used: {why}; {self.advice}") from None


class NoCredential(AuthenticationError):
    """The user has none, neither good nor bad."""


class _Unusable(Exception):
    """Why files are no credential."""


def find_credential() -> Credential:
    """Return the user's credential, as grid tools find it.

    Raises NoCredential where there is none, AuthenticationError where it is not good, with what to do.
    """
    if named := os.environ.get("X509_USER_PROXY"):
        return read_credential(named, named)
    proxy = f"{_PROXIES}{os.geteuid()}"
    expired: AuthenticationError | None = None
    if os.path.lexists(proxy):
        try:
            return read_credential(proxy, proxy)
        except AuthenticationError as error:
            expired = error
    folder = Path.home() / ".globus"
    certificate = os.environ.get("X509_USER_CERT") or str(folder / "usercert.pem")
    key = os.environ.get("X509_USER_KEY") or str(folder / "userkey.pem")
    if Path(certificate).exists() and Path(key).exists():
        return read_credential(certificate, key)
    raise expired or NoCredential(
        f"no grid credential: neither X509_USER_PROXY nor {proxy} nor {certificate} with {key}; {_MAKE_PROXY}"
    )


def read_credential(certificate: str, key: str, advice: str = _MAKE_PROXY) -> Credential:
    """Return the credential of these files, which may be one; AuthenticationError, which ends in `advice`."""
    try:
        return _checked(_read(certificate, key, advice))
    except _Unusable as error:
        raise AuthenticationError(f"{error}; {advice}") from None


def _read(certificate: str, key: str, advice: str) -> Credential:
    pem = _private(key)
    if certificate != key:
        pem = _text(certificate) + "\n" + pem
    if "ENCRYPTED" in pem:
        raise _Unusable(f"the key {key} has a passphrase, which mpx does not ask for")
    try:
        chain = tuple(x509.load_pem_x509_certificates(pem.encode("ascii")))
        _loaded(pem)
    except UNREADABLE as error:
        why = str(error).partition("\n")[0][:_MOST_SAID]
        files = certificate if key == certificate else f"{certificate} and {key}"
        raise _Unusable(f"cannot use {files} as a certificate and key: {why}") from None
    return Credential(certificate, chain, pem, advice)


def _loaded(pem: str) -> PrivateKeyTypes:
    """Read a key; raises as UNREADABLE.

    Whether its numbers are prime is not looked at: that takes 30 ms, and the key is the user's own.
    """
    return load_pem_private_key(pem.encode("ascii"), None, unsafe_skip_rsa_key_validation=True)


def _private(name: str) -> str:
    """Read what only its owner may, and that is to be us: a proxy of others, in /tmp, is not ours."""
    try:
        fd = os.open(name, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        with os.fdopen(fd, "rb") as file:
            about = os.fstat(fd)
            if not stat.S_ISREG(about.st_mode):
                raise _Unusable(f"{name} is not a regular file")
            if about.st_uid != os.geteuid() or about.st_mode & 0o077:
                raise _Unusable(
                    f"{name} holds a key and is not yours alone (owner {about.st_uid}, mode "
                    f"{stat.S_IMODE(about.st_mode):04o}): chmod 600 it"
                )
            return _blocks(file.read(_LARGEST_BYTES))
    except OSError as error:
        raise _Unusable(f"cannot read {name}: {error.strerror}") from None


def _text(name: str) -> str:
    try:
        with Path(name).open("rb") as file:
            return _blocks(file.read(_LARGEST_BYTES))
    except OSError as error:
        raise _Unusable(f"cannot read {name}: {error.strerror}") from None


def _blocks(content: bytes) -> str:
    """Return the certificates and keys of a file (PEM), without what tools write between them."""
    return "".join(block.decode("ascii", "replace") + "\n" for block in _BLOCK.findall(content))


def _checked(found: Credential) -> Credential:
    now = datetime.now(UTC)
    if not found.chain:
        raise _Unusable(f"{found.place} holds no certificate")
    if found.expires <= now:
        raise _Unusable(f"{found.place} has expired ({found.expires:%Y-%m-%d %H:%M:%S} UTC)")
    if (begins := max(each.not_valid_before_utc for each in found.chain)) > now:
        raise AuthenticationError(
            f"{found.place} is not valid before {begins:%Y-%m-%d %H:%M:%S} UTC: check the clock of this host"
        )
    return found
