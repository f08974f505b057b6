"""Names of certificates: as grid tools write them, and the hashes that OpenSSL names files by."""

import string
import subprocess
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from hypothesis import given
from hypothesis import strategies as st

from mpx.net.x509.names import canonical, normalized, one_line
from mpx.net.x509.names import hashes as file_hashes

KINDS = (
    NameOID.COUNTRY_NAME,
    NameOID.ORGANIZATION_NAME,
    NameOID.ORGANIZATIONAL_UNIT_NAME,
    NameOID.COMMON_NAME,
    NameOID.DOMAIN_COMPONENT,
    NameOID.EMAIL_ADDRESS,
)
NAMES = {
    "plain": [(NameOID.ORGANIZATION_NAME, "Lab"), (NameOID.COMMON_NAME, "Lab CA")],
    "country": [(NameOID.COUNTRY_NAME, "CH"), (NameOID.COMMON_NAME, "x")],
    "components": [(NameOID.DOMAIN_COMPONENT, "org"), (NameOID.DOMAIN_COMPONENT, "Example")],
    "blanks": [(NameOID.COMMON_NAME, "  Much   space ")],
    "letters": [(NameOID.COMMON_NAME, "Zürich ÄÖ Straße"), (NameOID.LOCALITY_NAME, "日本")],
    "mail": [(NameOID.EMAIL_ADDRESS, "Ca@Example.ORG"), (NameOID.USER_ID, "u1")],
    "long": [(NameOID.ORGANIZATION_NAME, "x" * 64)] * 4,
}


def a_name(parts: list[tuple[x509.ObjectIdentifier, str]]) -> x509.Name:
    return x509.Name([x509.NameAttribute(kind, text) for kind, text in parts])


def openssl_hashes(name: x509.Name, folder: Path) -> tuple[str, str]:
    key = ec.generate_private_key(ec.SECP256R1())
    request = x509.CertificateSigningRequestBuilder().subject_name(name).sign(key, hashes.SHA256())
    (folder / "csr").write_bytes(request.public_bytes(serialization.Encoding.PEM))
    form = serialization.PrivateFormat.PKCS8
    pem = key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())
    (folder / "key").write_bytes(pem)
    sign = ["openssl", "x509", "-req", "-in", "csr", "-signkey", "key", "-out", "pem"]
    subprocess.run(sign, cwd=folder, check=True, capture_output=True)
    ask = ["openssl", "x509", "-in", "pem", "-noout", "-subject_hash", "-subject_hash_old"]
    told = subprocess.run(ask, cwd=folder, check=True, capture_output=True, text=True).stdout.split()
    return told[0], told[1]


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_files_have_the_names_that_openssl_gives_them(
    name: list[tuple[x509.ObjectIdentifier, str]], tmp_path: Path
) -> None:
    assert file_hashes(a_name(name)) == openssl_hashes(a_name(name), tmp_path)


TEXT = st.text(string.ascii_letters + string.digits + " .-", min_size=1, max_size=20)


@given(st.lists(TEXT, min_size=1, max_size=5))
def test_case_and_blanks_do_not_change_the_hash(texts: list[str]) -> None:
    def made(words: list[str]) -> bytes:
        return canonical(a_name([(NameOID.COMMON_NAME, word) for word in words]).public_bytes())

    spread = [f" {text.upper().replace(' ', '   ')}  " for text in texts]
    assert made([text.lower() for text in texts]) == made(spread)


@given(st.lists(st.tuples(st.sampled_from(KINDS[1:4]), TEXT), min_size=1, max_size=5))
def test_a_name_in_one_line(parts: list[tuple[x509.ObjectIdentifier, str]]) -> None:
    short = {
        NameOID.ORGANIZATION_NAME: "O",
        NameOID.ORGANIZATIONAL_UNIT_NAME: "OU",
        NameOID.COMMON_NAME: "CN",
    }
    assert one_line(a_name(parts)) == "".join(f"/{short[kind]}={text}" for kind, text in parts)


def test_older_words_for_parts_of_a_name() -> None:
    assert normalized("/O=Lab/Email=a@b/E=c/USERID=d") == "/O=Lab/emailAddress=a@b/emailAddress=c/UID=d"


@given(st.binary(max_size=60))
def test_what_is_no_name_is_refused(data: bytes) -> None:
    try:
        canonical(data)
    except ValueError:
        return
