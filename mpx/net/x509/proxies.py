"""Proxy certificates (RFC 3820): short-lived ones that a user signs, so that others act in their name."""

from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ed448, ed25519
from cryptography.hazmat.primitives.asymmetric.types import CertificateIssuerPrivateKeyTypes
from cryptography.x509.oid import NameOID, ObjectIdentifier

from mpx.net.x509.names import UNREADABLE, one_line

PROXY_INFO = ObjectIdentifier("1.3.6.1.5.5.7.1.14")
_DRAFT_INFO = ObjectIdentifier("1.3.6.1.4.1.3536.1.222")  # of proxies before RFC 3820
_INHERIT_ALL = bytes.fromhex("300c300a06082b06010505071501")  # SEQUENCE { SEQUENCE { id-ppl-inheritAll } }
_LIMITED = bytes.fromhex("300f300d060b2b06010401 9b5001010109".replace(" ", ""))  # 1.3.6.1.4.1.3536.1.1.1.9
_LIMITED_OID = _LIMITED[6:]
_WITH_OWN_HASH = (ed25519.Ed25519PrivateKey, ed448.Ed448PrivateKey)
_LEGACY = ("proxy", "limited proxy")  # common names of proxies of Globus 2
_SINCE = timedelta(minutes=5)  # clocks differ


def is_proxy(certificate: x509.Certificate) -> bool:
    """Tell whether a certificate is a proxy to OpenSSL, which checks what one may sign; nothing else is."""
    if not any(each.oid == PROXY_INFO for each in certificate.extensions):
        return False
    with suppress(x509.ExtensionNotFound):
        return not certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    return True


def is_older_proxy(certificate: x509.Certificate) -> bool:
    """Tell whether a certificate is one of those before RFC 3820, which OpenSSL does not know as proxies."""
    if any(each.oid == _DRAFT_INFO for each in certificate.extensions):
        return True
    last = certificate.subject.rdns[-1:]
    if not last or x509.Name([*certificate.subject.rdns[:-1]]) != certificate.issuer:
        return False
    return any(part.oid == NameOID.COMMON_NAME and part.value in _LEGACY for part in last[0])


def is_limited(certificate: x509.Certificate) -> bool:
    """Tell whether a proxy is a limited one: good for transfers, not for starting programs."""
    for each in certificate.extensions:
        if each.oid in (PROXY_INFO, _DRAFT_INFO) and isinstance(each.value, x509.UnrecognizedExtension):
            return _LIMITED_OID in each.value.value
    return one_line(certificate.subject).endswith("/CN=limited proxy")


def end_entity(chain: Sequence[x509.Certificate]) -> x509.Certificate:
    """Return whom a chain that OpenSSL has found good is about, the leaf first; proxies may bear any name."""
    return next((each for each in chain if not is_proxy(each)), chain[-1])


def own_name(chain: Sequence[x509.Certificate]) -> str:
    """Return whom our own chain is about, as /O=Grid/CN=Alice; "" for nobody."""
    found = (each for each in chain if not (is_proxy(each) or is_older_proxy(each)))
    return next((one_line(each.subject) for each in found), "")


def sign_proxy(
    request: bytes,
    issuer: x509.Certificate,
    key: CertificateIssuerPrivateKeyTypes,
    until: datetime,
    *,
    limited: bool = False,
    name: str = "",
) -> bytes:
    """Return a proxy certificate (DER) for the key of a PKCS #10 request; raises ValueError for no request.

    What the request asks for beside its key is ignored. `limited`: as it must be where ours is. `name`:
    what is added to that of the issuer, in place of a number.
    """
    try:
        asked = x509.load_der_x509_csr(request)
        public_key, is_signed = asked.public_key(), asked.is_signature_valid
    except UNREADABLE as error:
        raise ValueError(str(error)) from None
    if not is_signed:
        raise ValueError("a request that its own key has not signed")
    serial = x509.random_serial_number() >> 97  # 63 bits: others keep it in a machine word
    last = x509.NameAttribute(NameOID.COMMON_NAME, name or str(serial))
    subject = x509.Name([*issuer.subject.rdns, x509.RelativeDistinguishedName([last])])
    now = datetime.now(UTC)
    usage = x509.KeyUsage(
        digital_signature=True,
        key_encipherment=True,
        content_commitment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=False,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )
    info = _LIMITED if limited else _INHERIT_ALL
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer.subject)
        .public_key(public_key)
        .serial_number(serial)
        .not_valid_before(max(now - _SINCE, issuer.not_valid_before_utc))
        .not_valid_after(min(until, issuer.not_valid_after_utc))
        .add_extension(usage, critical=True)
        .add_extension(x509.UnrecognizedExtension(PROXY_INFO, info), critical=True)
        .sign(key, None if isinstance(key, _WITH_OWN_HASH) else hashes.SHA256())
    )
    return made.public_bytes(serialization.Encoding.DER)
