"""Arguments of commands as `mpx serve` reads them: what is meant, and nothing that breaks a bound."""

import contextlib
import os
import re
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import mpx.serve
from mpx.serve import arguments, listing
from mpx.serve.replies import RefusalReply
from mpx.serve.times import format_time, parse_time

NUMBERS = st.integers(0, 10**arguments.MOST_DIGITS - 1)
NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\r\n\0"), min_size=1)
SEARCHING = re.compile(r"^\s*(import re\b|from re import)", re.MULTILINE)


def test_no_regular_expression_is_let_loose_on_what_clients_send():
    sources = Path(mpx.serve.__file__).parent.glob("*.py")
    assert [source.name for source in sources if SEARCHING.search(source.read_text())] == []


@given(NUMBERS)
def test_numbers(value):
    assert arguments.number(str(value)) == value


@pytest.mark.parametrize(
    "text", ["", "-1", "+1", "1.0", "1e3", " 1", "1_000", "x", "\u0661", "\u00b2", "9" * 19, "9" * 5000]
)
def test_no_numbers(text):
    assert arguments.number(text) is None


@given(st.lists(NUMBERS, min_size=1, max_size=3), NAMES)
def test_numbers_and_a_name(numbers, name):
    line = " ".join([*map(str, numbers), name])
    assert arguments.numbers_and_name(line, len(numbers)) == (numbers, name)


@given(st.text(max_size=60), st.integers(1, 3))
def test_what_has_no_numbers_and_name_is_none(text, count):
    found = arguments.numbers_and_name(text, count)
    assert found is None or " ".join([*map(str, found[0]), found[1]]).endswith(found[1])


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ("Parallelism=4,4,4;", {"parallelism": "4,4,4"}),
        (" Markers=1; Parallelism=2; ", {"markers": "1", "parallelism": "2"}),
        ("a==;", {"a": "="}),
        ("", {}),
        (";;", {}),
        ("nonsense", None),
        ("a=1;b=2", None),
        ("=1;", None),
        ("a" * 30_000, None),
        ("a=1;" * 4000, {"a": "1"}),
    ],
)
def test_options(text, pairs):
    assert arguments.options(text) == pairs


@given(st.lists(st.tuples(NUMBERS, NUMBERS).map(lambda two: (min(two), max(two))), min_size=1))
def test_ranges(ranges):
    assert arguments.ranges(",".join(f"{start}-{end}" for start, end in ranges)) == ranges


@pytest.mark.parametrize(
    "text", ["", "-", "1-", "-1", "2-1", "1-2,", "1-2;3-4", "9" * 5000, f"0-{'9' * 5000}", "-" * 9000]
)
def test_no_ranges(text):
    with pytest.raises(RefusalReply):
        arguments.ranges(text)


@given(st.integers(0, 2**37))
def test_times_are_read_as_they_are_written(seconds):
    assert parse_time(format_time(seconds)) == seconds
    assert parse_time(format_time(seconds) + ".25") == seconds


@given(st.text(max_size=40))
@example("9" * 14)
@example("20200101000000" * 1000)
@example("2020 101 0 0 0")
def test_no_text_breaks_the_reading_of_times(text):
    with contextlib.suppress(RefusalReply):
        parse_time(text)


@pytest.mark.parametrize(
    ("argument", "name"),
    [("-la", ""), ("-la x", "x"), ("-l -a a b", "a b"), ("x -l", "x -l"), ("", ""), ("- " * 9000 + "x", "x")],
)
def test_options_of_ls_are_left_out(argument, name):
    assert arguments.without_ls_options(argument) == name


@pytest.mark.parametrize(
    ("seconds", "written"),
    [(1 << 62, "99991231235959"), (253402300800, "99991231235959"), (-(1 << 62), "10000101000000")],
)
def test_a_time_that_has_no_form_is_the_nearest_that_has(seconds: int, written: str) -> None:
    """One file with such a time would keep its whole folder from being listed."""
    assert format_time(seconds) == written
    found = os.stat_result((0o100644, 1, 1, 1, 0, 0, 3, seconds, seconds, seconds))
    entry = listing.Item("name", found)
    assert f"Modify={written};" in listing.facts_line(entry, listing.FACTS, writable=False)
    assert listing.long_line(entry).endswith(f" {written[:4]} name")


@pytest.mark.parametrize(
    ("text", "expected"),
    [("5", 5.0), ("0", 0.0), ("0.2", 0.2), ("99999.9", 99999.9)]
    + [(text, None) for text in ("", ".", "5.", ".5", "0.25", "1e3", "-1", "+1", "1_0", "123456", "nan")],
)
def test_intervals(text: str, expected: float | None) -> None:
    assert arguments.interval_s(text) == expected
