"""Where a redirect leads: a Location, resolved against the URL that was asked (RFC 3986). Pure."""

import ipaddress
import re
from urllib.parse import quote, unquote

from mpx.endpoints.web.headers import HeaderError
from mpx.text import quoted

_LONGEST = 16 * 1024  # characters; what is signed, or carries a token, has some thousand
_MOST_SHOWN = 200
_PARTS = re.compile(  # RFC 3986, appendix B
    r"(?:(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*):)?(?://(?P<authority>[^/?]*))?(?P<path>[^?]*)(?P<query>\?.*)?"
)
_SCHEMES = {"http": "http", "https": "https", "dav": "http", "davs": "https"}  # grid servers send the latter
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_AUTHORITY = re.compile(
    r"(?:[A-Za-z0-9_][A-Za-z0-9_.-]{0,254}|\[(?P<v6>[0-9A-Fa-f:.]{2,45})\])(?::(?P<port>[0-9]{1,5})?)?"
)
_TOKEN_NAME, _TOKEN = "authz", re.compile("Bearer [!-~]+")
_USER = re.compile(r"//[^/]*@")
_LONE_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")
_KEPT = "%/:?[]@!$&'()*+,;=~"  # of a URL, beside letters, digits and -._


def redirect_target(location: str, base_url: str) -> str:
    """Return the absolute URL that a Location means, http or https, without a fragment.

    `location` is a value as `http.client` has it, where a character is a byte (Latin-1); what no URL may
    hold of it, as blanks, is percent-encoded. `base_url` is the URL that was asked. Raises HeaderError for
    other schemes (dav and davs mean http and https), for control characters, user names and what is no
    host. Whether credentials may go there is for others to say.
    """
    reference = _plain(location.strip(" \t"))
    base, found = _parts(_plain(base_url)), _parts(reference)
    scheme, authority, path, query = found
    if not scheme:
        scheme = base[0]
        if authority is None:
            authority = base[1]
            if not path:
                path, query = base[2], query or base[3]
            elif not path.startswith("/"):
                path = base[2].rpartition("/")[0] + "/" + path
    if scheme not in _SCHEMES:
        raise _error(location, "another scheme than http or https")
    target = f"{_SCHEMES[scheme]}://{_checked(authority, location)}{_without_dots(path)}{query}"
    _check_length(target)
    return target


def token_taken_out(target: str) -> tuple[str, str]:
    """Return path and query without the token that XRootD puts there as it leads to a data server.

    And that token, as the header Authorization has it; empty where there is none.
    """
    path, _, query = target.partition("?")
    fields = [each.partition("=") for each in query.split("&")]
    tokens = [unquote(value) for name, _, value in fields if name == _TOKEN_NAME]
    if not tokens or not _TOKEN.fullmatch(tokens[0]):
        return target, ""
    kept = "&".join("".join(field) for field in fields if field[0] != _TOKEN_NAME)
    return f"{path}?{kept}" if kept else path, tokens[0]


def _plain(text: str) -> str:
    """Return a reference without its fragment, with nothing in it that is not plain ASCII."""
    _check_length(text)
    if _CONTROL.search(text):
        raise _error(text, "a control character")
    try:
        raw = _LONE_PERCENT.sub("%25", text.partition("#")[0]).encode("latin-1")
    except UnicodeEncodeError:
        raise _error(text, "a character that no header can hold") from None
    return quote(raw, safe=_KEPT)


def _check_length(text: str) -> None:
    if not 0 < len(text) <= _LONGEST:
        raise HeaderError(f"a redirect to a URL of {len(text)} characters")


def _parts(reference: str) -> tuple[str, str | None, str, str]:
    found = _PARTS.fullmatch(reference)
    assert found is not None  # it matches any text
    return (found["scheme"] or "").lower(), found["authority"], found["path"], found["query"] or ""


def _checked(authority: str | None, location: str) -> str:
    """Return an authority that is a host and perhaps a port."""
    if authority and "@" in authority:
        raise HeaderError("a redirect to a URL with a user name or a password")  # which are not shown
    found = _AUTHORITY.fullmatch(authority or "")
    if not authority or found is None or (found["port"] and not 0 < int(found["port"]) < 65536):
        raise _error(location, "no host and port that can be read")
    if found["v6"]:
        try:
            ipaddress.IPv6Address(found["v6"])
        except ValueError:
            raise _error(location, "no address that can be read") from None
    return authority.removesuffix(":")


def _without_dots(path: str) -> str:
    """Return an absolute path without `.` and `..` (RFC 3986, 5.2.4)."""
    kept: list[str] = []
    segments = path.split("/")[1:] or [""]
    for each in segments:
        if each == "..":
            del kept[-1:]
        elif each != ".":
            kept.append(each)
    if segments[-1] in (".", ".."):
        kept.append("")
    return "/" + "/".join(kept)


def _error(location: str, why: str) -> HeaderError:
    shown = _USER.sub("//", location.partition("#")[0].partition("?")[0])  # a query may hold a token
    return HeaderError(f"a redirect to a URL with {why}: {quoted(shown[:_MOST_SHOWN])}")
