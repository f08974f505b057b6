"""Whom a certificate is about: hosts by name and address, users by what is no proxy; whose word counts."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from grids import as_user, shared_grid

from mpx.endpoints.ftp.gsi.options import GsiMemory, GsiOptions
from mpx.endpoints.ftp.gsi.security import GsiSecurity
from mpx.errors import AuthenticationError, UsageError
from mpx.location import parse_location
from mpx.net.x509.credential import Credential
from mpx.net.x509.names import one_line
from mpx.net.x509.proxies import is_limited, is_proxy, own_name, sign_proxy
from mpx.net.x509.server_name import is_for
from mpx.net.x509.trust import find_trust_anchors


def certificate(common_name: str, *names: str) -> x509.Certificate:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, common_name)])
    now = datetime.now(UTC)
    made = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    made = made.serial_number(1).not_valid_before(now).not_valid_after(now + timedelta(days=1))
    if names:
        import ipaddress

        alternatives: list[x509.GeneralName] = []
        for each in names:
            try:
                alternatives.append(x509.IPAddress(ipaddress.ip_address(each)))
            except ValueError:
                alternatives.append(x509.DNSName(each))
        made = made.add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
    return made.sign(key, hashes.SHA256())


@pytest.mark.parametrize(
    ("common_name", "names", "host", "fine"),
    [
        ("dtn.example.org", (), "dtn.example.org", True),
        ("dtn.example.org", (), "DTN.Example.org.", True),
        ("host/dtn.example.org", (), "dtn.example.org", True),
        ("dtn.example.org", (), "example.org", False),
        ("dtn.example.org", ("other.example.org",), "dtn.example.org", False),
        ("x", ("dtn.example.org", "alias.example.org"), "alias.example.org", True),
        ("x", ("*.example.org",), "dtn.example.org", True),
        ("x", ("*.example.org",), "a.dtn.example.org", False),
        ("x", ("*.example.org",), "example.org", False),
        ("x", ("*.org",), "example.org", False),
        ("x", ("d*.example.org",), "dtn.example.org", False),
        ("x", ("*",), "dtn", False),
        ("x", ("*.example.org",), ".example.org", False),
        ("evilhost/x.org", (), "evilx.org", False),
        ("x", ("192.0.2.1",), "192.0.2.1", True),
        ("x", ("192.0.2.1",), "192.0.2.2", False),
        ("x", ("2001:db8::1",), "2001:db8:0:0::1", True),
        ("192.0.2.1", (), "192.0.2.1", True),
        ("x", ("*.0.2.1",), "192.0.2.1", False),
    ],
)
def test_a_certificate_is_for_a_host(common_name: str, names: tuple[str, ...], host: str, fine: bool) -> None:
    assert is_for(certificate(common_name, *names), host) == fine


def signed(*, limited: bool = False) -> x509.Certificate:
    user, key = shared_grid().user, ec.generate_private_key(ec.SECP256R1())
    asked = x509.CertificateSigningRequestBuilder().subject_name(x509.Name([])).sign(key, hashes.SHA256())
    der = sign_proxy(
        asked.public_bytes(serialization.Encoding.DER),
        user.certificate,
        user.key,
        datetime.now(UTC) + timedelta(days=300),
        limited=limited,
    )
    return x509.load_der_x509_certificate(der)


def test_a_proxy_is_of_its_user_and_lasts_no_longer() -> None:
    user, proxy = shared_grid().user, signed()
    assert is_proxy(proxy) and not is_proxy(user.certificate)
    assert one_line(proxy.subject).startswith(f"{user.name}/CN=")
    assert own_name([proxy, user.certificate]) == user.name
    assert proxy.not_valid_after_utc == user.certificate.not_valid_after_utc
    assert not proxy.extensions.get_extension_for_class(x509.KeyUsage).value.key_cert_sign


def test_what_a_limited_proxy_signs_is_limited() -> None:
    proxy, user = signed(limited=True), shared_grid().user.certificate
    assert is_limited(proxy) and not is_limited(signed())
    assert Credential("here", (proxy, user), "").is_limited
    assert not Credential("here", (signed(), user), "").is_limited


def test_a_credential_does_not_show_its_key() -> None:
    assert "KEY" not in repr(Credential("here", (signed(),), "-----BEGIN PRIVATE KEY-----"))


def test_what_is_no_request_is_not_signed() -> None:
    user = shared_grid().user
    for request in (b"", b"\x30\x00", b"x" * 100):
        with pytest.raises(ValueError):
            sign_proxy(request, user.certificate, user.key, datetime.now(UTC))


def test_the_folder_of_cas_that_is_named_takes_the_place_of_all_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("X509_CERT_DIR", str(tmp_path))
    assert find_trust_anchors().folder == str(tmp_path)
    trusted = str(shared_grid().trusted)
    assert find_trust_anchors(trusted).folder == trusted
    with as_user(shared_grid()):
        monkeypatch.setenv("X509_CERT_DIR", "/nowhere")
        server = parse_location("gsiftp://dtn.example.org/")
        with pytest.raises(AuthenticationError, match="/nowhere"):
            GsiSecurity(server, GsiOptions(), GsiMemory())
        GsiSecurity(server, GsiOptions(ca=trusted), GsiMemory())


@pytest.mark.parametrize("name", ["file", "missing", ""])
def test_a_grid_needs_a_folder_of_cas(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("X509_CERT_DIR", str(tmp_path))
    (tmp_path / "file").write_text("")
    ca = str(tmp_path / name) if name else ""
    with pytest.raises(
        UsageError, match=f"--ca {ca} is not a folder: for gsiftp:// it is one with .* its signing"
    ):
        find_trust_anchors(ca)
