"""Values of HTTP headers. Pure; times are in dates.py, and where a redirect leads is in redirects.py.

Lengths and ranges, which have to be right, raise HeaderError; of what only helps (digests, tags, delays) that
part is left out which makes no sense.
"""

import base64
import binascii
import re
from collections.abc import Iterator, Sequence

from mpx.endpoints.web.dates import http_date
from mpx.engine.checksum import DIGITS
from mpx.engine.whole_number import parse_whole
from mpx.text import quoted

MOST_RETRY_AFTER_S = 3600.0
_LONGEST = 4096  # characters of a value that is looked at
_MOST_SHOWN = 80  # characters of a value in a message
_BLANKS = " \t"  # that may stand around a value (RFC 9110: OWS)
_RANGE = re.compile(r"bytes {1,8}([0-9]{1,19})-([0-9]{1,19})/([0-9]{1,19}|\*)", re.IGNORECASE | re.ASCII)
_MOST_REQUESTS = re.compile(r"(?:\A|[\s,])max=([0-9]{1,9})(?:\Z|[\s,])", re.ASCII)
_DELAY = re.compile(r"[0-9]{1,40}")
_DELAY_DIGITS = 5  # of a delay that is no longer than the longest
# What a tag is made of (RFC 9110), with the blanks that some servers put into it
_TAG = re.compile(r'(?P<weak>[Ww]/)?"(?P<tag>[^"\x00-\x1f\x7f]*)"')
_BARE_TAG = re.compile(r'[^"\x00-\x20\x7f,]+')  # as some servers write it: without quotation marks
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')
_SCHEME = re.compile(r"(?:\A|,)[ \t]*([A-Za-z][A-Za-z0-9-]{0,31})(?=[ \t]+[^ \t=,]|[ \t]*(?:,|\Z))")
_DIGEST = re.compile(r"(?P<name>[A-Za-z0-9-]{1,32})[=:](?P<value>[A-Za-z0-9+/=:_-]{1,200})(?:;.*)?")
_ALGORITHMS = {"sha": "sha1", **{name: name for name in DIGITS if name != "xxh3"}}
_HEX = re.compile("[0-9a-fA-F]+")
_SUM_DIGITS = 8  # of 32 bits; servers may leave zeros out at the front of these


class HeaderError(ValueError):
    """The value of a header that makes no sense, or that two who read it might take for different things."""


def content_length(values: Sequence[str]) -> int | None:
    """Return the length in bytes that the Content-Length fields of one head tell; None where there are none.

    The same one several times is one (RFC 9112); raises HeaderError for different ones, and for anything but
    ASCII digits: what a proxy reads another number in, it passes on as something else.
    """
    if not values:
        return None
    found = {each.strip(_BLANKS) for value in values for each in value.split(",")}
    if len(found) > 1:
        raise HeaderError(f"different lengths: {quoted(', '.join(sorted(found))[:_MOST_SHOWN])}")
    return _whole(found.pop(), "length")


def content_range(text: str) -> tuple[int, int, int | None]:
    """Read the Content-Range of a 206: return start, end (exclusive) and size; the size is None if unknown.

    Raises HeaderError.
    """
    found = _RANGE.fullmatch(text.strip(_BLANKS))
    if found is None:
        raise HeaderError(f"not a range of bytes: {quoted(text[:_MOST_SHOWN])}")
    start, last = _whole(found[1], "range"), _whole(found[2], "range")
    size = None if found[3] == "*" else _whole(found[3], "range")
    if start > last or (size is not None and last >= size):
        raise HeaderError(f"a range of bytes that cannot be: {quoted(text[:_MOST_SHOWN])}")
    return start, last + 1, size


def retry_after(text: str, now_s: float) -> float | None:
    """Return for how many seconds a Retry-After tells to wait, at most an hour; None where it does not.

    `now_s`: the time that a date in it is compared with, seconds since 1970.
    """
    text = text.strip(_BLANKS)
    if _DELAY.fullmatch(text):
        digits = text.lstrip("0") or "0"
        delay_s = float(digits) if len(digits) <= _DELAY_DIGITS else MOST_RETRY_AFTER_S
    else:
        until_s = http_date(text)
        if until_s is None:
            return None
        delay_s = until_s - now_s
    return min(max(0.0, delay_s), MOST_RETRY_AFTER_S)


def requests_left(text: str) -> int | None:
    """Return how many more requests a connection takes by its Keep-Alive (`max=99`); None: unknown."""
    found = _MOST_REQUESTS.search(text[:_LONGEST])
    return int(found[1]) if found else None


def login_schemes(values: Sequence[str]) -> list[str]:
    """Return the ways to log in that the WWW-Authenticate fields of one head offer (RFC 9110)."""
    found = (_SCHEME.findall(_QUOTED.sub('""', value[:_LONGEST])) for value in values)
    return list(dict.fromkeys(name for names in found for name in names))


def etag(text: str) -> tuple[str, bool] | None:
    """Return a tag without its quotation marks, and whether it is weak; None for what is no tag."""
    text = text.strip(_BLANKS)
    if len(text) > _LONGEST:
        return None
    if found := _TAG.fullmatch(text):
        return found["tag"], found["weak"] is not None
    return (text, False) if _BARE_TAG.fullmatch(text) else None


def digests(text: str) -> dict[str, str]:
    """Return the checksums that a value tells, by our names for them (checksum.DIGITS), in lower-case hex.

    Of Digest (RFC 3230: `md5=` and base64, `adler32=` and hex; servers write hex for all, too), Repr-Digest
    (RFC 9530: `sha-256=:base64:`), and the checksums that ownCloud (`SHA1:hex MD5:hex`) and dCache list.
    What is not known is left out, and what is told twice and differs.
    """
    found: dict[str, str] = {}
    differing = set()
    for name, value in _digests(text):
        if found.setdefault(name, value) != value:
            differing.add(name)
    return {name: value for name, value in found.items() if name not in differing}


def _digests(text: str) -> Iterator[tuple[str, str]]:
    for each in re.split(r"[,\s]+", text[:_LONGEST]):
        match = _DIGEST.fullmatch(each)
        name = _ALGORITHMS.get(match["name"].lower().replace("-", "")) if match else None
        if match and name and (value := _digest_hex(match["value"], DIGITS[name])):
            yield name, value


def _digest_hex(text: str, digits: int) -> str | None:
    """Return a digest in hex that is written so or in base64; which it is, its length tells."""
    if _HEX.fullmatch(text) and (len(text) == digits or len(text) < digits == _SUM_DIGITS):
        return text.lower().zfill(digits)
    text = text.strip(":").rstrip("=").replace("-", "+").replace("_", "/")
    try:
        raw = base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except binascii.Error:
        return None
    return raw.hex() if len(raw) * 2 == digits else None


def _whole(text: str, what: str) -> int:
    try:
        return parse_whole(text)
    except ValueError:
        raise HeaderError(f"not a {what} in bytes: {quoted(text[:_MOST_SHOWN])}") from None
