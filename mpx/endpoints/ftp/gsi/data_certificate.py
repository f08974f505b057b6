"""A certificate that was made for data connections: the server is handed it with its key (DCSC P).

Both ends show it, and take nothing else.
"""

import base64
import ssl
from datetime import timedelta
from functools import partial

from mpx.endpoints.ftp.gsi.data import GsiData
from mpx.endpoints.ftp.wire import command
from mpx.errors import AuthenticationError
from mpx.net.self_signed import self_signed
from mpx.net.tls import load_pem

_LASTS = timedelta(days=30)  # a copy may take long
_END = "-----END CERTIFICATE-----"


def data_certificate() -> str:
    """Return one that was made just now, with its key, as servers take it."""
    certificate, key = (each.decode("ascii") for each in self_signed("mpx data", _LASTS))
    return f"{certificate}{key}{certificate}"  # once more: as what vouches for it


class DataCertificate:
    """A certificate with its key (PEM)."""

    def __init__(self, pem: str = "") -> None:
        """Makes one if none is given."""
        self._pem = pem or data_certificate()

    @property
    def handing_over(self) -> bytes:
        """The command that hands it to a server; only over a control channel that nobody else can read."""
        return command("DCSC", "P", base64.b64encode(self._pem.encode("ascii")).decode("ascii"))

    def connections(self, peer: str, *, is_private: bool, advice: str = "") -> GsiData:
        """Return how connections begin at whose both ends it is shown; see GsiData."""
        check = partial(self._check, peer)
        return GsiData(peer, self._show, check, is_private=is_private, advice=advice)

    def _show(self, context: ssl.SSLContext) -> None:
        load_pem(context, self._pem)

    def _check(self, peer: str, connection: ssl.SSLObject | ssl.SSLSocket) -> None:
        made = ssl.PEM_cert_to_DER_cert(self._pem[: self._pem.index(_END) + len(_END)])
        if connection.getpeercert(binary_form=True) != made:
            raise AuthenticationError(f"a data connection is not one of {peer}; no data passed")
