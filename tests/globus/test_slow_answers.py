"""Answers that come byte by byte, or do not end: they are not waited for, nor kept in memory."""

import threading
from collections.abc import Callable, Iterator
from typing import BinaryIO

import pytest
from globus.conftest import Collections
from globus.fake_globus import CLIENT_ID, Answer
from mpx_command import mpx, refused
from sites import make

import mpx as api
from mpx.endpoints.globus import bounded_transport

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


@pytest.fixture
def drip() -> Iterator[Callable[[bytes], Answer]]:
    """An answer that begins so, and goes on with a byte now and then, until the test is over."""
    is_over = threading.Event()

    def write(out: BinaryIO, head: bytes) -> None:
        out.write(head)
        while not is_over.wait(0.2):
            out.write(b" ")
            out.flush()

    yield lambda head: Answer(200, writes=lambda out: write(out, head))
    is_over.set()


@pytest.mark.parametrize("head", [HEAD + b"\r\n", HEAD + b"X-More: "], ids=["body", "head"])
@pytest.mark.parametrize("words", ["/stat", "/v2/oauth2/token"])
def test_an_answer_byte_by_byte(
    collections: Collections, drip: Callable[[bytes], Answer], head: bytes, words: str
) -> None:
    make(collections.one / "x", 10)
    collections.fake.lie(words, drip(head), times=9)
    options = "--timeout", "1s", "--retries", 0
    ended = mpx("copy", *options, f"{collections.one_url}x", f"{collections.other_url}x")
    refused(ended, 7, "--timeout waits longer")


@pytest.mark.parametrize("head", [HEAD + b"\r\n", HEAD + b"X-More: "], ids=["body", "head"])
def test_nobody_reads_on_what_is_not_waited_for(
    collections: Collections, drip: Callable[[bytes], Answer], head: bytes, eventually: Callable[..., None]
) -> None:
    make(collections.one / "x", 10)
    collections.fake.lie("/stat", drip(head), times=9)
    with pytest.raises(api.MpxError) as ended:
        api.copy(
            f"{collections.one_url}x",
            f"{collections.other_url}x",
            api.CopyOptions(timeout_s=1, retries=0),
        )
    assert ended.value.exit_code == 7
    eventually(lambda: all(each.name != "mpx-globus-question" for each in threading.enumerate()))


def test_an_answer_without_an_end(collections: Collections, monkeypatch: pytest.MonkeyPatch) -> None:
    make(collections.one / "x", 10)
    monkeypatch.setattr(bounded_transport, "LARGEST_BYTES", 3 << 20)
    written = 0

    def write(out: BinaryIO) -> None:
        nonlocal written
        out.write(HEAD + b"\r\n")
        for _ in range(1000):
            out.write(b" " * (1 << 20))
            written += 1

    collections.fake.lie("/stat", Answer(200, writes=write), times=9)
    with pytest.raises(api.MpxError, match="longer than 3 MiB") as ended:
        api.copy(f"{collections.one_url}x", f"{collections.other_url}x", api.CopyOptions(retries=0))
    assert ended.value.exit_code == 6 and written < 900


def test_a_login_that_is_answered_without_an_end(service: Collections) -> None:
    def write(out: BinaryIO) -> None:
        out.write(HEAD + b"\r\n")
        for _ in range(1000):
            out.write(b" " * (1 << 20))

    service.fake.lie("/v2/oauth2/token", Answer(200, writes=write), times=9)
    ended = mpx("globus", "login", "--client-id", CLIENT_ID, stdin=b"good-code\n")
    assert ended.code == 6 and "longer than 128 MiB" in ended.err, ended.err


def test_an_answer_that_is_cut_short(collections: Collections) -> None:
    make(collections.one / "x", 10)
    short = Answer(200, writes=lambda out: out.write(HEAD + b"Content-Length: 1000\r\n\r\n{}") and None)
    collections.fake.lie("/submission_id", short)
    ended = mpx("copy", f"{collections.one_url}x", f"{collections.other_url}x")
    assert ended.code == 0, ended.err
    collections.fake.lie("/stat", short, times=9)
    ended = mpx("copy", "--retries", 0, f"{collections.one_url}x", f"{collections.other_url}x")
    refused(ended, 6, "cannot reach Globus to describe")
