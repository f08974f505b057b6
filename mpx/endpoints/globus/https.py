"""The HTTPS of a collection, over the connections of the web: with a token that goes to that server alone."""

import threading
import time
from collections.abc import Mapping

from mpx.endpoints.globus.refusals import LOG_IN, meaning
from mpx.endpoints.globus.service import GlobusService, answered
from mpx.endpoints.web.access import WebAccess
from mpx.endpoints.web.bearer_tokens import BearerToken
from mpx.endpoints.web.connection import WebRequest
from mpx.endpoints.web.options import WebOptions
from mpx.endpoints.web.reply import HttpReply
from mpx.endpoints.web.url import Origin, WebUrl
from mpx.errors import MpxError
from mpx.location import Location
from mpx.report import OnNote

_OF_LOGINS = (401, 403)
_NO_PERSON = "X-Requested-With"
_LOOKS_S = 30.0  # between two looks whether a token is to be renewed, as it is a minute before it expires
_SOURCE = "the login at Globus"


class CollectionWebAccess(WebAccess):
    """For any thread. The service describes, so that nothing is asked of the collection but data."""

    def __init__(
        self, collection: str, origin: Origin, options: WebOptions, service: GlobusService, note: OnNote
    ) -> None:
        super().__init__(Location("https", "/", origin.host, origin.port), options, note=note, origin=origin)
        self.speaks_dav = False
        self._collection, self._service = collection, service
        self._what = f"get a token for the HTTPS of {collection}"
        self._token_lock = threading.Lock()  # guards the next two
        self._token: BearerToken | None = None
        self._renewed_s = 0.0  # Unix time, until which nobody asks whether it has been renewed

    @property
    def token(self) -> BearerToken:
        """See WebAccess. It is renewed before it expires; raises AuthenticationError."""
        with self._token_lock:
            if self._token is None or time.time() > self._renewed_s:
                self._token = self._service.run(self._new_token, self._what, self.options.stop)
                self._renewed_s = time.time() + _LOOKS_S
            return self._token

    def check_login(self) -> None:
        """Raise AuthenticationError where nothing lets us in."""
        self._service.run(self._new_token, self._what, self.options.stop)

    def _new_token(self) -> BearerToken:
        from globus_sdk import GlobusError

        credentials = self._service.credentials
        try:
            header = answered(
                lambda: credentials.authorizer(self._collection).get_authorization_header(), self._what
            )
            return BearerToken(str(header).partition(" ")[2], _SOURCE)
        except GlobusError as error:
            raise meaning(error, self._what, MpxError, credentials.secrets()) from None

    def request(self, method: str, url: WebUrl, headers: Mapping[str, str]) -> WebRequest:
        """See WebAccess. Else a collection leads who is not let in to a page on which people log in."""
        return super().request(method, url, {_NO_PERSON: "XMLHttpRequest", **headers})

    def refused(self, reply: HttpReply, url: WebUrl, what: str, kind: type[MpxError]) -> MpxError:
        """See WebAccess."""
        error = super().refused(reply, url, what, kind)
        if reply.status not in _OF_LOGINS:
            return error
        return type(error)(f"{error}; to log in for it anew, run: {LOG_IN} --https {self._collection}")

    def how_to_log_in(self, origin: Origin, reply: HttpReply) -> str:  # noqa: ARG002 it is the same for all
        """See WebAccess."""
        return f"run: {LOG_IN} --https {self._collection}"

    @property
    def admission(self) -> None:
        """See WebAccess. Tokens are renewed before they expire."""
        return None
