"""Limits of the interfaces for callers: connections, slow clients, sizes and rates."""

import asyncio
import ipaddress
import json
import re
import urllib.parse
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from mpx_controller.api.callers import Callers
from mpx_controller.errors import NotYours, Refused, TooMany

CONNECTIONS, ALL_CONNECTIONS = 128, 512  # of one address, and together
REQUEST_S = 10.0  # that a request may take to come, and an answer to be read further
TOO_MANY_S = 1.0  # before a request too many is refused: a caller that goes on is slowed by that
MOST_BODY = 8192  # bytes of a request: some times the largest, with 256 ports
_NO_TLS = b'{"detail": "this port speaks TLS: ask it by https://"}\n'
NO_TLS = (  # the answer to plain HTTP
    b"HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\n"
    b"Content-Length: %d\r\nConnection: close\r\n\r\n%s" % (len(_NO_TLS), _NO_TLS)
)
_DIGITS = re.compile(rb"[0-9]{1,9}")

Message = MutableMapping[str, Any]
App = Callable[
    [Message, Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]], Awaitable[None]
]


class TooLarge(Refused):
    """A request that is larger than any can be, or does not say how large it is."""

    status = 413


class Guarded(H11Protocol):
    """One connection of a caller. It is ended where there are too many, or where its caller stalls."""

    _served = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client has connected."""
        super().connection_made(transport)  # type: ignore[arg-type]
        here = sum(isinstance(each, Guarded) and each.address == self.address for each in self.connections)
        is_gone = self.client is None  # reset before it was accepted; its request may be there to be read
        if is_gone or here > CONNECTIONS or len(self.connections) > ALL_CONNECTIONS:
            transport.abort()  # type: ignore[attr-defined]
        else:
            self.loop.call_later(REQUEST_S, self._check, self._served)

    def on_response_complete(self) -> None:
        """One request has been answered."""
        self._served += 1
        super().on_response_complete()

    @property
    def address(self) -> str | None:
        """The address of who has connected."""
        return self.client[0] if self.client else None

    def _check(self, served: int) -> None:
        if self.transport.is_closing():
            return
        cycle = self.cycle
        coming = cycle is None or cycle.response_complete or cycle.more_body
        if self._served == served and (coming or self.flow.write_paused):
            self.transport.abort()
        else:
            self.loop.call_later(REQUEST_S, self._check, self._served)


class Guard:
    """Passes requests to the application, except those too large or too many, and those of web pages."""

    def __init__(self, app: App, callers: Callers) -> None:
        self._app, self._callers = app, callers

    async def __call__(
        self,
        scope: Message,
        receive: Callable[[], Awaitable[Message]],
        send: Callable[[Message], Awaitable[None]],
    ) -> None:
        """Answer a request."""
        try:
            self._check(scope)
        except Refused as refused:
            if isinstance(refused, TooMany):
                await asyncio.sleep(TOO_MANY_S)
            await _answer(refused, send)
            return
        await self._app(scope, receive, send)

    def _check(self, scope: Message) -> None:
        headers = dict(scope["headers"])
        self._callers.spend(scope["client"][0], asyncio.get_running_loop().time())
        length = headers.get(b"content-length", b"0")
        if b"transfer-encoding" in headers or not _DIGITS.fullmatch(length) or int(length) > MOST_BODY:
            raise TooLarge(f"a request body may have at most {MOST_BODY} bytes, and needs Content-Length")
        if b"origin" in headers:
            raise NotYours("requests of web pages are refused (Origin header)")
        if b"authorization" not in headers and scope["scheme"] == "http":
            _check_host(headers.get(b"host"), scope)


def _check_host(header: bytes | None, scope: Message) -> None:
    """Raise NotYours where a caller on this host names another host in its Host header.

    Such is a web page in a browser, from a site whose name was made to resolve to this host (DNS rebinding):
    it would count as the owner of all. With TLS the browser refuses our certificate for that name; and
    every browser sends a Host header.
    """
    if header is None or not _is_loopback(scope["client"][0]):
        return
    try:
        named = urllib.parse.urlsplit(f"//{header.decode('ascii')}").hostname or ""
    except ValueError:
        named = ""
    if named != "localhost" and not _is_loopback(named) and named != scope["server"][0]:
        raise NotYours(
            "without a token ask this host by a loopback address or as localhost, not by another name "
            "(in the Host header)"
        )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


async def _answer(refused: Refused, send: Callable[[Message], Awaitable[None]]) -> None:
    """Refuse, and end the connection: what is left of the request is not read."""
    body = json.dumps({"detail": str(refused)}).encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),
    ]
    await send({"type": "http.response.start", "status": refused.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
