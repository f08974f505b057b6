"""Certificates that nobody else has signed: they carry a key, and say nothing that is to be believed."""

from datetime import UTC, datetime, timedelta


def self_signed(
    common_name: str, lasts: timedelta, *, since: timedelta = timedelta(days=1)
) -> tuple[bytes, bytes]:
    """Make a certificate and its key (ECDSA, P-256), both in PEM form; it holds already for `since`."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, common_name)])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - since)
        .not_valid_after(now + lasts)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    form = serialization.PrivateFormat.PKCS8
    pem = serialization.Encoding.PEM
    return certificate.public_bytes(pem), key.private_bytes(pem, form, serialization.NoEncryption())
