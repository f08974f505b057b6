"""Forms in which servers offer checksums, are asked for them, and write them."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpx.endpoints.ftp.checksum_forms import XXH3, digest_in, forms
from mpx.engine.checksum import DIGITS
from mpx.engine.endpoint import Part

PART = Part("/d/f", 0, 3, is_whole=True)
MD5 = "900150983cd24fb0d6963f7d28e17f72"


@pytest.mark.parametrize(
    "text",
    [
        "00ab12cd", "ab12cd", "AB12CD", "0x00AB12CD", "00ab12cd /d/f", "/d/f 00ab12cd", "ADLER32 00ab12cd f",
        "Adler-32 = 00AB12CD", '"/d/f" 00ab12cd', "ADLER32 0-3 00ab12cd /d/f", "0-2 ab12cd f",
    ],
)  # fmt: skip
def test_the_value_is_read_whatever_its_form(text: str) -> None:
    assert digest_in([text], "adler32", PART) == "00ab12cd"


@pytest.mark.parametrize(
    "text",
    [
        "", "done", "abc", "00ab12cd00", "00ab12cd 11ab12cd", "0" * 32, "MD5 00ab12cd", "CRC32 00ab12cd",
        "0-4 00ab12cd", "1-3 00ab12cd", "not 00ab12cz", "213", "-", "0x", "99999999999",
    ],
)  # fmt: skip
def test_what_is_no_checksum_is_none(text: str) -> None:
    assert digest_in([text], "adler32", PART) is None


@pytest.mark.parametrize(
    ("lines", "algorithm", "name"),
    [
        (["Computing MD5 digest", MD5.upper()], "md5", "/d/f"),  # ProFTPD XMD5
        (["Computing MD5 digest", f"/d/a b {MD5}"], "md5", "/d/a b"),  # ProFTPD MD5
        (["Computing MD5 digest", f"MD5 0-3 {MD5} /d/a b"], "md5", "/d/a b"),  # ProFTPD HASH
        ([f"MD5 (/d/a b) = {MD5}"], "md5", "/d/a b"),
        ([f"{MD5} {MD5}"], "md5", f"/d/{MD5}"),  # a file that is called as its digest
        ([f"{MD5}  f"], "md5", "/d/f"),
    ],
)
def test_forms_of_real_servers(lines: list[str], algorithm: str, name: str) -> None:
    assert digest_in(lines, algorithm, Part(name, 0, 3, is_whole=True)) == MD5


def test_a_name_that_is_the_digest_of_something_else_is_not_taken_for_it() -> None:
    assert digest_in([f"/d/{MD5} failed"], "md5", Part(f"/d/{MD5}", 0, 3)) is None


@given(st.integers(0x10000, 2**32 - 1))
def test_leading_zeros_do_not_matter(value: int) -> None:
    assert digest_in([f"{value:x}"], "adler32", PART) == f"{value:08x}"
    assert digest_in([f"{value:08X}"], "adler32", PART) == f"{value:08x}"


@given(st.lists(st.text(max_size=200), max_size=3), st.sampled_from(list(DIGITS)), st.text(max_size=40))
def test_whatever_a_server_writes_is_a_digest_or_none(lines: list[str], algorithm: str, name: str) -> None:
    told = digest_in(lines, algorithm, Part(name, 0, 3))
    assert told is None or re.fullmatch(f"[0-9a-f]{{{DIGITS[algorithm]}}}|[0-9]{{9,10}}", told)


FEATURES = {
    "a Globus server": {"CKSM": "MD5:10;ADLER32:10;SHA1:10;SHA256:11;SHA512:12;"},
    "ProFTPD": {
        "HASH": "CRC32;MD5;SHA-1*;SHA-256;SHA-512;", "MD5": "", "XCRC": "", "XMD5": "", "XSHA": "",
        "XSHA1": "", "XSHA256": "", "XSHA512": "",
    },
    "dCache": {"CKSUM": "ADLER32,MD5,MD4,SHA-1,SHA-256,SHA-512"},
    "mpx serve": {"CKSM": f"{XXH3}:10;MD5:10;"},
    "one that names none": {"CKSM": ""},
    "one without": {"SIZE": ""},
}  # fmt: skip


def questions(server: str, algorithm: str, part: Part = PART) -> list[bytes]:
    return [form.question(part) for form in forms(FEATURES[server], algorithm) if form.fits(part)]


@pytest.mark.parametrize(
    ("server", "algorithm", "asked"),
    [
        ("a Globus server", "sha256", [b"CKSM SHA256 0 3 /d/f", b"CKSM SHA256 0 -1 /d/f"]),
        ("a Globus server", "xxh3", []),
        ("ProFTPD", "sha256", [b"HASH /d/f", b"XSHA256 /d/f"]),
        ("ProFTPD", "md5", [b"HASH /d/f", b"XMD5 /d/f", b"MD5 /d/f"]),
        ("ProFTPD", "adler32", []),
        ("dCache", "adler32", [b"CKSM ADLER32 0 -1 /d/f"]),
        ("dCache", "sha256", [b"CKSM SHA-256 0 -1 /d/f"]),
        ("dCache", "xxh3", []),
        ("mpx serve", "xxh3", [b"CKSM MPX-XXH3 0 3 /d/f", b"CKSM MPX-XXH3 0 -1 /d/f"]),
        ("one that names none", "md5", [b"CKSM MD5 0 3 /d/f", b"CKSM MD5 0 -1 /d/f"]),
        ("one that names none", "xxh3", []),
        ("one without", "md5", []),
    ],
)
def test_how_a_server_is_asked(server: str, algorithm: str, asked: list[bytes]) -> None:
    assert questions(server, algorithm) == [line + b"\r\n" for line in asked]


def test_only_cksm_knows_parts() -> None:
    part = Part("/d/f", 5, 9)
    assert questions("ProFTPD", "md5", part) == questions("dCache", "md5", part) == []
    assert questions("a Globus server", "md5", part) == [b"CKSM MD5 5 4 /d/f\r\n"]


def test_a_name_with_blanks_is_quoted_where_it_would_be_cut() -> None:
    part = Part("/d/a b", 0, 3, is_whole=True)
    assert questions("ProFTPD", "md5", part) == [
        b"HASH /d/a b\r\n", b'XMD5 "/d/a b"\r\n', b"MD5 /d/a b\r\n",
    ]  # fmt: skip
