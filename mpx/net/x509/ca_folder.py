"""CAs that are named by `--ca`, for libraries that take them as a folder of a grid alone.

Such a library looks there for `<hash>.0` of an issuer's name, and GSI also for what that CA may sign.
"""

import re
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from warnings import catch_warnings, filterwarnings

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.utils import CryptographyDeprecationWarning

from mpx.net.x509.named_cas import files_of, no_certificate, unreadable
from mpx.net.x509.names import UNREADABLE, hashes, one_line

_PEM = re.compile(rb"-----BEGIN (X509 )?CERTIFICATE-----.+?-----END (X509 )?CERTIFICATE-----", re.DOTALL)


class CaFolder:
    """The folder that is named, or one of its own with what is named; `close` removes that."""

    def __init__(self, ca: str) -> None:
        """Raises UsageError for what names no CA."""
        self._made: tempfile.TemporaryDirectory[str] | None = None
        self.folder = ca
        files = files_of(ca)
        if files is None:
            return
        found = [each for file in files for each in _certificates(file)]
        self._made = tempfile.TemporaryDirectory(prefix="mpx-ca-")
        self.folder = self._made.name
        for each in found:
            self._add(each)

    def _add(self, certificate: x509.Certificate) -> None:
        """Have it found by both hashes of its name; whoever names it by hand lets it sign any name."""
        for each in hashes(certificate.subject):
            number = 0
            while (path := Path(self.folder, f"{each}.{number}")).exists():
                number += 1
            path.write_bytes(certificate.public_bytes(Encoding.PEM))
            Path(self.folder, f"{each}.signing_policy").write_text(
                f"access_id_CA X509 '{one_line(certificate.subject)}'\n"
                "pos_rights globus CA:sign\n"
                "cond_subjects globus '\"*\"'\n",
                "utf-8",
            )

    def close(self) -> None:
        """Remove it, where it was made."""
        if self._made is not None:
            self._made.cleanup()


def _certificates(file: str) -> Iterator[x509.Certificate]:
    """Yield those of a file, but those that nobody can read; raises UsageError where there is none."""
    try:
        content = Path(file).read_bytes()
    except OSError as error:
        raise unreadable(file, error) from None
    are_any = False
    for found in _PEM.finditer(content):
        with suppress(*UNREADABLE):
            certificate = _loaded(found[0].replace(b"X509 CERT", b"CERT"))
            hashes(certificate.subject)
            are_any = True
            yield certificate
    if not are_any:
        raise no_certificate(file)


def _loaded(pem: bytes) -> x509.Certificate:
    with catch_warnings():  # of some old CAs, whose numbers are not as they are to be
        filterwarnings("ignore", category=CryptographyDeprecationWarning)
        return x509.load_pem_x509_certificate(pem)
