"""Answers to COPY between two servers: markers add up, and nothing but the last line decides."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpx.endpoints.web.tpc_answer import LONGEST_LINE, MOST_STRIPES, TpcAnswer

SIZES = st.integers(0, 2**63 - 1)
MARKER = "Perf Marker\n    Timestamp: 1795938360\n    Stripe Index: {}\n    Stripe Bytes Transferred: {}\n"
END = "    Total Stripe Count: 1\n    RemoteConnections: tcp:127.0.0.1:61691\nEnd\n"


def marker(stripe: int, moved: int) -> bytes:
    return (MARKER.format(stripe, moved) + END).encode()


def read(*data: bytes) -> TpcAnswer:
    answer = TpcAnswer()
    for each in data:
        answer.feed(each)
    answer.close()
    return answer


def test_a_copy_as_xrootd_tells_of_it() -> None:
    answer = TpcAnswer()
    answer.feed(marker(0, 7))
    assert (answer.told_bytes, answer.is_success, answer.is_tpc) == (7, False, True)
    answer.feed(marker(0, 31) + b"success: Cre")
    assert answer.told_bytes == 31
    answer.close()
    assert answer.is_success


@pytest.mark.parametrize(
    ("end", "is_success"),
    [
        (b"success: Created", True),
        (b"success\r\n\r\n", True),
        (b"SUCCESS: created\n", True),
        (b"failure: broken", False),
        (b"success: Created\nfailure: broken", False),
        (b"failure: broken\nsuccess: Created", True),
        (b"success: Created\n" + marker(0, 9), False),
        (b"successful", False),
        (b"no success: Created", False),
        (b"", False),
    ],
)
def test_the_last_line_decides(end: bytes, is_success: bool) -> None:
    assert read(marker(0, 5), end).is_success is is_success


@pytest.mark.parametrize(
    ("text", "reason", "status"),
    [
        ('failure: Remote side failed with status code 403; error message: "x"', None, 403),
        ("failure: rejected GET: 404 Not Found", None, 404),
        ("failure: Couldn't connect to port 443", "Couldn't connect to port 443", None),
        ("Failure : no", "no", None),
        ("aborted", "aborted", None),
        ("success: status code 403", None, None),
        (
            "failure: rejected GET: 403 No\n<p>\n\nResponse: 500\n",
            "rejected GET: 403 No <p> Response: 500",
            403,
        ),
        ("failure:\r\n status code 404\r\n", "status code 404", 404),
        ("failure: one\nfailure: two\nthree", "two three", None),
        ("failure: status code 403\nsuccess: Created\nbye", "bye", None),
        (f"failure: status code 403\n{marker(0, 9).decode()}bye", "bye", None),
    ],
)
def test_why_it_failed(text: str, reason: str | None, status: int | None) -> None:
    answer = read(text.encode())
    assert answer.failed_status == status
    if reason:
        assert answer.failure == reason


def test_what_is_missing_or_odd_tells_nothing() -> None:
    assert read(b"\n \r\n").failure == ""
    assert not read(b"<p>Created: Stripe Index</p>\n").is_tpc
    assert read(b"failure: no").is_tpc
    assert read(marker(0, 5)).failure == read(marker(0, 5)[:-5]).failure == ""
    assert read(marker(0, 5)[:-5], b"\nfailure: no").failure == "no"
    for odd in ("-5", "x", "", "9" * 40, "5 bytes", "\u0665"):
        assert read(b"Stripe Bytes Transferred: " + odd.encode()).told_bytes == 0


def test_what_comes_is_bounded() -> None:
    answer = read(*(marker(i, 1) for i in range(2 * MOST_STRIPES)))
    assert answer.told_bytes == MOST_STRIPES
    for end in (b"", b"\n"):
        assert len(read(b"failure: ", (b"x" * 1000 + end) * 100).failure) < LONGEST_LINE


@given(st.lists(st.tuples(st.integers(0, 5), SIZES), max_size=20))
def test_stripes_add_up_and_never_fall(told: list[tuple[int, int]]) -> None:
    answer, most, before = TpcAnswer(), dict.fromkeys(range(6), 0), 0
    for stripe, moved in told:
        answer.feed(marker(stripe, moved))
        most[stripe] = max(most[stripe], moved)
        assert answer.told_bytes == sum(most.values()) >= before
        before = answer.told_bytes


@given(st.binary(max_size=200), st.lists(st.integers(0, 400), max_size=10))
def test_how_it_is_cut_does_not_matter(noise: bytes, cuts: list[int]) -> None:
    data = marker(1, 5) + noise + b"\n" + marker(2, 6) + noise
    edges = sorted({0, len(data), *(min(cut, len(data)) for cut in cuts)})
    pieces = [data[start:end] for start, end in pairwise(edges)]
    whole, cut = read(data), read(*pieces)
    for name in ("told_bytes", "is_success", "failure", "failed_status", "is_tpc"):
        assert getattr(whole, name) == getattr(cut, name)
