"""TLS contexts: the certificates of both sides."""

import ssl
from pathlib import Path

from mpx.errors import UsageError


def tls_context(
    whose: str, certificate: Path | None, key: Path | None, authority: Path | None = None
) -> ssl.SSLContext | None:
    """Return a TLS context; None without a certificate. Peers need a certificate of the `authority`, if any.

    Raises UsageError, which says what is wrong with which file.
    """
    if certificate is None or key is None:
        return None

    def no_passphrase() -> str:
        raise UsageError(f"{whose}: the key in {key} has a passphrase, which is not supported; remove it")

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    for file in (certificate, key, authority):
        _check_readable(whose, file)
    try:
        context.load_cert_chain(certificate, key, no_passphrase)
    except ssl.SSLError as error:
        fits = "the key in {} does not belong to the certificate in {}"
        neither = "{} is not a key, or {} not a certificate, in PEM"
        says = fits if error.reason == "KEY_VALUES_MISMATCH" else neither
        raise UsageError(f"{whose}: {says.format(key, certificate)}") from None
    if authority is not None:
        try:
            context.load_verify_locations(authority)
        except ssl.SSLError:
            raise UsageError(f"{whose}: {authority} has no certificate in PEM") from None
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def _check_readable(whose: str, file: Path | None) -> None:
    try:
        if file is not None:
            file.read_bytes()
    except OSError as error:
        raise UsageError(f"{whose}: {file} cannot be read: {error.strerror or error}") from None
