"""What lets a copy in at a server of XRootD: a token, or what the library finds."""

import os
import time
from collections.abc import Mapping

from mpx.endpoints.web.bearer_tokens import BearerToken, BearerTokens
from mpx.endpoints.xrootd.options import XrootdOptions
from mpx.engine.endpoint import Admission
from mpx.errors import AuthenticationError
from mpx.location import Location
from mpx.net.x509.credential import find_credential, read_credential

PROXY = "X509_USER_PROXY"
_RENEWAL = "renew it (voms-proxy-init, grid-proxy-init), processes that begin later have the new one"


class XrootdLogin:
    """For any thread. Tokens and proxies are renewed while a copy runs."""

    def __init__(
        self,
        location: Location,
        options: XrootdOptions,
        tokens: BearerTokens,
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        self.location, self.options = location, options
        self._tokens, self._environment = tokens, environment

    @property
    def url(self) -> str:
        """The server, as the library names it: what follows are names, which begin with a slash."""
        at = self.location
        return f"{at.scheme}://{at.user}{'@' if at.user else ''}{at.authority}/"

    def token(self) -> BearerToken | None:
        """Return the token, if there is one. Raises as BearerTokens.check."""
        return self._tokens.check(self.location.host, self.location.port, time.time())

    def is_outdated(self, secret: str) -> bool:
        """Tell whether a token that was had before is another by now, or may not be used any more."""
        try:
            token = self.token()
            return (token.secret if token else "") != secret
        except AuthenticationError:  # said when the next process is to begin
            return True

    @property
    def admission(self) -> Admission | None:
        """What lets us in, as far as it says until when; a proxy only where it is named."""
        try:
            if self._tokens.for_host(self.location.host, self.location.port):
                return self._tokens.admission(self.location.host, self.location.port)
            certificate, key = self.options.certificate, self.options.key
            if not (certificate or self._environment.get(PROXY)):
                return None
            found = read_credential(certificate, key or certificate) if certificate else find_credential()
        except AuthenticationError:  # said where it is needed
            return None
        return Admission(found.expires.timestamp(), "your proxy", _RENEWAL)
