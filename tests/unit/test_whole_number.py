"""Whole numbers as peers write them: ASCII digits and nothing else, in bounds."""

import pytest

from mpx.engine.whole_number import parse_whole, read_size


@pytest.mark.parametrize(
    "text", ["", "-1", "+1", " 1", "1_0", "\u00b2", "\u0663", "9" * 19, "1" * 10_000, "0x1"]
)
def test_what_is_no_whole_number(text: str) -> None:
    with pytest.raises(ValueError, match="not a number"):
        parse_whole(text)


def test_whole_numbers() -> None:
    assert parse_whole("0") == 0
    assert parse_whole("007") == 7
    assert parse_whole(str((1 << 63) - 1)) == (1 << 63) - 1


def test_what_no_file_has_as_its_size() -> None:
    assert read_size("7") == 7
    assert read_size("-7") is None
