"""What is shown of failures that are alike."""

from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpx.commands.alike import MOST_SHOWN, kind_of, shown_and_left

WHY = "http://host.example does not store /folder/to/{}: 500 said, {} times in turn; see the server's log"


@pytest.mark.parametrize("count", [1, MOST_SHOWN + 1, MOST_SHOWN + 2, 50])
def test_the_first_few_and_a_number(count: int) -> None:
    failures = [(f"/from/{n}", WHY.format(n, 4 + n % 2)) for n in range(count)]
    ((some, left),) = shown_and_left(failures)
    assert some == failures[: len(some)]
    assert (len(some), left) == ((count, 0) if count <= MOST_SHOWN + 1 else (MOST_SHOWN, count - MOST_SHOWN))


def test_others_between_them_are_shown() -> None:
    failures = [(f"/from/{n}", WHY.format(n, 4)) for n in range(10)]
    other = ("/from/other", "/from/other: Permission denied")
    failures.insert(5, other)
    assert [(some, left) for some, left in shown_and_left(failures)] == [(failures[:3], 7), ([other], 0)]


def test_causes_that_are_not_alike() -> None:
    causes = ["403 Forbidden", "the folder does not exist", "404 Not Found"]
    kinds = {kind_of("/from/a", f"https://h does not store /to/a: {cause}") for cause in causes}
    assert len(kinds) == len(causes)


def test_names_in_folders_are_left_out_with_these() -> None:
    first = kind_of("/from/x/one.tar", "ftp://h/to/x/one.tar: no room")
    assert first == kind_of("/from/y/two.tar", "ftp://h/to/y/two.tar: no room")


@pytest.mark.parametrize("names", [("ein Bild", "noch eins"), ("é", "ü?"), ("a b/c d e", "a b/100%")])
def test_names_with_blanks_and_names_as_urls_have_them(names: tuple[str, str]) -> None:
    for cause in ("cannot write /to/{}: no folder", "https://h does not store /to/.{}.mpx-1.part: 403"):
        plain = {kind_of(f"/from/{name}", cause.format(name)) for name in names}
        encoded = {kind_of(f"/from/{name}", cause.format(quote(name))) for name in names}
        assert len(plain) == len(encoded) == 1


@given(st.lists(st.tuples(st.text(min_size=1), st.text()), max_size=30))
def test_each_is_shown_or_counted(failures: list[tuple[str, str]]) -> None:
    found = list(shown_and_left(failures))
    shown = [each for some, _ in found for each in some]
    assert len(shown) + sum(left for _, left in found) == len(failures)
    assert all(each in failures for each in shown)
    assert all(left != 1 for _, left in found)
