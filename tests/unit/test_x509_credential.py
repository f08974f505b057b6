"""The user's credential as files hold it: what is taken, and in which words what is not."""

import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from grids import shared_grid
from mpx_lab.private_grid import write_key

from mpx.errors import AuthenticationError
from mpx.net.x509.credential import find_credential
from mpx.net.x509.proxies import sign_proxy


@pytest.fixture
def proxy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("X509_USER_PROXY", str(tmp_path / "proxy"))
    return tmp_path / "proxy"


def test_what_tools_write_between_the_blocks_does_no_harm(proxy: Path) -> None:
    user = shared_grid().user
    proxy.write_bytes(f"subject=CN = Jürgen\n{user.pem}\xa0\nKey:\n{user.key_pem}".encode("latin-1"))
    proxy.chmod(0o600)
    assert find_credential().name == user.name


@pytest.mark.parametrize("content", ["", "nothing of the kind", shared_grid().user.pem])
def test_what_is_no_credential(proxy: Path, content: str) -> None:
    write_key(proxy, content)
    with pytest.raises(AuthenticationError, match="grid-proxy-init"):
        find_credential()


def test_a_key_that_the_library_does_not_know(proxy: Path, tmp_path: Path) -> None:
    words = ["openssl", "ecparam", "-name", "secp112r1", "-genkey", "-noout", "-out", str(tmp_path / "key")]
    subprocess.run(words, check=True, capture_output=True)
    write_key(proxy, shared_grid().user.pem + (tmp_path / "key").read_text())
    with pytest.raises(AuthenticationError, match="cannot use"):
        find_credential()


def test_a_key_of_another_kind_can_delegate() -> None:
    key, now = ed25519.Ed25519PrivateKey.generate(), datetime.now(UTC)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "Alice")])
    made = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    own = made.serial_number(1).not_valid_before(now).not_valid_after(now.replace(year=now.year + 1))
    request = (
        x509.CertificateSigningRequestBuilder()
        .subject_name(name)
        .sign(ec.generate_private_key(ec.SECP256R1()), hashes.SHA256())
        .public_bytes(serialization.Encoding.DER)
    )
    proxy = x509.load_der_x509_certificate(sign_proxy(request, own.sign(key, None), key, now))
    key.public_key().verify(proxy.signature, proxy.tbs_certificate_bytes)
