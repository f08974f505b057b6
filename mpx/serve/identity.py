"""The key and the certificate of a server: those of a certificate authority, or a pair that we make once.

What clients know the server by is its public key, whose name stands in each token. So our own certificate
says nothing beside the key, and a renewed one of an authority keeps its tokens if the key stays.
"""

import fcntl
import os
import ssl
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from mpx.endpoints.ftp.extensions.dialing import CONTROL_PROTOCOL, DATA_PROTOCOL
from mpx.errors import UsageError
from mpx.files.state_folder import StateFolder
from mpx.net import tls
from mpx.net.self_signed import self_signed

_CERTIFICATE, _KEY, _LOCK = "serve.pem", "serve.key", "serve.lock"
_LASTS_DAYS = 36500  # nobody looks: a token names the key
_LARGEST_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Identity:
    """Files of a certificate and its private key (PEM), and the name of its public key."""

    certificate: Path
    key: Path
    key_name: str

    def context(self) -> ssl.SSLContext:
        """Return what a server shows to its clients; raises UsageError."""
        made = tls.context(server=True, protocols=[CONTROL_PROTOCOL, DATA_PROTOCOL])
        try:
            made.load_cert_chain(self.certificate, self.key, password=_no_password)
        except (OSError, ssl.SSLError, UsageError) as error:
            raise UsageError(
                f"cannot use the certificate {self.certificate} with the key {self.key}: "
                f"{getattr(error, 'reason', None) or getattr(error, 'strerror', None) or error}"
            ) from None
        return made


def given_identity(certificate: Path, key: Path) -> Identity:
    """Return the identity of a certificate that the operator has; raises UsageError."""
    try:
        with certificate.open("rb") as file:
            text = file.read(_LARGEST_BYTES).decode("ascii", "replace")
        first = text[text.index("-----BEGIN CERTIFICATE-----") :]
        first = first[: first.index("-----END CERTIFICATE-----") + len("-----END CERTIFICATE-----")]
        name = tls.key_name(ssl.PEM_cert_to_DER_cert(first))
    except OSError as error:
        raise UsageError(f"cannot read the certificate {certificate}: {error.strerror}") from None
    except ValueError:
        raise UsageError(f"{certificate} holds no certificate in PEM form") from None
    return Identity(certificate, key, name)


def own_identity(state: StateFolder) -> Identity:
    """Return the identity in the state folder, made where there is none yet; raises UsageError."""
    try:
        for name in (_CERTIFICATE, _KEY):
            os.close(state.open(name, os.O_RDONLY))
    except FileNotFoundError:
        _make(state)
    except OSError as error:
        raise UsageError(f"cannot use the key in {state.path}: {error.strerror}") from None
    return given_identity(state.path / _CERTIFICATE, state.path / _KEY)


def _make(state: StateFolder) -> None:
    """Make both, unless somebody else has meanwhile."""
    try:
        lock = state.open(_LOCK, os.O_RDWR | os.O_CREAT)
    except OSError as error:
        raise UsageError(f"cannot keep a key in {state.path}: {error.strerror}") from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if _CERTIFICATE not in state.names(_CERTIFICATE) or _KEY not in state.names(_KEY):
            _write(state)
    finally:
        os.close(lock)


def _write(state: StateFolder) -> None:
    certificate, key = self_signed("mpx serve", timedelta(days=_LASTS_DAYS))
    try:
        for name, content in (
            (_KEY, key),
            (_CERTIFICATE, certificate),
        ):  # the certificate shows that both are there
            with os.fdopen(state.create(f"{name}.new"), "wb") as file:
                file.write(content)
            state.rename(f"{name}.new", name)
    except OSError as error:
        raise UsageError(f"cannot keep a key in {state.path}: {error.strerror}") from None


def _no_password() -> str:
    raise UsageError("the key is protected by a passphrase, which nobody can type here; give one without")
