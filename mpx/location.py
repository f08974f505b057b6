"""Where a file is: what the user writes as SRC or DST, read into scheme, host and name.

Plain names are taken as they are, byte for byte; only URLs are percent-decoded.
"""

import os
import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

from mpx.errors import UsageError
from mpx.host_names import ascii_host, check_unambiguous
from mpx.text import named, quoted, shown

FTP_PORT = 2811  # what GridFTP listens on, and mpx serve; plain FTP servers (21) need :21 in the URL
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://|(file):", re.IGNORECASE)
_SSH_USER = re.compile(r"[A-Za-z0-9_.+@][A-Za-z0-9_.+@-]*", re.ASCII)
_SSH_HOST = re.compile(r"[A-Za-z0-9_.:][A-Za-z0-9_.:%-]*", re.ASCII)
WEB_PORTS = {"http": 80, "https": 443, "dav": 80, "davs": 443}
ROOT_PORTS = {"root": 1094, "roots": 1094}
VIA_GFAL = "gfal2+"  # before a scheme of GFAL_KNOWS: gfal2 reaches it
GFAL_KNOWS = (*WEB_PORTS, *ROOT_PORTS, "gsiftp")
_SRM = "srm"
_USUAL_PORTS = {
    **WEB_PORTS,
    **ROOT_PORTS,
    **{f"{VIA_GFAL}{scheme}": port for scheme, port in (*WEB_PORTS.items(), *ROOT_PORTS.items())},
    _SRM: 8443,
}
WITH_HOSTS = ("ftp", "gsiftp", "mpx", "ssh", *WEB_PORTS, *ROOT_PORTS, _SRM)  # schemes whose URLs name a host
_SERVERS = ("ftp", "gsiftp", "mpx", "ssh", "s3", "globus", *WEB_PORTS, *ROOT_PORTS, _SRM)
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,254}", re.ASCII)  # older ones have capitals, too
_COLLECTION = re.compile("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)
_SCHEMES = (*_SERVERS, "file")
_SERVER_URL = re.compile(rf"({re.escape(VIA_GFAL)})?({'|'.join(_SERVERS)})://")
_IS_HOME = re.compile(r"/~(/|\Z)")
_LONGEST_AUTHORITY = 1024  # characters of user, host and port; a name of a host has 255 at most
_SECRET = re.compile(r"sig|token|key|secret|password|credential|auth|policy", re.IGNORECASE)
_ENCODED_SLASH, _LONE_PERCENT = re.compile("%2[Ff]"), re.compile("%(?![0-9A-Fa-f]{2})")
_OF_PATHS = "%/!$&'()*+,;=:@~"  # what stays as it is in the path of a URL, beside letters, digits and -._
_LONGEST_SHOWN = 64  # characters of a value in a query; longer ones may be signed


@dataclass(frozen=True, slots=True)
class Location:
    """A file or folder at an endpoint. `name` is what that endpoint calls it, never encoded."""

    # "file", or one of _SERVERS ("mpx": mpx serve inside TLS), or VIA_GFAL and one of GFAL_KNOWS
    scheme: str
    name: str  # of S3: the key, after a slash
    host: str = ""  # of S3: the bucket, as the options say where that is; of Globus: the collection
    port: int = 0  # 0: as the settings of ssh say
    user: str = ""
    query: str = field(default="", repr=False)  # of a URL of the web, as it is sent; it may hold a secret
    # The path of a URL of the web, as it is sent: where a slash is encoded, and so part of a segment
    path: str = ""

    def __str__(self) -> str:
        if self.scheme == "file":
            return self.name
        user = f"{quote(self.user, errors='surrogateescape')}@" if self.user else ""
        path = self.path or quote(self.name, errors="surrogateescape")
        if not path.startswith("/"):
            path = f"/~/{path}"
        elif self.scheme in ROOT_PORTS:
            path = f"/{path}"  # as XRootD's own tools have it
        elif self.scheme not in (*WEB_PORTS, "s3", "globus") and _IS_HOME.match(path):  # not the login folder
            path = path.replace("~", "%7E", 1)
        query = f"?{shown_query(self.query)}" if self.query else ""
        return f"{self.scheme}://{user}{self.authority}{path}{query}"

    @property
    def authority(self) -> str:
        """Host and port; a usual port is left out, but that of FTP."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}" if self.port and self.port != _USUAL_PORTS.get(self.scheme) else host

    @property
    def endpoint(self) -> tuple[str, str, str, int]:
        """What tells two endpoints apart, each bucket of S3 among them."""
        return self.scheme, self.user, self.host, self.port

    def at(self, name: str) -> "Location":
        """Return another file of the same endpoint, of which nothing but its name is known."""
        return self if name == self.name else replace(self, name=name, query="", path="")

    def absolute(self) -> "Location":
        """Return the same file under a name that means it from any working directory; raises UsageError."""
        if self.scheme != "file" or self.name.startswith("/"):
            return self
        try:
            name = str(Path.cwd() / self.name)  # keeps "..": links may be on the way
        except OSError as error:
            raise UsageError(f"{self.name}: no working directory: {error.strerror}") from None
        return replace(self, name=name + "/" if self.name.endswith("/") else name)


def shown_query(query: str) -> str:
    """Return a query without what may be a secret in it: signatures, tokens, and whatever is long."""
    shown = []
    for pair in query.split("&"):
        name, equals, _ = pair.partition("=")
        shown.append(pair if _hidden_of(pair) is None else f"{name[:_LONGEST_SHOWN]}{equals}...")
    return "&".join(shown)


def secrets_of_query(query: str) -> list[str]:
    """Return what `shown_query` leaves out, as it is sent."""
    return [secret for pair in query.split("&") if (secret := _hidden_of(pair))]


def _hidden_of(pair: str) -> str | None:
    """Return what may be a secret in a pair of a query; None for nothing."""
    name, equals, value = pair.partition("=")
    if not equals:
        return name if len(name) > _LONGEST_SHOWN else None
    return value if _SECRET.search(name) or len(value) > _LONGEST_SHOWN else None


def shown_place(text: str) -> str:
    """Return what `str` makes of a location as it is shown to people: names in URLs are not encoded there.

    A report has several with blanks between them.
    """
    return named(unquote(text, errors="surrogateescape") if _SERVER_URL.match(text) else text)


def parse_location(text: str) -> Location:
    """Read what the user wrote; raises UsageError.

    A name relative to the login directory (`/~/data`) is kept relative: `data`.
    """
    if not text:
        raise UsageError("an empty name is not a file; name the source and the destination")
    if "\0" in text:
        raise UsageError(f"the name {quoted(text)} contains a NUL byte; no file can have it")
    found = _SCHEME.match(text)
    if not found:
        return _of_scp(text) or Location("file", text)
    scheme = (found.group(1) or found.group(2)).lower()
    if scheme == "file":
        return Location("file", _file_name(text))
    if _has_password(text):
        raise UsageError(
            "a password in a URL shows in the list of processes; put it into ~/.netrc or MPX_PASSWORD "
            "and leave it out of the URL"
        )
    if scheme not in _SERVERS and not scheme.startswith(VIA_GFAL):
        raise UsageError(
            f"{text}: mpx does not know {scheme}://; it copies plain names, file:, "
            f"{', '.join(f'{each}://' for each in _SERVERS)}"
        )
    return _server(text, scheme)


def _has_password(text: str) -> bool:
    """Tell whether a colon stands before an @ in front of the path; an @ in a password may not be encoded."""
    before, at, _ = text.partition("://")[2].partition("/")[0].rpartition("@")
    return bool(at) and ":" in before.partition("@")[0]


def _file_name(text: str) -> str:
    path = text.split(":", 1)[1]
    if path.startswith("//"):
        host, _, rest = path[2:].partition("/")
        if host not in ("", "localhost"):
            raise UsageError(f"{text}: a file: URL names a file of this host; write file:///NAME")
        path = "/" + rest
    name = unquote(path, errors="surrogateescape")
    if not name or "\0" in name:
        raise UsageError(f"{text}: not the name of a file; write file:///NAME")
    return name


def _server(text: str, scheme: str) -> Location:
    if scheme == "s3":
        return _of_s3(text)
    if scheme.startswith(VIA_GFAL):
        return through_gfal(_server(text[len(VIA_GFAL) :], scheme.removeprefix(VIA_GFAL)))
    if scheme == "globus":
        return _of_globus(text)
    # urlsplit() drops tabs and newlines and cuts at ? and #, none of which FTP gives a meaning.
    rest = text.split("://", 1)[1]
    authority, slash, path = rest.partition("/")
    if len(authority) > _LONGEST_AUTHORITY:  # urlsplit() takes quadratic time for some
        raise UsageError(
            f"a URL with {len(authority)} characters before its path, which no host and port have; "
            f"write {scheme}://HOST:PORT/NAME"
        )
    if scheme in WEB_PORTS and not slash:  # nothing stands between host and query
        authority, question, query = authority.partition("?")
        path = question + query
    try:
        parts = urlsplit(f"ftp://{authority}")
        host, port = parts.hostname or "", parts.port or _USUAL_PORTS.get(scheme, FTP_PORT)
    except ValueError as error:
        raise UsageError(f"{text}: {error}; write {scheme}://HOST:PORT/NAME") from None
    if not host or re.search(r"[?#\s\x00-\x1f]", authority):
        raise UsageError(f"{text}: no host that can be read; write {scheme}://HOST:PORT/NAME")
    if scheme == "mpx" and parts.username:
        raise UsageError(f"mpx://{host}: a token says who you are; leave what stands before @ out of the URL")
    host = host.replace("%25", "%")  # before the interface of an address of IPv6 (RFC 6874)
    check_unambiguous(host)  # who connects would read it by the older rules
    if scheme in WEB_PORTS:
        return _of_the_web(Location(scheme, "/", ascii_host(host), port, _user(parts.username)), path)
    if scheme in ROOT_PORTS:
        return _of_xrootd(Location(scheme, "/", ascii_host(host), port, _user(parts.username)), path)
    if scheme == _SRM:
        host = ascii_host(host)
    name = unquote(slash + path, errors="surrogateescape")
    for char, what in (("\r", "a carriage return"), ("\n", "a line feed"), ("\0", "a NUL byte")):
        if char in name:
            raise UsageError(f"{text}: the name contains {what}, which FTP cannot carry; rename it")
    if scheme != _SRM and _IS_HOME.match(slash + path):
        name = name[3:]
    elif not name:
        name = "/"
    user = _user(parts.username)
    if scheme == "ssh":
        at = authority.lower().rfind(host)
        return _over_ssh(text, user, authority[at : at + len(host)], parts.port or 0, name)
    return Location(scheme, name, host, port, user)


def is_through_gfal(place: Location) -> bool:
    """Tell whether gfal2 reaches a place."""
    return place.scheme == _SRM or place.scheme.startswith(VIA_GFAL)


def through_gfal(place: Location) -> Location:
    """Return a place as gfal2 reaches it; raises UsageError for what it does not, or not as mpx has it."""
    if place.scheme == "file" or is_through_gfal(place):
        return place
    if place.scheme not in GFAL_KNOWS:
        known = ", ".join(f"{each}://" for each in (*GFAL_KNOWS, _SRM))
        raise UsageError(
            f"{place}: gfal2 is not asked for {place.scheme}://, but for {known}; copy to this host first, "
            "and from here by another command"
        )
    if place.query or place.path:
        raise UsageError(f"{place}: gfal2 is given no URL with a query, or with an encoded slash")
    return replace(place, scheme=f"{VIA_GFAL}{place.scheme}")


def _user(text: str | None) -> str:
    return unquote(text or "", errors="surrogateescape")


def _of_the_web(server: Location, path: str) -> Location:
    """Read what stands behind the host of a URL of the web; raises UsageError."""
    path, hash_sign, _ = path.partition("#")
    if hash_sign:
        raise UsageError(f"{server}: what follows # is not sent to a server; write %23 for a # in a name")
    path, _, query = path.partition("?")
    name = unquote("/" + path, errors="surrogateescape")
    if "\0" in name:
        raise UsageError(f"{server}: the name contains a NUL byte; no file can have it")
    if re.search(r"[^\x21-\x7e]", query):
        raise UsageError(f"{server}: write blanks and letters beyond ASCII in the query as %20 and the like")
    is_kept = _ENCODED_SLASH.search(path) is not None
    sent = quote(_LONE_PERCENT.sub("%25", "/" + path), safe=_OF_PATHS, errors="surrogateescape")
    return replace(server, name=name, query=query, path=sent if is_kept else "")


def _of_xrootd(server: Location, path: str) -> Location:
    """Read what stands behind the host of a root:// URL: `/name` as XRootD writes it, or `name`."""
    name = unquote("/" + path.removeprefix("/"), errors="surrogateescape")
    if "\0" in name or "\r" in name or "\n" in name:
        raise UsageError(f"{server}: the name contains a NUL byte or the end of a line; no file there has it")
    return replace(server, name=name)


def _of_s3(text: str) -> Location:
    """Read `s3://BUCKET/KEY`; all characters may be part of a key. Raises UsageError."""
    bucket, _, key = text.split("://", 1)[1].partition("/")
    if bucket.startswith("arn:"):
        raise UsageError(
            f"{quoted(text)}: ARNs are not read; write s3://ALIAS/KEY with the alias of the access point"
        )
    if not _BUCKET.fullmatch(bucket):
        raise UsageError(
            f"{quoted(text)}: {quoted(bucket)} is not the name of a bucket; write s3://BUCKET/KEY, and give "
            "--endpoint-url for a server that is not AWS"
        )
    name = unquote("/" + key, errors="surrogateescape")
    if "\0" in name:
        raise UsageError(f"{text}: the name contains a NUL byte; no file can have it")
    return Location("s3", name, bucket)


def parse_collection(text: str) -> str:
    """Read the id of a collection of Globus, in small letters; raises UsageError."""
    if not _COLLECTION.fullmatch(text):
        raise UsageError(
            f"{quoted(text)} is not the id of a collection, as ddb59aef-6d04-11e5-ba46-22000b92c6ec; "
            "app.globus.org shows it, under Collections"
        )
    return text.lower()


def _of_globus(text: str) -> Location:
    """Read `globus://COLLECTION/PATH`; raises UsageError. `/~/` begins a path below the home folder."""
    collection, _, path = text.split("://", 1)[1].partition("/")
    try:
        host = parse_collection(collection)
    except UsageError as error:
        raise UsageError(f"{quoted(text)}: {error}; write globus://COLLECTION/PATH") from None
    name = unquote("/" + path, errors="surrogateescape")
    if "\0" in name:
        raise UsageError(f"{text}: the name contains a NUL byte; no file can have it")
    return Location("globus", name, host)


def _of_scp(text: str) -> Location | None:
    """Read `[user@]host:path`, as scp takes it: a colon before the first slash, a path relative to home."""
    bracket = text.find("]:")  # of an IPv6 address
    end = text.find(":") if bracket < 0 or not text.rpartition("@")[2].startswith("[") else bracket + 1
    before, path = text[: max(0, end)], text[end + 1 :]
    if not before or "/" in before:
        return None
    user, _, host = before.rpartition("@")
    host = host.removeprefix("[").removesuffix("]")
    if host.lower() in _SCHEMES:
        raise UsageError(
            f"{text}: write {host.lower()}://{path.lstrip('/')} for a server, or ./{text} for a local file"
        )
    if os.path.lexists(text):
        url = Location("ssh", path, host, 0, user)
        raise UsageError(
            f"{text}: this is a local file, and a file of the host {shown(host)}, too; "
            f"write ./{text} for the local one, {url} for the other"
        )
    for char, what in (("\r", "a carriage return"), ("\n", "a line feed")):
        if char in path:
            raise UsageError(f"{quoted(text)}: the name contains {what}, which cannot be sent; rename it")
    if path == "~" or path.startswith("~/"):
        path = path[2:]
    return _over_ssh(text, user, host, 0, path or ".")


def _over_ssh(text: str, user: str, host: str, port: int, name: str) -> Location:
    """Return a location that ssh is asked for; raises UsageError for what it could take for an option."""
    for what, part, allowed in (("user", user, _SSH_USER), ("host", host, _SSH_HOST)):
        if (part or what == "host") and not allowed.fullmatch(part):
            raise UsageError(
                f"{quoted(text)}: the {what} {quoted(part)} is not one that ssh is given: letters, digits, "
                f"{'. _ - + @' if what == 'user' else '. _ - : %'} and no - at its beginning"
            )
    return Location("ssh", name, host, port, user)
