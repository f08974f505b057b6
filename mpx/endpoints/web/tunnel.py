"""Through a proxy of HTTP to a server inside TLS (CONNECT)."""

import socket
from collections.abc import Callable

from mpx.endpoints.web.connection import HttpConnection, WebRequest
from mpx.endpoints.web.options import WebOptions
from mpx.endpoints.web.proxy import Proxy
from mpx.endpoints.web.url import Origin, WebUrl
from mpx.errors import AuthenticationError, ConnectionLost


def tunnel(
    connection: socket.socket, proxy: Proxy, origin: Origin, options: WebOptions, stop: Callable[[], bool]
) -> None:
    """Have a proxy pass everything on to a server; raises ConnectionLost, AuthenticationError."""
    place = f"{origin.host}:{origin.port}" if ":" not in origin.host else f"[{origin.host}]:{origin.port}"
    through = HttpConnection(connection, Origin(False, proxy.host, proxy.port), options.timeout_s, stop)
    headers = {"Proxy-Authorization": proxy.authorization} if proxy.authorization else {}
    through.send(WebRequest("CONNECT", WebUrl(origin, place), headers))
    reply = through.reply("CONNECT")
    if reply.status == 407:
        raise AuthenticationError(
            f"the proxy {proxy} asks for a password; set https_proxy to http://USER:PASSWORD@HOST:PORT"
        )
    if not 200 <= reply.status < 300 or through.incoming.has_some:
        raise ConnectionLost(f"the proxy {proxy} does not connect to {place}: {reply.status} {reply.reason}")
