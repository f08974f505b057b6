"""The certificates that a copy makes for our server at the other end of an ssh; they are in memory only."""

import ssl
import threading
from dataclasses import dataclass
from datetime import timedelta

from mpx.errors import MpxError
from mpx.net import tls
from mpx.net.self_signed import self_signed

_LAST_DAYS = 3650  # both ways: clocks may differ, and only this copy knows them
_END = "-----END CERTIFICATE-----"


@dataclass(frozen=True, slots=True, repr=False)
class CopyCertificates:
    """Each is one with its key (PEM)."""

    own: str  # that the server shows and we do
    guest: str  # that another server shows which sends to this one; it lets nobody pose as the server

    @property
    def own_der(self) -> bytes:
        """The certificate itself."""
        return ssl.PEM_cert_to_DER_cert(_certificate(self.own))

    @property
    def guest_certificate(self) -> str:
        """The certificate of the guest, without its key (PEM)."""
        return _certificate(self.guest)

    @property
    def key_name(self) -> str:
        """The name of the server's public key."""
        return tls.key_name(self.own_der)


class CertificateMaker(threading.Thread):
    """Makes them while ssh logs in."""

    def __init__(self) -> None:
        super().__init__(name="mpx-certificate", daemon=True)
        self._made: CopyCertificates | None = None
        self._failed: Exception | None = None

    def run(self) -> None:
        """Make them; see Thread."""
        try:
            self._made = CopyCertificates(_made("mpx copy"), _made("mpx third party"))
        except Exception as error:  # told by `made`
            self._failed = error

    def made(self) -> CopyCertificates:
        """Return them."""
        self.join()
        if self._made is None:
            raise MpxError(f"cannot make a certificate: {self._failed}")
        return self._made


def _made(name: str) -> str:
    lasts = timedelta(days=_LAST_DAYS)
    certificate, key = self_signed(name, lasts, since=lasts)
    return (certificate + key).decode("ascii")


def _certificate(pem: str) -> str:
    return pem[: pem.index(_END) + len(_END)]
