"""Chains that OpenSSL finds good and a grid need not: what CAs may sign, and what they have revoked."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID, ObjectIdentifier

from mpx.errors import AuthenticationError
from mpx.net.x509.names import hashes as file_hashes
from mpx.net.x509.names import one_line
from mpx.net.x509.proxies import PROXY_INFO
from mpx.net.x509.trust import TrustAnchors

NOW = datetime.now(UTC)
DRAFT_INFO = ObjectIdentifier("1.3.6.1.4.1.3536.1.222")
INHERIT_ALL = bytes.fromhex("300c300a06082b06010505071501")
GOOD, EVIL = "/O=Lab/CN=Good", "/O=Evil/CN=Evil"
ONLY = ("only_contains_user_certs", "only_contains_ca_certs", "indirect_crl", "only_contains_attribute_certs")


class Maker:
    """Makes certificates, and the files of their CAs in one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._keys: dict[int, ec.EllipticCurvePrivateKey] = {}

    def certificate(
        self,
        name: str,
        issuer: x509.Certificate | None = None,
        *,
        is_ca: bool = False,
        more: Sequence[x509.ExtensionType] = (),
    ) -> x509.Certificate:
        key = ec.generate_private_key(ec.SECP256R1())
        signs = self._keys[id(issuer)] if issuer else key
        made = x509.CertificateBuilder().subject_name(named(name)).public_key(key.public_key())
        made = made.issuer_name(issuer.subject if issuer else named(name)).serial_number(
            x509.random_serial_number()
        )
        made = made.not_valid_before(NOW - timedelta(days=1)).not_valid_after(NOW + timedelta(days=9))
        made = made.add_extension(x509.BasicConstraints(ca=is_ca, path_length=None), critical=True)
        made = made.add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        for extension in more:
            made = made.add_extension(extension, critical=False)
        found = made.sign(signs, hashes.SHA256())
        self._keys[id(found)] = key
        return found

    def trust(self, ca: x509.Certificate, signs: str) -> None:
        """Give a CA a signing policy."""
        self._file(ca, "signing_policy").write_text(
            f"access_id_CA X509 '{one_line(ca.subject)}'\npos_rights globus CA:sign\n"
            f"cond_subjects globus '\"{signs}\"'\n"
        )

    def revoke(
        self,
        ca: x509.Certificate,
        *revoked: x509.Certificate,
        number: int = 0,
        until: timedelta = timedelta(days=1),
        by: x509.Certificate | None = None,
        says_whose: bool = False,
        about: x509.IssuingDistributionPoint | None = None,
    ) -> None:
        """Write a list; `by`: whose key signs it."""
        made = x509.CertificateRevocationListBuilder().issuer_name(ca.subject)
        made = made.last_update(NOW - timedelta(days=3)).next_update(NOW + until)
        for each in revoked:
            one = x509.RevokedCertificateBuilder().serial_number(each.serial_number).revocation_date(NOW)
            made = made.add_revoked_certificate(one.build())
        key = self._keys[id(by or ca)]
        if says_whose:
            whose = x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key())
            made = made.add_extension(whose, critical=False)
        if about:
            made = made.add_extension(about, critical=True)
        self._file(ca, f"r{number}").write_bytes(made.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM))

    def _file(self, ca: x509.Certificate, suffix: str) -> Path:
        return self.folder / f"{file_hashes(ca.subject)[0]}.{suffix}"


def named(name: str) -> x509.Name:
    kinds = {"O": NameOID.ORGANIZATION_NAME, "CN": NameOID.COMMON_NAME}
    parts = (part.split("=") for part in name.split("/")[1:])
    return x509.Name([x509.NameAttribute(kinds[kind], text) for kind, text in parts])


@pytest.fixture
def maker(tmp_path: Path) -> Maker:
    return Maker(tmp_path)


@pytest.fixture
def check(tmp_path: Path) -> Callable[..., str]:
    def checked(*chain: x509.Certificate) -> str:
        """Return why a chain is not trusted; empty where it is."""
        try:
            TrustAnchors(str(tmp_path)).check(chain, "the server")
        except AuthenticationError as error:
            return str(error)
        return ""

    return checked


def test_each_ca_of_a_chain_may_sign_what_its_own_policy_says(
    maker: Maker, check: Callable[..., str]
) -> None:
    root = maker.certificate(GOOD, is_ca=True)
    below = maker.certificate("/O=Lab/CN=Below", root, is_ca=True)
    leaf = maker.certificate("/O=Lab/CN=dtn", below)
    maker.trust(root, "/O=Lab/*")
    assert "no signing policy" in check(leaf, below, root)
    maker.trust(below, "/O=Lab/CN=dtn")
    assert check(leaf, below, root) == ""
    maker.trust(root, "/O=Else/*")
    assert "may sign" in check(leaf, below, root)
    maker.trust(root, "/O=Lab/*")
    maker.trust(below, "/O=Lab/CN=other")
    assert "may sign" in check(leaf, below, root)
    maker.trust(below, "/O=Lab/*")
    maker.revoke(root, below)
    assert "was revoked" in check(leaf, below, root)


@pytest.mark.parametrize("info", [DRAFT_INFO, PROXY_INFO])
def test_a_ca_that_calls_itself_a_proxy_is_checked_as_a_ca(
    maker: Maker, check: Callable[..., str], info: ObjectIdentifier
) -> None:
    """Whoever signs for /O=Evil only makes a CA with the name of another, and hides it as a proxy."""
    evil = maker.certificate(EVIL, is_ca=True)
    marked = x509.UnrecognizedExtension(info, INHERIT_ALL)
    false = maker.certificate(GOOD, evil, is_ca=True, more=[marked])
    leaf = maker.certificate("/O=Lab/CN=dtn", false)
    maker.trust(evil, "/O=Evil/*")
    maker.trust(false, "/O=Lab/*")
    assert "may sign" in check(leaf, false, evil)


def test_what_stands_above_an_end_entity_is_no_proxy(maker: Maker, check: Callable[..., str]) -> None:
    root = maker.certificate(GOOD, is_ca=True)
    marked = x509.UnrecognizedExtension(PROXY_INFO, INHERIT_ALL)
    odd = maker.certificate("/O=Else/CN=odd", root, more=[marked])
    leaf = maker.certificate("/O=Lab/CN=dtn", odd)
    maker.trust(root, "/O=Lab/*")
    maker.trust(odd, "/O=Lab/*")
    assert "may sign" in check(leaf, odd, root)


class TestRevocation:
    """One CA, and what it says of one certificate."""

    @pytest.fixture(autouse=True)
    def made(self, maker: Maker, check: Callable[..., str]) -> None:
        self.maker, self._check = maker, check
        self.ca = maker.certificate(GOOD, is_ca=True)
        self.former = maker.certificate(GOOD, is_ca=True)  # the same name, another key
        self.leaf = maker.certificate("/O=Lab/CN=dtn", self.ca)
        maker.trust(self.ca, "/O=Lab/*")

    def why(self) -> str:
        return self._check(self.leaf, self.ca)

    def test_none_is_fine(self) -> None:
        assert self.why() == ""

    def test_a_list_that_its_ca_has_not_signed(self) -> None:
        self.maker.revoke(self.ca, by=self.former)
        assert "its CA has not signed" in self.why()

    def test_a_list_of_the_former_key_is_not_about_this_one(self) -> None:
        self.maker.revoke(self.ca, self.leaf, by=self.former, says_whose=True)
        assert self.why() == ""
        self.maker.revoke(self.ca, number=1)
        assert self.why() == ""
        self.maker.revoke(self.ca, self.leaf, number=1)
        assert "was revoked" in self.why()

    def test_an_expired_one_beside_a_current_one(self) -> None:
        self.maker.revoke(self.ca, until=timedelta(hours=-1))
        assert "has expired" in self.why()
        self.maker.revoke(self.ca, number=1)
        assert self.why() == ""

    def test_one_about_other_certificates(self) -> None:
        def about(only: str) -> x509.IssuingDistributionPoint:
            flags = dict.fromkeys(ONLY, False) | {only: True}
            return x509.IssuingDistributionPoint(None, None, only_some_reasons=None, **flags)

        self.maker.revoke(self.ca, self.leaf, about=about("only_contains_ca_certs"))
        assert self.why() == ""
        self.maker.revoke(self.ca, self.leaf, about=about("only_contains_user_certs"))
        assert "was revoked" in self.why()
        self.maker.revoke(self.ca, about=about("indirect_crl"))
        assert "of a kind" in self.why()
