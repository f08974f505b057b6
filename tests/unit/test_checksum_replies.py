"""Replies to CKSM in the forms in which servers write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpx.checksum import digest_in


@pytest.mark.parametrize(
    "text",
    ["00ab12cd", "ab12cd", "AB12CD", "0x00AB12CD", "00ab12cd /d/f", "/d/f 00ab12cd", "ADLER32 00ab12cd f"],
)
def test_the_value_is_read_whatever_its_form(text: str) -> None:
    assert digest_in(text, "adler32", "/d/f") == "00ab12cd"


@pytest.mark.parametrize("text", ["", "done", "abc", "00ab12cd00", "00ab12cd 11ab12cd", "0" * 32])
def test_what_is_no_checksum_is_none(text: str) -> None:
    assert digest_in(text, "adler32", "/d/f") is None


@given(st.integers(0x10000, 2**32 - 1))
def test_leading_zeros_do_not_matter(value: int) -> None:
    assert digest_in(f"{value:x}", "adler32") == digest_in(f"{value:08X}", "adler32") == f"{value:08x}"
