"""Lists of revoked certificates (CRL), as grids keep them beside the certificates of their CAs."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from cryptography import x509

from mpx.net.x509.names import UNREADABLE, one_line

_ANEW = "fetch it anew: fetch-crl"


class Distrust(Exception):
    """Why a chain is not good."""


def check_revoked(certificate: x509.Certificate, issuer: x509.Certificate, files: Sequence[str]) -> None:
    """Check a certificate against the lists of its CA that these files hold.

    A CA without a list is fine; one whose lists have all expired is not. A list that another key of the same
    name has signed is not about this CA. Raises Distrust.
    """
    current, expired, unsigned = [], "", ""
    for name in files:
        found = _load(name)
        if found.issuer != issuer.subject or not _concerns(found, certificate, name):
            continue
        if not _is_signed_by(found, issuer):
            unsigned = name if _may_be_of(found, issuer) else unsigned
        elif found.next_update_utc and found.next_update_utc <= datetime.now(UTC):
            expired = f"{name} has expired ({found.next_update_utc:%Y-%m-%d})"
        else:
            current.append(found)
    if any(each.get_revoked_certificate_by_serial_number(certificate.serial_number) for each in current):
        raise Distrust(f"its certificate {one_line(certificate.subject)} was revoked; tell its operator")
    if not current and (why := expired or (unsigned and f"its CA has not signed {unsigned}")):
        raise Distrust(f"of the lists of revoked certificates of its CA, {why}; {_ANEW}")


def _load(name: str) -> x509.CertificateRevocationList:
    try:
        data = Path(name).read_bytes()
        found = x509.load_pem_x509_crl(data) if b"-----BEGIN" in data else x509.load_der_x509_crl(data)
        _ = found.extensions, found.issuer, found.next_update_utc  # read when first asked for
        return found
    except OSError as error:
        raise Distrust(f"the list of revoked certificates {name} cannot be read: {error.strerror}") from None
    except UNREADABLE as error:
        raise Distrust(f"the list of revoked certificates {name} is not one: {error}; {_ANEW}") from None


def _concerns(found: x509.CertificateRevocationList, certificate: x509.Certificate, name: str) -> bool:
    """Tell whether a list is about such certificates; raises Distrust where that cannot be told."""
    for extension in found.extensions:
        value = extension.value
        if isinstance(value, x509.IssuingDistributionPoint):
            if value.indirect_crl or value.only_some_reasons or value.only_contains_attribute_certs:
                raise Distrust(f"the list of revoked certificates {name} is of a kind that mpx does not read")
            if value.only_contains_ca_certs and not _is_ca(certificate):
                return False
            if value.only_contains_user_certs and _is_ca(certificate):
                return False
        elif extension.critical:
            raise Distrust(f"the list of revoked certificates {name} is of a kind that mpx does not read")
    return True


def _is_signed_by(found: x509.CertificateRevocationList, issuer: x509.Certificate) -> bool:
    try:
        return found.is_signature_valid(issuer.public_key())  # type: ignore[arg-type]  # any key
    except UNREADABLE:
        return False


def _may_be_of(found: x509.CertificateRevocationList, issuer: x509.Certificate) -> bool:
    """Tell whether a list says that the key of this CA has signed it, or does not say whose."""
    try:
        named = found.extensions.get_extension_for_class(x509.AuthorityKeyIdentifier).value.key_identifier
        own = issuer.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value.digest
    except x509.ExtensionNotFound:
        return True
    return named is None or named == own


def _is_ca(certificate: x509.Certificate) -> bool:
    try:
        return certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    except x509.ExtensionNotFound:
        return False
