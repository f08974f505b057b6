"""What all connections of a copy with one web server share: how they are opened, and what lets us in.

Credentials go to the server that the user has named and to no other: after a redirect to another host or port
only where `--send-token-to` names it. They never leave TLS.
"""

import base64
import functools
import socket
import ssl
import threading
import time
from collections.abc import Callable, Mapping, Sequence

from mpx.endpoints.passwords import password_for
from mpx.endpoints.web.bearer_tokens import BearerToken, BearerTokens
from mpx.endpoints.web.connection import BegunAnswer, HttpConnection, WebRequest
from mpx.endpoints.web.failing import ServerFailures
from mpx.endpoints.web.given_urls import GivenUrls
from mpx.endpoints.web.headers import login_schemes
from mpx.endpoints.web.login_help import IN_THE_CLEAR, login_help
from mpx.endpoints.web.options import WebOptions
from mpx.endpoints.web.part_stores import PartStores
from mpx.endpoints.web.pipelining import Pipelining
from mpx.endpoints.web.proxy import proxy_for
from mpx.endpoints.web.quirks import DavQuirks
from mpx.endpoints.web.refusals import UNAUTHORIZED, refused
from mpx.endpoints.web.reply import HttpReply
from mpx.endpoints.web.server_digests import ServerDigests
from mpx.endpoints.web.trust import client_context
from mpx.endpoints.web.tunnel import tunnel
from mpx.endpoints.web.url import Origin, WebUrl, origin_of
from mpx.engine.endpoint import Admission
from mpx.engine.file_transfer import FileTransfer
from mpx.engine.rate_limiter import RateLimiter
from mpx.errors import AuthenticationError, ConnectionLost, MpxError, UsageError
from mpx.hosts import parse_hosts
from mpx.location import WEB_PORTS, Location
from mpx.net import tcp, tls
from mpx.net.dial import Dial
from mpx.report import OnNote, no_note

_MOST_MOVED = 10_000  # redirects that are remembered
_UNKNOWN_CA = "if you know its CA, name that with --ca"
_SHOWS_TLS_S = 5.0  # within which a server that speaks it answers
_REMEMBERED_S = 600.0  # as what they lead to may be signed for some time only


class WebAccess:
    """For any thread. `note`: lines for the report."""

    takes_turns = False  # a server that refuses some connections says so by 503

    def __init__(
        self,
        location: Location,
        options: WebOptions,
        given: Sequence[Location] = (),
        note: OnNote = no_note,
        *,
        origin: Origin | None = None,
    ) -> None:
        """`given`: the URLs of the user; `origin`: the server, where the location does not name it."""
        self.location = location
        self.origin = origin or origin_of(location)
        self.options = options
        self.note = note
        self.tokens = BearerTokens(options.token_files)
        self.pipelining = Pipelining()
        self.part_stores = PartStores()
        self.failures = ServerFailures()
        self.given = GivenUrls(given)
        self._trusted = parse_hosts(options.send_token_to)
        self._lock = threading.Lock()
        self._contexts: dict[
            bool, ssl.SSLContext
        ] = {}  # by whether our certificate is shown; with `_lock` held
        self._spare: list[HttpConnection] = []  # that are open, and used by nobody; with `_lock` held
        self._begun: BegunAnswer | None = None  # of the file that is copied first; with `_lock` held
        self.server = ServerDigests(options.asked_checksum)
        self.read_back_limiter = RateLimiter(threading.Event(), options.rate_bps)
        self.speaks_dav: bool | None = True if location.scheme in ("dav", "davs") else None  # None: not known
        self.says_dav = False  # it has said so, which a URL alone does not
        self.quirks: DavQuirks | None = None  # of the server; None: it has not answered yet
        self.slashed: set[str] = set()  # names of folders that are served with a slash at the end only
        self._moved: dict[WebUrl, tuple[WebUrl, float]] = {}  # where it leads, since when; with `_lock` held

    @property
    def is_grid(self) -> bool:
        """Whether grid certificates count."""
        return self.location.scheme == "davs"

    def url_of(self, name: str) -> WebUrl:
        """Return the URL of a name."""
        slash = "/" if name in self.slashed else ""
        return self.given.url_of(self.origin, name, slash)

    def stored_as(self, file: FileTransfer) -> WebUrl:
        """Return the URL under which a file is stored before it has its final name.

        Raises DestinationError for a name that the server takes for another one.
        """
        url = self.url_of(file.partial)
        if self.quirks and (error := self.quirks.why_not_named(file.partial, url)):
            raise error
        return url

    # --- what lets us in -----------------------------------------------------------------------------

    def request(self, method: str, url: WebUrl, headers: Mapping[str, str]) -> WebRequest:
        """Return a request with what lets us in; AuthenticationError for a token that does not hold."""
        return WebRequest(method, url, {**self._authorization(url.origin), **headers})

    def has_credentials(self, origin: Origin) -> bool:
        """Tell whether requests to a server have something that lets us in."""
        return bool(self._authorization(origin))

    def _authorization(self, origin: Origin) -> dict[str, str]:
        """Return the header that lets us in at a server: a token, else user and password; none in the clear.

        Raises AuthenticationError for a token that does not hold, UsageError for a ~/.netrc that is no use.
        """
        if not self.may_have_credentials(origin):
            return {}
        if token := self.token:
            return {"Authorization": token.authorization}
        if self._password is None or origin != self.origin:  # others are shown the token at most
            return {}
        pair = base64.b64encode(":".join(self._password).encode("utf-8", "surrogateescape"))
        return {"Authorization": f"Basic {pair.decode('ascii')}"}

    def refused(self, reply: HttpReply, url: WebUrl, what: str, kind: type[MpxError]) -> MpxError:
        """Return the error for an answer that is no success; see refusals.refused."""
        has_credentials = self.has_credentials(url.origin)
        return refused(
            reply,
            url,
            what,
            kind,
            has_credentials=has_credentials,
            help_text=self.how_to_log_in(url.origin, reply),
        )

    @property
    def token(self) -> BearerToken | None:
        """The token that lets us in; AuthenticationError for one that does not hold."""
        if self.location.user or not self.origin.is_secure:
            return None
        return self.tokens.check(self.origin.host, self.origin.port, time.time())

    @property
    def uses_password(self) -> bool:
        """Whether it is a password that lets us in; raises as `token`."""
        return self.origin.is_secure and self.token is None and self._password is not None

    def digest_with(self, reply: HttpReply, algorithm: str) -> str | None:  # noqa: ARG002  others tell some
        """Return the digest of a whole file that each answer with data of it tells; None: none."""
        return None

    def how_to_log_in(self, origin: Origin, reply: HttpReply) -> str:
        """What to do where a server refuses something and got no credentials; empty: that is no reason."""
        if not self.origin.is_secure:
            return IN_THE_CLEAR if reply.status == UNAUTHORIZED or self._holds_back else ""
        if origin != self.origin and self.uses_password:
            return f"your password is shown to {self.origin.host} alone; give the URL of {origin.host} itself"
        if origin != self.origin and self.has_credentials(self.origin):
            return f"it was not shown your credentials; name {origin.host} with --send-token-to if it may be"
        with_token = self.tokens.how_to_give_one(self.origin.host)
        return login_help(self.location, with_token, login_schemes(reply.all("WWW-Authenticate")))

    @property
    def _holds_back(self) -> bool:
        """Whether there is something that would let us in, if that were not in the clear."""
        try:
            token = self.tokens.for_host(self.origin.host, self.origin.port)
            return token is not None or self._password is not None
        except (AuthenticationError, UsageError):  # what there is is of no use
            return True

    @property
    def server_url(self) -> str:
        """See SharedConnections. Locations name it."""
        return ""

    @property
    def admission(self) -> Admission | None:
        """The token that lets us in; None where there is none, or where it does not say until when."""
        if self.location.user or not self.origin.is_secure:
            return None
        try:
            return self.tokens.admission(self.origin.host, self.origin.port)
        except AuthenticationError:  # said where it is needed
            return None

    def may_have_credentials(self, origin: Origin) -> bool:
        """Tell whether what lets us in may be shown to a server."""
        if not origin.is_secure:
            return False
        return origin == self.origin or any(each.covers(origin.host, origin.port) for each in self._trusted)

    @functools.cached_property
    def _password(self) -> tuple[str, str] | None:
        return password_for(self.location)

    # --- redirects -----------------------------------------------------------------------------------

    def moved(self, url: WebUrl, to: WebUrl) -> None:
        """Remember where a URL leads."""
        with self._lock:
            if len(self._moved) >= _MOST_MOVED:
                self._moved.clear()
            self._moved[url] = to, time.monotonic()

    def forget_moved(self, url: WebUrl, to: WebUrl) -> None:
        """Ask the server anew where a URL leads, unless another place than `to` is known by now."""
        with self._lock:
            if (found := self._moved.get(url)) and found[0] == to:
                del self._moved[url]

    def leads_to(self, url: WebUrl) -> WebUrl:
        """Return where a URL leads, as far as it is known: else itself."""
        with self._lock:
            found = self._moved.get(url)
            if found is None or time.monotonic() - found[1] > _REMEMBERED_S:
                return url
            return found[0]

    # --- connections ---------------------------------------------------------------------------------

    def begin(self, answer: BegunAnswer) -> None:
        """Keep the answer that brings the beginning of a file, for who moves that."""
        with self._lock:
            self._begun = answer

    def take_begun(self, url: WebUrl) -> BegunAnswer | None:
        """Return the answer that brings the beginning of a file, once."""
        with self._lock:
            if self._begun is None or self._begun.url != url:
                return None
            begun, self._begun = self._begun, None
        return begun

    def give_back(self, connection: HttpConnection) -> None:
        """Take a connection to our own server on which nothing is under way, for who needs one next."""
        with self._lock:
            self._spare.append(connection)

    def take(self, origin: Origin) -> HttpConnection | None:
        """Return a connection that was given back, if there is one that lasts."""
        while origin == self.origin:
            with self._lock:
                connection = self._spare.pop() if self._spare else None
            if connection is None or tcp.is_open(connection.socket):
                return connection
            connection.close()
        return None

    def close(self) -> None:
        """Close the connections that nobody uses."""
        with self._lock:
            spare, self._spare = self._spare, []
            spare += [self._begun.connection] if self._begun else []
            self._begun = None
        for connection in spare:
            connection.close()

    def connect(
        self,
        origin: Origin,
        *,
        congestion: str | None = None,
        bound: Callable[[int], None] | None = None,
        stop: Callable[[], bool] | None = None,
    ) -> HttpConnection:
        """Open a connection; raises ConnectionLost, AuthenticationError, UsageError, Interrupted."""
        options, stop = self.options, stop or self.options.stop
        proxy = proxy_for(origin)
        place = (proxy.host, proxy.port) if proxy else (origin.host, origin.port)
        began_s = time.monotonic()
        try:
            connection = self._reach(place, str(origin), stop, congestion=congestion, bound=bound)
        except ConnectionLost as error:
            if not proxy:
                raise
            who = f"the proxy that the environment names for {origin.authority}"
            raise ConnectionLost(f"{error}; that is {who}") from None
        connected_s = time.monotonic() - began_s
        try:
            if proxy:
                self.note(f"{origin.authority} is reached through the proxy {proxy}")
                if origin.is_secure:
                    tunnel(connection, proxy, origin, options, stop)
            if origin.is_secure:
                shows = self.may_have_credentials(origin)
                connection = tls.secured(
                    connection,
                    self._context(shows_certificate=shows),
                    str(origin),
                    options.connect_timeout_s,
                    name=origin.bare_host,
                    in_the_clear=self.written(secure=False),
                    unknown_ca=_UNKNOWN_CA,
                    stop=stop,
                )
                connection.settimeout(options.timeout_s)
        except BaseException:
            connection.close()
            raise
        return HttpConnection(
            connection,
            origin,
            options.timeout_s,
            stop,
            via=None if origin.is_secure else proxy,
            connected_s=connected_s,
        )

    def _reach(
        self,
        place: tcp.Address,
        peer: str,
        stop: Callable[[], bool],
        *,
        congestion: str | None = None,
        bound: Callable[[int], None] | None = None,
    ) -> socket.socket:
        options = self.options
        dial = Dial(
            options.connect_timeout_s,
            options.source_ports,
            options.source_host,
            congestion,
            bound=bound or options.bound,
            stop=stop,
        )
        return _first_that_answers(dial, tcp.resolve(*place, options.family, stop), peer)

    def check_in_the_clear(self, connection: HttpConnection) -> None:
        """Raise AuthenticationError where a server that understands nothing in the clear speaks TLS.

        `connection`: to which it has not answered, or that it does not understand.
        """
        origin, options = connection.origin, self.options
        if origin != self.origin or origin.is_secure or self.server.is_known or proxy_for(origin):
            return
        try:
            again = self._reach((origin.host, origin.port), str(origin), options.stop)
        except (ConnectionLost, UsageError):  # the server is gone, or no port is left: that tells nothing
            return
        if tls.is_spoken(again, origin.bare_host, min(_SHOWS_TLS_S, options.connect_timeout_s), options.stop):
            raise AuthenticationError(
                f"{origin} speaks TLS and understands nothing in the clear; write {self.written(secure=True)}"
            )

    def written(self, *, secure: bool) -> str:
        """Return how a user writes that the server is asked inside TLS, or in the clear."""
        scheme = self.location.scheme
        if scheme not in WEB_PORTS:
            return f"--endpoint-url http{'s' if secure else ''}://"
        return f"{scheme.removesuffix('s')}{'s' if secure else ''}://"

    def _context(self, *, shows_certificate: bool) -> ssl.SSLContext:
        """Return what is trusted, and what is shown: our certificate to no other server than our token."""
        options = self.options
        with self._lock:
            if shows_certificate not in self._contexts:
                certificate = (options.certificate, options.key) if shows_certificate else (None, None)
                made, notes = client_context(
                    ca=options.ca,
                    grid=self.is_grid,
                    certificate=certificate[0],
                    key=certificate[1],
                    shows_usual=shows_certificate,
                )
                for text in notes:
                    self.note(text)
                self._contexts[shows_certificate] = made
            return self._contexts[shows_certificate]


def _first_that_answers(dial: Dial, addresses: Sequence[tuple[int, tcp.Address]], peer: str) -> socket.socket:
    failures: list[ConnectionLost] = []
    for _, address in addresses:
        try:
            return dial.connect(address)
        except ConnectionLost as error:
            failures.append(error)
    if not failures:
        raise ConnectionLost(f"{peer} has no address")
    raise failures[0]
