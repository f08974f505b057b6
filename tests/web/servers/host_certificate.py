"""The certificate that every web server of the tests shows, from the throwaway CA of tests/grids.py."""

import functools
import ipaddress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from grids import shared_grid
from mpx_lab.private_grid import LASTS, PrivateGrid, write_key

ADDRESSES = ("127.0.0.1", "::1")


@dataclass(frozen=True, slots=True)
class HostCertificate:
    """PEM files; `grid` has certificates and proxies of a user from the same CA."""

    grid: PrivateGrid
    ca: Path
    certificate: Path
    key: Path


@functools.cache
def host_certificate() -> HostCertificate:
    """That of this process, for `localhost` and the addresses of loopback."""
    grid = shared_grid()
    folder = grid.folder / "web"
    folder.mkdir()
    made = HostCertificate(grid, folder / "ca.pem", folder / "host.pem", folder / "host.key")
    key = ec.generate_private_key(ec.SECP256R1())
    now = datetime.now(UTC)
    addresses = [x509.IPAddress(ipaddress.ip_address(address)) for address in ADDRESSES]
    # As RFC 5280 asks for: Python 3.13 takes no others.
    certificate = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")]))
        .issuer_name(grid.ca.certificate.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + LASTS)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost"), *addresses]), critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(grid.ca.key.public_key()), critical=False
        )
        .sign(grid.ca.key, hashes.SHA256())
    )
    made.ca.write_text(grid.ca.pem)
    made.certificate.write_bytes(certificate.public_bytes(Encoding.PEM))
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    write_key(made.key, pem.decode("ascii"))
    return made
