"""The public key in a certificate: as the library of certificates reads it, and nothing else accepted."""

from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import given
from hypothesis import strategies as st

from mpx.net.der import public_key_info

KEYS = {
    "P-256": ec.generate_private_key(ec.SECP256R1()),
    "P-384": ec.generate_private_key(ec.SECP384R1()),
    "Ed25519": ed25519.Ed25519PrivateKey.generate(),
    "RSA": rsa.generate_private_key(65537, 2048),
}


def certificate(kind: str, names: int = 1) -> tuple[bytes, bytes]:
    """Return a certificate, and the public key in it as the library writes that."""
    key = KEYS[kind]
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, f"name {n}" * 5) for n in range(names)])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(datetime.now(UTC))
        .not_valid_after(datetime.now(UTC) + timedelta(days=1))
        .sign(key, None if kind == "Ed25519" else hashes.SHA256())
    )
    info = key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return made.public_bytes(Encoding.DER), info


@pytest.mark.parametrize("names", [1, 40])  # so that lengths have one byte or more
@pytest.mark.parametrize("kind", KEYS)
def test_the_key_is_what_the_library_reads(kind: str, names: int) -> None:
    data, info = certificate(kind, names)
    assert public_key_info(data) == info


PLAIN, INFO = certificate("P-256")


@given(st.integers(0, len(PLAIN) - 1))
def test_a_certificate_that_is_cut_short_is_none(length: int) -> None:
    with pytest.raises(ValueError, match="not a certificate"):
        public_key_info(PLAIN[:length])


@given(st.integers(0, len(PLAIN) - 1), st.integers(1, 255))
def test_a_changed_certificate_gives_a_key_or_a_clear_error(at: int, change: int) -> None:
    changed = bytearray(PLAIN)
    changed[at] ^= change
    try:
        found = public_key_info(bytes(changed))
    except ValueError as error:
        assert str(error).startswith("not a certificate")
    else:
        assert found in bytes(changed)


@given(st.binary(max_size=200))
def test_noise_is_no_certificate(data: bytes) -> None:
    with pytest.raises(ValueError, match="not a certificate"):
        public_key_info(data)
