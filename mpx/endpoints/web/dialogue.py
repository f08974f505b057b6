"""Questions to a web server, one after the other or several at once, over connections that are kept."""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from mpx.endpoints.web.access import WebAccess
from mpx.endpoints.web.certificate_page import check_certificate
from mpx.endpoints.web.connection import BegunAnswer, HttpConnection, WebRequest
from mpx.endpoints.web.pipelining import FEW_ANSWERS
from mpx.endpoints.web.quirks import quirks_of
from mpx.endpoints.web.redirects import redirect_target, token_taken_out
from mpx.endpoints.web.refusals import FAILED, REDIRECTS
from mpx.endpoints.web.reply import HttpReply
from mpx.endpoints.web.side_by_side import MOST_CONNECTIONS, SideBySide
from mpx.endpoints.web.url import Origin, WebUrl, parse_url
from mpx.engine.retry import ServerFailed
from mpx.errors import AuthenticationError, ConnectionLost, MpxError, SourceError, TransferTimeout
from mpx.net import tcp
from mpx.text import shown

MOST_REDIRECTS = 10
AT_ONCE = 100  # questions that are sent before the first is answered
DRAINED_BYTES = 256 * 1024  # of a body that nobody reads; a longer one costs the connection
_RARELY_REFUSED = "MOVE"
_BAD_REQUEST = 400  # what nginx and others say to who speaks in the clear where they expect TLS
# May be asked once more where a kept connection has ended, whether or not it was done: who asks for a change
# finds that out by the second answer.
_REPEATABLE = ("GET", "HEAD", "OPTIONS", "PROPFIND", "MKCOL", "DELETE", "MOVE")


class WebDialogue:
    """Asks over one connection to each origin; over several where many questions are not taken ahead.

    For one thread.
    """

    def __init__(
        self,
        access: WebAccess,
        stop: Callable[[], bool] | None = None,
        *,
        kind: type[MpxError] = SourceError,
        follows: bool = True,
    ) -> None:
        """`kind`: of an error of a name; `follows`: redirects, else they are answers as others."""
        self.access, self.kind = access, kind
        self._follows = follows
        self._stop = stop
        self._kept: dict[Origin, HttpConnection] = {}
        self._beside = SideBySide(self._connected, self._answer_of)  # to our own server
        self._at_once = AT_ONCE
        self._patience_s: float | None = None  # for answers, in place of the usual time-out

    def refused(self, reply: HttpReply, url: WebUrl, what: str) -> MpxError:
        """Return the error for an answer that is no success; `what` was tried."""
        error = self.access.refused(reply, url, what, self.kind)
        if isinstance(error, ServerFailed):
            return self.access.failures.judged(str(url), error, reply.method)
        return error

    @contextlib.contextmanager
    def ask(
        self, method: str, url: WebUrl, extra: Mapping[str, str] | None = None, body: bytes = b""
    ) -> Iterator[tuple[HttpReply, WebUrl]]:
        """Ask, and follow redirects; give the answer, whose body may be read within, and whose URL it is.

        Raises ConnectionLost, TransferTimeout, AuthenticationError, Interrupted.
        """
        asked = url
        shown_there: dict[str, str] = {}  # as the server that has led us there has given it to us
        for _ in range(MOST_REDIRECTS + 1):
            request = self._request(method, url, {**(extra or {}), **shown_there}, body)
            with self._answer(request, body) as reply:
                self._note_answer(reply, url)
                to = redirected(reply, url) if self._follows else None
                if to is None:
                    yield reply, url
                    return
            url, shown_there = to, {}
            if method == "MOVE":
                # With a token in the URL XRootD 5.5 has none for the new name, whatever the header has.
                target, token = token_taken_out(to.target)
                url, shown_there = replace(to, target=target), {"Authorization": token} if token else {}
        raise ConnectionLost(f"{asked}: the server leads from one URL to the next, {MOST_REDIRECTS} times")

    def ask_all(
        self,
        method: str,
        urls: Sequence[WebUrl],
        extra: Mapping[str, str] | None = None,
        body: bytes = b"",
        *,
        most: int = MOST_CONNECTIONS,
    ) -> Iterator[tuple[HttpReply, bytes] | None]:
        """Ask the same about several URLs of one server at once; see ask_each."""
        return self.ask_each([self._request(method, url, extra or {}, body) for url in urls], body, most=most)

    def ask_each(
        self, requests: Sequence[WebRequest], body: bytes = b"", *, most: int = MOST_CONNECTIONS
    ) -> Iterator[tuple[HttpReply, bytes] | None]:
        """Ask several questions of one server at once; give each answer and its body, in order.

        None for one that is to be asked alone, as it may have been done or not: the server ended the
        connection before the answer, or leads elsewhere. What is asked is done in any order, unless
        `keeps_order`; else it is over as many connections as `most` at most.
        """
        for request, answer in zip(requests, self._answers_to(requests, body, most), strict=True):
            if answer is not None:
                self._note_answer(answer[0], request.url)
            yield answer

    def _note_answer(self, reply: HttpReply, url: WebUrl) -> None:
        """Note that a server does not fail at a question now."""
        if reply.status != FAILED:
            self.access.failures.over(str(url), reply.method)

    def _answers_to(
        self, requests: Sequence[WebRequest], body: bytes, most: int
    ) -> Iterator[tuple[HttpReply, bytes] | None]:
        done = 0
        while done < len(requests):
            if not self.keeps_order or self._may_crash(requests[done].method):
                yield from self._side_by_side(requests[done:], body, most)
                return
            some, came = requests[done : done + self._at_once], 0
            for reply, content in self._in_turn(some, body):
                yield None if reply.status in REDIRECTS else (reply, content)
                came += 1
            done += came
            if came < len(some):
                if came < FEW_ANSWERS:
                    self._at_once = max(1, came)
                yield None
                done += 1

    @property
    def keeps_order(self) -> bool:
        """Whether what is asked at once goes over one connection, where the server does it in order."""
        return self.access.pipelining.is_possible(self.access.origin)

    def _side_by_side(
        self, requests: Sequence[WebRequest], body: bytes, most: int
    ) -> Iterator[tuple[HttpReply, bytes] | None]:
        """Give the answers of a server that takes no requests ahead; see ask_each."""
        origin = requests[0].url.origin
        self._beside.keep(self.let_go(origin))
        try:
            for answer in self._beside.ask(requests, body, most, self._patience_s):
                yield None if answer and answer[0].status in REDIRECTS else answer
        finally:
            if origin not in self._kept and (connection := self._beside.take()):
                self._kept[origin] = connection

    def _connected(self) -> HttpConnection:
        return self.access.connect(self.access.origin, stop=self._stop)

    def _answer_of(self, connection: HttpConnection, method: str) -> tuple[HttpReply, bytes]:
        reply = self._reply(connection, method)
        return reply, _body(reply, method)

    def _may_crash(self, method: str) -> bool:
        """Tell whether the server does not bear that more is asked behind a question, see DavQuirks."""
        quirks = self.access.quirks
        return quirks is not None and quirks.ends_at_errors and method != _RARELY_REFUSED

    def ask_both(self, first: str, second: str, url: WebUrl) -> tuple[HttpReply | None, HttpReply | None]:
        """Ask two questions about one URL at once; None where one is not answered, or leads elsewhere."""
        requests = [self._request(method, url, {}, b"") for method in (first, second)]
        found = [None if reply.status in REDIRECTS else reply for reply, _ in self._in_turn(requests)]
        found += [None] * (2 - len(found))
        return found[0], found[1]

    def begin(self, first: str, url: WebUrl, most_bytes: int) -> tuple[HttpReply | None, BegunAnswer | None]:
        """Ask a question, and for the beginning of a file at once; None where one is not answered.

        The body of the second answer is left to whoever takes it, with its connection.
        """
        requests = [
            self._request(first, url, {}, b""),
            self._request("GET", url, {"Range": f"bytes=0-{most_bytes - 1}"}, b""),
        ]
        connection = self.connection(url.origin)
        self.let_go(url.origin)
        answer: HttpReply | None = None
        try:
            connection.send_all_of(requests, b"")
            answer = self._reply(connection, first)
            _body(answer, first)
            if answer.is_reusable:
                return answer, BegunAnswer(url, connection, self._reply_asked_ahead(connection, "GET"))
        except (ConnectionLost, TransferTimeout):
            pass
        except BaseException:
            connection.close()
            raise
        connection.close()
        return answer, None

    def _in_turn(
        self, requests: Sequence[WebRequest], body: bytes = b""
    ) -> Iterator[tuple[HttpReply, bytes]]:
        """Give answers as long as the connection lasts."""
        origin = requests[0].url.origin
        connection = self.connection(origin)
        self.let_go(origin)  # whoever asks another thing meanwhile would read what belongs to these
        is_left = False
        try:
            connection.send_all_of(requests, body)
            for left, request in zip(range(len(requests), 0, -1), requests, strict=True):
                is_first = left == len(requests)
                answer = self._reply if is_first else self._reply_asked_ahead
                reply = answer(connection, request.method)
                yield reply, _body(reply, request.method)
                if not reply.is_reusable:
                    return
                is_left = left == 1
        except (ConnectionLost, TransferTimeout):
            return
        finally:
            if is_left and origin not in self._kept:
                self._kept[origin] = connection
            else:
                connection.close()

    def _reply_asked_ahead(self, connection: HttpConnection, method: str) -> HttpReply:
        """Read an answer whose question was sent before the last answer came; some servers hang then."""
        if self._patience_s is not None:
            return self._reply(connection, method)
        return self.access.pipelining.reply(connection, method)

    def _request(self, method: str, url: WebUrl, extra: Mapping[str, str], body: bytes) -> WebRequest:
        length = {"Content-Length": str(len(body))} if body or method in ("PUT", "POST") else {}
        return self.access.request(method, url, {**extra, **length})

    @contextlib.contextmanager
    def _answer(self, request: WebRequest, body: bytes) -> Iterator[HttpReply]:
        origin = request.url.origin
        try:
            reply = self._sent(request, body)
            yield reply
            if not reply.is_ended and (reply.size_bytes or 0) <= DRAINED_BYTES:
                _body(reply, request.method)
            if not reply.is_reusable:
                self.drop(origin)
        except BaseException:
            self.drop(origin)
            raise

    def _sent(self, request: WebRequest, body: bytes) -> HttpReply:
        """Send a request and read the head of its answer; once more where a kept connection had ended."""
        origin = request.url.origin
        connection = self.connection(origin)
        was_used = connection.answered > 0
        try:
            connection.send(request, body)
            return self._reply(connection, request.method)
        except ConnectionLost:
            if not was_used or connection.incoming.has_some or request.method not in _REPEATABLE:
                raise
        self.drop(origin)
        connection = self.connection(origin)
        connection.send(request, body)
        return self._reply(connection, request.method)

    def _reply(self, connection: HttpConnection, method: str) -> HttpReply:
        try:
            reply = connection.reply(method)
        except ConnectionLost:
            self.access.check_in_the_clear(connection)
            raise
        if reply.status == _BAD_REQUEST:
            self.access.check_in_the_clear(connection)
            check_certificate(reply, connection.origin)
        if connection.origin == self.access.origin:
            self.access.server.heard(reply)
            if self.access.quirks is None:
                self.access.quirks = quirks_of(reply)
            if self.access.server.hangs:
                self.access.pipelining.refuse(connection.origin)
        return reply

    def connection(self, origin: Origin) -> HttpConnection:
        """Return the connection to a server, opened if there is none that lasts: many end when idle."""
        if origin in self._kept and not tcp.is_open(self._kept[origin].socket):
            self.drop(origin)
        if origin not in self._kept:
            if len(self._kept) > 1:  # as few as are needed: where the user was led, and where from
                self.close()
            self._kept[origin] = self.access.connect(origin, stop=self._stop)
        self._kept[origin].be_patient(self._patience_s)
        return self._kept[origin]

    @contextlib.contextmanager
    def patient(self, timeout_s: float) -> Iterator[None]:
        """Wait so long for answers meanwhile; a server that is gone is noticed within the usual time."""
        self._patience_s = timeout_s
        try:
            yield
        finally:
            self._patience_s = None
            for connection in self._kept.values():
                connection.be_patient(None)

    def keep(self, connection: HttpConnection) -> None:
        """Ask over this connection from now on; one that there was to the same server is closed."""
        self.drop(connection.origin)
        self._kept[connection.origin] = connection

    def has(self, connection: HttpConnection) -> bool:
        """Tell whether this connection is kept: nothing is under way on it, and it was not lost."""
        return self._kept.get(connection.origin) is connection

    def let_go(self, origin: Origin) -> HttpConnection | None:
        """Return the connection to a server, which is not kept any longer; None where there is none."""
        return self._kept.pop(origin, None)

    def drop(self, origin: Origin) -> None:
        """Close the connection to a server, if there is one."""
        if connection := self._kept.pop(origin, None):
            connection.close()

    def close(self) -> None:
        """Close all connections."""
        self._beside.close()
        for origin in list(self._kept):
            self.drop(origin)


def _body(reply: HttpReply, method: str) -> bytes:
    """Return the body of an answer, of OPTIONS only if its length is told; what is left costs the connection.

    lighttpd 1.4.69 says that a body comes in chunks where WebDAV answers OPTIONS, and sends none.
    """
    is_of_use = method != "OPTIONS" or reply.size_bytes is not None
    return reply.read(DRAINED_BYTES) if is_of_use else b""


def redirected(reply: HttpReply, url: WebUrl) -> WebUrl | None:
    """Return where an answer leads, None where it leads nowhere.

    Raises ConnectionLost where that is no URL, AuthenticationError where others could read what passes there.
    """
    if reply.status not in REDIRECTS:
        return None
    location = reply.header("Location")
    try:
        to = parse_url(redirect_target(location, f"{url.origin}{url.target}"))
    except ValueError as error:
        why = reply.secrets.hidden_in(str(error))
        raise ConnectionLost(f"{url} leads to a place that is no URL of the web: {why}") from None
    if url.origin.is_secure and not to.origin.is_secure:
        place = shown(reply.secrets.hidden_in(str(to)))
        raise AuthenticationError(f"{url} leads to {place}, in the clear; nothing was asked for there")
    return to
