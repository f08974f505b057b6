"""URLs as HTTP is spoken to them: an origin, and what is asked for there. Pure."""

from dataclasses import dataclass, field
from urllib.parse import urlsplit

from mpx.endpoints.web.names import encoded
from mpx.location import Location

_PORTS = {True: 443, False: 80}


@dataclass(frozen=True, slots=True)
class Origin:
    """A server: inside TLS or not, host and port."""

    is_secure: bool
    host: str
    port: int

    @property
    def bare_host(self) -> str:
        """The host without the interface of this machine that an address may be on (fe80::1%eth0)."""
        return self.host.partition("%")[0]

    @property
    def authority(self) -> str:
        """Host and port, as a Host header has them: the usual port is left out."""
        host = f"[{self.bare_host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.is_secure] else f"{host}:{self.port}"

    def other_scheme(self) -> "Origin":
        """Return the same inside TLS where this is not, and the other way round."""
        is_usual = self.port == _PORTS[self.is_secure]
        return Origin(not self.is_secure, self.host, _PORTS[not self.is_secure] if is_usual else self.port)

    def __str__(self) -> str:
        return f"http{'s' if self.is_secure else ''}://{self.authority}"


@dataclass(frozen=True, slots=True)
class WebUrl:
    """What is asked for: `target` is path and query, encoded, and may hold a secret in its query."""

    origin: Origin
    target: str = field(repr=False)

    def __str__(self) -> str:
        return f"{self.origin}{self.path}"

    @property
    def path(self) -> str:
        """The target without its query."""
        return self.target.partition("?")[0]


def origin_of(location: Location) -> Origin:
    """Return the server of a location."""
    return Origin(location.scheme in ("https", "davs"), location.host, location.port)


def url_of(origin: Origin, name: str, query: str = "", path: str = "") -> WebUrl:
    """Return the URL of a name (decoded), which begins with a slash; `path`: as it is sent, if not so."""
    return WebUrl(origin, (path or encoded(name)) + (f"?{query}" if query else ""))


def parse_url(text: str) -> WebUrl:
    """Read an absolute URL of http or https that `headers.redirect_target` has passed; raises ValueError."""
    parts = urlsplit(text)
    is_secure = parts.scheme == "https"
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    if not parts.hostname:
        raise ValueError("no host")
    return WebUrl(Origin(is_secure, parts.hostname, parts.port or _PORTS[is_secure]), target)
