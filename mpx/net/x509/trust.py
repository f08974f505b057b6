"""The CAs that a grid trusts: their certificates, what each may sign, and what they have revoked.

Python's ssl finds a CA in such a folder and checks the chain. What grids ask for beyond that is checked here,
after the handshake and before anything is sent: signing policies and lists of revoked certificates (CRL).
"""

import os
import ssl
from collections.abc import Sequence
from itertools import pairwise, takewhile
from pathlib import Path
from typing import Any

from cryptography import x509

from mpx.errors import AuthenticationError, UsageError
from mpx.net.x509.names import UNREADABLE, hashes, one_line
from mpx.net.x509.proxies import is_proxy
from mpx.net.x509.revocation import Distrust, check_revoked
from mpx.net.x509.signing_policy import SigningGrant, may_sign, parse_policy
from mpx.text import named

_SYSTEM = "/etc/grid-security/certificates"
_MOST_OF_A_NAME = 10  # CRLs <hash>.r0 to .r9
_ALLOW_PROXIES = 0x40  # X509_V_FLAG_ALLOW_PROXY_CERTS, which Python has no name for


class TrustAnchors:
    """A folder of CAs (X509_CERT_DIR): <hash>.0, <hash>.signing_policy, <hash>.r0."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def load_into(self, context: ssl.SSLContext) -> None:
        """Have a context take peers that one of these CAs vouches for, and proxies of such."""
        context.load_verify_locations(capath=self.folder)
        context.verify_mode = ssl.CERT_REQUIRED
        context.verify_flags = ssl.VerifyFlags(context.verify_flags | _ALLOW_PROXIES)

    def check(self, chain: Sequence[x509.Certificate], peer: str) -> None:
        """Check a chain, the leaf first and its CA last, that OpenSSL has found good.

        Raises AuthenticationError where a CA may not sign what it has signed, or has revoked it.
        """
        proxies = list(takewhile(is_proxy, chain))  # which their users sign, and not a CA
        for certificate, issuer in pairwise(chain[len(proxies) :]):
            try:
                self._check_policy(certificate, issuer)
                check_revoked(certificate, issuer, self._lists(issuer))
            except Distrust as error:
                raise AuthenticationError(
                    f"{peer} is not trusted, and nothing was sent to it: {error}"
                ) from None

    def _check_policy(self, certificate: x509.Certificate, issuer: x509.Certificate) -> None:
        ca, subject = one_line(issuer.subject), one_line(certificate.subject)
        name, grants = self._policy(issuer)
        if not may_sign(grants, ca, subject):
            raise Distrust(
                f"its certificate {subject} is not one that {ca} may sign, as {name} has it; if that CA has "
                "changed its policy, install the new one"
            )

    def _policy(self, issuer: x509.Certificate) -> tuple[str, list[SigningGrant]]:
        names = [f"{self.folder}/{each}.signing_policy" for each in hashes(issuer.subject)]
        for name in names:
            try:
                return name, parse_policy(Path(name).read_text("utf-8", "replace"))
            except FileNotFoundError:
                continue
            except (OSError, ValueError) as error:
                why = getattr(error, "strerror", None) or error
                raise Distrust(f"{name} cannot be read: {why}") from None
        raise Distrust(
            f"{one_line(issuer.subject)} has no signing policy: {names[0]} is missing; install it beside the "
            "certificate of that CA"
        )

    def _lists(self, issuer: x509.Certificate) -> list[str]:
        names = [
            f"{self.folder}/{each}.r{number}"
            for each in hashes(issuer.subject)
            for number in range(_MOST_OF_A_NAME)
        ]
        return [name for name in names if os.path.exists(name)]


def find_trust_anchors(ca: str | None = None) -> TrustAnchors:
    """Return the folder of CAs: `ca` (--ca), else found as grid tools find it.

    Raises UsageError for a `ca` that is no folder, AuthenticationError where there is none.
    """
    if ca is not None:
        if not os.path.isdir(ca):
            raise UsageError(
                f"--ca {named(ca)} is not a folder: for gsiftp:// it is one with the certificate of each CA "
                "and its signing policy beside it (HASH.0, HASH.signing_policy), as X509_CERT_DIR is"
            )
        return TrustAnchors(ca)
    places = usual_folders()
    for place in places:
        if os.path.isdir(place):
            return TrustAnchors(place)
    raise AuthenticationError(
        f"no certificates of CAs to trust in {' or '.join(places)}: install those of your grid "
        "(ca-policy-egi-core, osg-ca-certs), or name their folder in X509_CERT_DIR"
    )


def usual_folders() -> list[str]:
    """Return where grid tools look for a folder of CAs, which need not be there."""
    if given := os.environ.get("X509_CERT_DIR"):
        return [given]
    return [str(Path.home() / ".globus" / "certificates"), _SYSTEM]


def verified_chain(connection: ssl.SSLObject | ssl.SSLSocket) -> list[x509.Certificate]:
    """Return the chain that OpenSSL has found good, the leaf first and its CA last.

    Raises AuthenticationError for certificates that OpenSSL takes and nobody can read.
    """
    if hasattr(connection, "get_verified_chain"):  # from Python 3.13 on
        found: list[Any] = connection.get_verified_chain()
    else:
        inside: Any = connection._sslobj  # type: ignore[union-attr]  # the same, without a public name
        found = [each.public_bytes(2) for each in inside.get_verified_chain() or ()]  # 2: as DER
    try:
        chain = [x509.load_der_x509_certificate(each) for each in found]
        for each in chain:
            _ = (
                each.extensions,
                each.subject,
                each.issuer,
                each.not_valid_after_utc,
            )  # read when first asked for
    except UNREADABLE as error:
        raise AuthenticationError(f"a certificate of the other side cannot be read: {error}") from None
    return chain
