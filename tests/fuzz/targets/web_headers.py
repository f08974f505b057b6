"""Values of HTTP headers, one a line, each read as all of them; a redirect starts from the last short one."""

from mpx.endpoints.web.dates import iso_date
from mpx.endpoints.web.headers import (
    MOST_RETRY_AFTER_S,
    HeaderError,
    content_length,
    content_range,
    digests,
    etag,
    requests_left,
    retry_after,
)
from mpx.endpoints.web.redirects import redirect_target
from mpx.engine.checksum import DIGITS

SEEDS = [
    b"1234\n42, 42\n0\n9223372036854775807",
    b"bytes 0-99/1234\nbytes 5-5/*\nbytes */1234",
    b"120\nSun, 06 Nov 1994 08:49:37 GMT\nSunday, 06-Nov-94 08:49:37 GMT\nSun Nov  6 08:49:37 1994",
    b"2024-01-02T03:04:05.6Z\n1994-11-06 10:49:37+0200",
    b"adler32=3da0195,md5=CY9rzUYh03PK3k6DJie09g==,SHA-256=:n4bQgYhMfWWaL+qgxVrQFaO/TxsrC4Is0V1sFbDwCgg=:;p=1",
    b"SHA1:a94a8fe5ccb19ba61c4c0873d391e987982fbbd3 MD5:098f6bcd4621d373cade4e832627b4f6 ADLER32:45d01c1",
    b"timeout=5, max=99\nmax=0",
    b'"5f-1"\nW/"5f"\n5f-1',
    b"http://a/b/c/d;p?q\n../g?y#s\n//h:8443/x\ndavs://[fd00::1]/a b\n/caf\xc3\xa9%zz\n?x",
]
ALLOWED = ()
_NOW_S = 1_700_000_000.0
_LONGEST_SIZE = 1 << 63
_LONGEST_BASE = 256  # characters; each line is resolved against it


def parse(data: bytes) -> None:
    """Read each line as `http.client` has values."""
    base_url = "https://h.example/f/x"
    for line in data.decode("latin-1").split("\n"):
        _lengths(line)
        delay_s = retry_after(line, _NOW_S)
        assert delay_s is None or 0 <= delay_s <= MOST_RETRY_AFTER_S
        assert (requests_left(line) or 0) >= 0
        iso_date(line)
        etag(line)
        for name, value in digests(line).items():
            assert len(value) == DIGITS[name] and not set(value) - {*"0123456789abcdef"}
        try:
            target = redirect_target(line, base_url)
        except HeaderError:
            continue
        assert target.startswith(("http://", "https://")) and target.isascii() and target.isprintable()
        assert redirect_target(target, "http://other/") == target
        if len(target) <= _LONGEST_BASE:
            base_url = target


def _lengths(line: str) -> None:
    try:
        assert 0 <= (content_length([line]) or 0) < _LONGEST_SIZE
    except HeaderError as error:
        assert len(str(error)) < 1000
    try:
        start, end, size = content_range(line)
    except HeaderError:
        return
    assert 0 <= start < end and (size is None or end <= size)
