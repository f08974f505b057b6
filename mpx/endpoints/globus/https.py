"""The HTTPS of a collection, over the connections of the web: with a token that goes to that server alone."""

from mpx.endpoints.globus.refusals import LOG_IN
from mpx.endpoints.globus.service import GlobusService
from mpx.endpoints.web.access import WebAccess
from mpx.endpoints.web.bearer_tokens import BearerToken
from mpx.endpoints.web.options import WebOptions
from mpx.endpoints.web.reply import HttpReply
from mpx.endpoints.web.url import Origin, WebUrl
from mpx.errors import MpxError
from mpx.location import Location
from mpx.report import OnNote

_OF_LOGINS = (401, 403)
_SOURCE = "the login at Globus"


class CollectionWebAccess(WebAccess):
    """For any thread. The service describes, so that nothing is asked of the collection but data."""

    def __init__(
        self, collection: str, origin: Origin, options: WebOptions, service: GlobusService, note: OnNote
    ) -> None:
        super().__init__(Location("https", "/", origin.host, origin.port), options, note=note, origin=origin)
        self.speaks_dav = False
        self._collection, self._service = collection, service

    @property
    def token(self) -> BearerToken:
        """See WebAccess. It is renewed before it expires; raises AuthenticationError."""
        header = self._service.run(self._header, self.options.stop)
        return BearerToken(header.partition(" ")[2], _SOURCE)

    def _header(self) -> str:
        from globus_sdk import GlobusError

        from mpx.endpoints.globus.refusals import meaning

        credentials = self._service.credentials
        try:
            return str(credentials.authorizer(self._collection).get_authorization_header())
        except GlobusError as error:
            what = f"get a token for the HTTPS of {self._collection}"
            raise meaning(error, what, MpxError, credentials.secrets()) from None

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
