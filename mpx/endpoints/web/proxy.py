"""The proxy that the environment names for a server (https_proxy, http_proxy, all_proxy, no_proxy)."""

import base64
import os
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

from mpx.endpoints.web.url import Origin
from mpx.errors import UsageError

_USUAL_PORT = 80


@dataclass(frozen=True, slots=True)
class Proxy:
    """A proxy that is spoken to in the clear: TLS goes through it end to end (CONNECT)."""

    host: str
    port: int
    authorization: str = field(default="", repr=False)  # the value of Proxy-Authorization

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


def proxy_for(origin: Origin) -> Proxy | None:
    """Return the proxy for a server, None for none; UsageError for one that cannot be used."""
    if not any(name.lower().endswith("_proxy") for name in os.environ):
        return None
    import urllib.request as of_python

    proxies = of_python.getproxies_environment()
    text = proxies.get("https" if origin.is_secure else "http") or proxies.get("all")
    if not text or of_python.proxy_bypass(f"{origin.host}:{origin.port}"):
        return None
    try:
        parts = urlsplit(text if "://" in text else f"http://{text}")
        host, port = parts.hostname, parts.port or _USUAL_PORT
    except ValueError:
        host, port = None, 0
    if not host or parts.scheme != "http":
        name = "https_proxy" if origin.is_secure else "http_proxy"
        raise UsageError(
            f"{name} does not name a proxy that mpx can use; write http://HOST:PORT, or unset it"
        )
    authorization = ""
    if parts.username is not None:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        authorization = f"Basic {base64.b64encode(pair.encode()).decode('ascii')}"
    return Proxy(host, port, authorization)
