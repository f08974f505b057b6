"""A throwaway grid for tests and a demo: a CA with its files, certificates of a host and a user, proxies."""

import getpass
import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID

from mpx.net.x509.names import hashes as file_hashes
from mpx.net.x509.names import one_line
from mpx.net.x509.proxies import sign_proxy

_PEM = serialization.Encoding.PEM
_KEY_BITS = 2048
_DAY = timedelta(days=1)
LASTS = timedelta(days=7)


@dataclass(frozen=True, slots=True)
class Issued:
    """A certificate with its key."""

    certificate: x509.Certificate
    key: rsa.RSAPrivateKey

    @property
    def pem(self) -> str:
        """The certificate alone."""
        return self.certificate.public_bytes(_PEM).decode("ascii")

    @property
    def key_pem(self) -> str:
        """The key alone."""
        form = serialization.PrivateFormat.TraditionalOpenSSL
        return self.key.private_bytes(_PEM, form, serialization.NoEncryption()).decode("ascii")

    @property
    def name(self) -> str:
        """Whose it is, as /O=Lab/CN=Alice."""
        return one_line(self.certificate.subject)


class PrivateGrid:
    """The files of a grid in one folder. `account`: whom the grid-mapfile takes our user for."""

    def __init__(self, folder: Path, account: str = "", hosts: Sequence[str] = ("localhost",)) -> None:
        self.folder = folder
        self.trusted = folder / "certificates"  # X509_CERT_DIR
        self.trusted.mkdir()
        self.mapfile = folder / "grid-mapfile"
        self.proxy = folder / "proxy.pem"  # of the user
        self.ca = self.new_ca("Lab CA")
        self.trust(self.ca)
        self.host = self.issue(hosts[0], hosts=hosts)
        self.user = self.issue("Alice")
        write_key(folder / "host.pem", self.host.pem)
        write_key(folder / "host.key", self.host.key_pem)
        write_key(folder / "user.pem", self.user.pem)
        write_key(folder / "user.key", self.user.key_pem)
        self.write_proxy()
        self.map(self.user.name, account or getpass.getuser())

    def map(self, name: str, account: str) -> None:
        """Let one name in, as an account, and nobody else."""
        self.mapfile.write_text(f'"{name}" {account}\n')

    @property
    def server_environment(self) -> dict[str, str]:
        """What a GridFTP server of this grid is started with."""
        return {
            "X509_CERT_DIR": str(self.trusted),
            "X509_USER_CERT": str(self.folder / "host.pem"),
            "X509_USER_KEY": str(self.folder / "host.key"),
            "GRIDMAP": str(self.mapfile),
        }

    @property
    def user_environment(self) -> dict[str, str]:
        """What the user's programs find their proxy by, and the CAs that they trust."""
        return {"X509_CERT_DIR": str(self.trusted), "X509_USER_PROXY": str(self.proxy)}

    # --- making --------------------------------------------------------------------------------------

    def new_ca(self, common_name: str) -> Issued:
        """Make a CA that nobody trusts yet."""
        key = rsa.generate_private_key(65537, _KEY_BITS)
        name, now = _name(common_name), datetime.now(UTC)
        usage = _usage(is_ca=True)
        made = (
            _builder(name, name, key, now - _DAY, now + LASTS)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(usage, critical=True)
            .sign(key, hashes.SHA256())
        )
        return Issued(made, key)

    def trust(self, ca: Issued, *, signs: str = "/O=Lab/*") -> None:
        """Put a CA into the folder of those that are trusted, for names that fit `signs`."""
        stem = self.stem(ca)
        stem.with_suffix(".0").write_text(ca.pem)
        stem.with_suffix(".signing_policy").write_text(
            f"access_id_CA  X509   '{ca.name}'\n"
            "pos_rights    globus CA:sign\n"
            f"cond_subjects globus '\"{signs}\"'\n"
        )

    def stem(self, ca: Issued) -> Path:
        """The path of the files of a CA, without their suffix."""
        return self.trusted / file_hashes(ca.certificate.subject)[0]

    def issue(
        self,
        common_name: str,
        *,
        hosts: Sequence[str] = (),
        ca: Issued | None = None,
        until: datetime | None = None,
    ) -> Issued:
        """Make a certificate; `hosts`: names and addresses that it is for."""
        ca = ca or self.ca
        key, now = rsa.generate_private_key(65537, _KEY_BITS), datetime.now(UTC)
        until = until or now + LASTS
        made = _builder(_name(common_name), ca.certificate.subject, key, min(now, until) - _DAY, until)
        made = made.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        made = made.add_extension(_usage(is_ca=False), critical=True)
        if hosts:
            names = [x509.DNSName(host) for host in hosts]
            made = made.add_extension(x509.SubjectAlternativeName(names), critical=False)
        return Issued(made.sign(ca.key, hashes.SHA256()), key)

    def write_proxy(
        self, *, limited: bool = False, lasts: timedelta = timedelta(hours=12), name: str = ""
    ) -> None:
        """Make a proxy of the user, as grid-proxy-init does; `name`: in place of its number."""
        key = rsa.generate_private_key(65537, _KEY_BITS)
        request = (
            x509.CertificateSigningRequestBuilder().subject_name(_name("proxy")).sign(key, hashes.SHA256())
        )
        der = sign_proxy(
            request.public_bytes(serialization.Encoding.DER),
            self.user.certificate,
            self.user.key,
            datetime.now(UTC) + lasts,
            limited=limited,
            name=name,
        )
        proxy = Issued(x509.load_der_x509_certificate(der), key)
        write_key(self.proxy, f"{proxy.pem}{proxy.key_pem}{self.user.pem}")

    def revoke(self, *revoked: Issued, until: datetime | None = None) -> None:
        """Write the list of what the CA has revoked; `until`: when the next one is due."""
        now = datetime.now(UTC)
        until = until or now + _DAY
        made = (
            x509.CertificateRevocationListBuilder()
            .issuer_name(self.ca.certificate.subject)
            .last_update(min(now, until) - _DAY)
            .next_update(until)
        )
        for each in revoked:
            serial = each.certificate.serial_number
            made = made.add_revoked_certificate(
                x509.RevokedCertificateBuilder().serial_number(serial).revocation_date(now - _DAY).build()
            )
        signed = made.sign(self.ca.key, hashes.SHA256())
        self.stem(self.ca).with_suffix(".r0").write_bytes(signed.public_bytes(_PEM))


def write_key(path: Path, text: str) -> None:
    """Write what only its owner may read."""
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)


def _name(common_name: str) -> x509.Name:
    return x509.Name(
        [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, "Lab"),
            x509.NameAttribute(NameOID.COMMON_NAME, common_name),
        ]
    )


def _builder(
    subject: x509.Name, issuer: x509.Name, key: rsa.RSAPrivateKey, begins: datetime, until: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begins)
        .not_valid_after(until)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _usage(*, is_ca: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not is_ca,
        key_encipherment=not is_ca,
        content_commitment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=is_ca,
        crl_sign=is_ca,
        encipher_only=False,
        decipher_only=False,
    )
