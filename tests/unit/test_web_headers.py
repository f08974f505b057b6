"""Values of headers: read as servers write them, and errors where two who read them might differ."""

import base64
import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpx.endpoints.web.headers import (
    MOST_RETRY_AFTER_S,
    HeaderError,
    content_length,
    content_range,
    digests,
    etag,
    login_schemes,
    requests_left,
    retry_after,
)

LIKELY = st.text('0123456789-+/*=:;,. \t"W_bytesmd5sha\u00b2\u0663\0\n', max_size=60)
SIZES = st.integers(0, 2**63 - 2)


# --- lengths ---------------------------------------------------------------------------------------


def test_lengths() -> None:
    assert content_length([]) is None
    assert content_length(["0"]) == 0
    assert content_length([" 42\t"]) == 42
    assert content_length([str(2**63 - 1)]) == 2**63 - 1
    assert content_length(["42", "42, 42"]) == 42  # RFC 9112: repeated by some proxy


@pytest.mark.parametrize(
    "values",
    [
        ["1", "2"], ["1, 2"], ["1,"], ["1", ""], ["1", "01"], [""], [" "], ["+1"], ["-1"], ["1_0"], ["1 0"],
        ["0x1"], ["1.0"], ["\u00b2"], ["\u0663"], ["1\r"], ["\x0b1"], ["1\0"], ["\u00a01"],
        [str(2**63)], ["9" * 10_000],
    ],
)  # fmt: skip
def test_lengths_that_others_may_read_in_another_way(values: list[str]) -> None:
    with pytest.raises(HeaderError, match="length") as refused:
        content_length(values)
    assert len(str(refused.value)) < 500


# --- ranges ----------------------------------------------------------------------------------------


def test_ranges() -> None:
    assert content_range("bytes 0-99/1234") == (0, 100, 1234)
    assert content_range("bytes 5-5/6") == (5, 6, 6)
    assert content_range(" Bytes  0-99/* ") == (0, 100, None)


@given(SIZES, SIZES, st.integers(1, 9))
def test_any_range_is_read_as_it_was_written(one: int, other: int, more: int) -> None:
    start, last = sorted((one, other))
    size = min(last + more, 2**63 - 1)
    assert content_range(f"bytes {start}-{last}/{size}") == (start, last + 1, size)


@pytest.mark.parametrize(
    "text",
    [
        "", "bytes", "bytes 0-99", "bytes 0-99/", "bytes 2-1/9", "bytes 0-9/9", "bytes */9", "bytes -1-2/9",
        "bytes 0-1_0/99", "bytes \u0660-1/9", "items 0-1/9", "byte\u017f 0-1/9", "bytes 0-1/9, 3-4/9",
        f"bytes 0-{2**63}/*", "bytes 0-1/" + "9" * 30, "bytes=0-1/9",
    ],
)  # fmt: skip
def test_what_is_no_range(text: str) -> None:
    with pytest.raises(HeaderError, match="range"):
        content_range(text)


# --- delays ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "delay_s"),
    [
        ("0", 0), (" 120 ", 120), ("00000000120", 120), ("3601", 3600), ("9" * 40, 3600),
        ("Sun, 06 Nov 1994 08:49:37 GMT", 37), ("Sun, 06 Nov 1994 08:48:00 GMT", 0),
        ("Sun, 06 Nov 2094 08:49:37 GMT", 3600),
        ("", None), ("-1", None), ("1.5", None), ("soon", None), ("9" * 41, None), ("\u0663", None),
    ],
)  # fmt: skip
def test_delays(text: str, delay_s: float | None) -> None:
    assert retry_after(text, 784111740.0) == delay_s


@given(LIKELY | st.text(), st.floats(-1e12, 1e12))
def test_no_delay_is_longer_than_an_hour(text: str, now_s: float) -> None:
    delay_s = retry_after(text, now_s)
    assert delay_s is None or 0 <= delay_s <= MOST_RETRY_AFTER_S


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("timeout=5, max=99", 99), ("max=0", 0), ("max=7,timeout=5", 7), ("timeout=5", None), ("", None),
        ("max=", None), ("max=x", None), ("timeout=5, xmax=9", None), ("max=-1", None),
        ("max=12345678901", None),
    ],
)  # fmt: skip
def test_requests_that_are_left(text: str, left: int | None) -> None:
    assert requests_left(text) == left


@given(LIKELY | st.text())
def test_as_many_requests_are_left_as_a_connection_may_take(text: str) -> None:
    left = requests_left(text)
    assert left is None or 0 <= left < 10**9


# --- tags ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ('"5f-1"', ("5f-1", False)), (' W/"5f" ', ("5f", True)), ('w/"5f"', ("5f", True)),
        ('""', ("", False)),
        ('"a, b"', ("a, b", False)), ("5f-1", ("5f-1", False)), ('"\u00e9"', ("\u00e9", False)),
        ("", None), ('"5f', None), ('W/5f"', None), ('"a"b"', None), ('"a\n"', None), ("a b", None),
        ('"a", "b"', None), ('"' + "x" * 5000 + '"', None),
    ],
)  # fmt: skip
def test_tags(text: str, read: tuple[str, bool] | None) -> None:
    assert etag(text) == read


# --- digests ---------------------------------------------------------------------------------------

NEW = {"md5": hashlib.md5, "sha": hashlib.sha1, "sha-256": hashlib.sha256, "sha-512": hashlib.sha512}
OURS = {"md5": "md5", "sha": "sha1", "sha-256": "sha256", "sha-512": "sha512"}


@given(st.binary(max_size=10), st.sampled_from(sorted(NEW)))
def test_digests_in_all_ways_of_writing(data: bytes, name: str) -> None:
    raw = NEW[name](data).digest()
    based, safe = (encode(raw).decode() for encode in (base64.b64encode, base64.urlsafe_b64encode))
    for value in (based, based.rstrip("="), safe, f":{based}:", raw.hex(), raw.hex().upper()):
        assert digests(f"{name}={value}") == {OURS[name]: raw.hex()}, value
        assert digests(f" x=y , {name.upper()}={value};p=1 ,") == {OURS[name]: raw.hex()}


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("adler32=03da0195", {"adler32": "03da0195"}),
        ("ADLER32=3DA0195,crc32=ff", {"adler32": "03da0195", "crc32": "000000ff"}),
        ("adler32=:A9oBlQ==:", {"adler32": "03da0195"}),
        ("SHA1:" + "a" * 40 + " MD5:" + "B" * 32 + " ADLER32:1", {  # ownCloud
            "sha1": "a" * 40, "md5": "b" * 32, "adler32": "00000001"}),
        ("md5=" + "a" * 32 + ",adler32=1", {"md5": "a" * 32, "adler32": "00000001"}),
        ("adler32=1, adler32=00000001", {"adler32": "00000001"}),
        ("adler32=1, adler32=2, adler32=1", {}),  # nobody knows which
        ("crc32c=00000001, xxh3=" + "a" * 32 + ", UNIXsum=30637", {}),
        ("md5=aa, sha-256=:AA==:, adler32=123456789, adler32=, md5", {}),
        ("sha-256=" + "g" * 64 + ", md5=" + "a" * 31, {}),
        ("md5=:" + "a" * 32 + ":", {}),  # marked as base64, and too long for that
        ("", {}),
    ],
)  # fmt: skip
def test_digests(text: str, read: dict[str, str]) -> None:
    assert digests(text) == read


@pytest.mark.parametrize(
    ("values", "offered"),
    [
        (['Digest realm="a, b c", nonce="\\", Basic ", qop=auth, algorithm=MD5'], ["Digest"]),
        (["Negotiate, Basic realm=x"], ["Negotiate", "Basic"]),
        (["Negotiate YWJj==", "NTLM"], ["Negotiate", "NTLM"]),
        (['Bearer error="invalid_token", error_description="x, y z"', "Bearer"], ["Bearer"]),
        ([""], []),
        ([], []),
    ],
)
def test_login_schemes(values: list[str], offered: list[str]) -> None:
    assert login_schemes(values) == offered


# --- anything --------------------------------------------------------------------------------------


@given(LIKELY | st.text())
def test_any_value_is_read_or_refused(text: str) -> None:
    etag(text)
    login_schemes([text])
    for value in digests(text).values():
        assert not set(value) - {*"0123456789abcdef"}
    for read in (lambda each: content_length([each]), content_range):
        try:
            read(text)
        except HeaderError as error:
            assert len(str(error)) < 500
