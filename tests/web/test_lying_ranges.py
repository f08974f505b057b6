"""Servers that send another part than was asked for, or another file: never a mixture of two."""

import itertools
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from web.lying import LARGE, NAME, SMALL, copied, down, exact
from web.scripted_http import Answer, Exchange, ScriptedHttp

SIZES = pytest.mark.parametrize("content", [SMALL, LARGE], ids=["small", "large"])


def whole(exchange: Exchange) -> Answer:
    return Answer(200, {}, exchange.server.files[NAME])


@SIZES
def test_ranges_are_ignored(content: bytes, tmp_path: Path) -> None:
    with ScriptedHttp({"GET": whole}, {NAME: content}) as server:
        assert down(server, tmp_path, streams=4).code == 0
        assert exact(server, tmp_path)
        assert server.asked("GET")[-1].range is None  # whole, when it was found out


def test_ranges_are_known_not_to_work(tmp_path: Path) -> None:
    """Who says so is asked for whole files by one stream each."""

    def says(exchange: Exchange) -> Answer:
        return replace(whole(exchange), headers={"Accept-Ranges": "none"})

    with ScriptedHttp({"GET": says, "HEAD": says}, {NAME: LARGE}, is_dav=False) as server:
        assert down(server, tmp_path, streams=4).code == 0
        assert exact(server, tmp_path)
        assert len([asked for asked in server.asked("GET") if asked.range is None]) == 1


def test_parts_of_a_server_that_says_it_sends_none(tmp_path: Path) -> None:
    """Of whole files nothing is begun by the first answer, even where that brings a part."""

    def says(exchange: Exchange) -> Answer:
        return exchange.usual().having(Accept_Ranges="none")

    with ScriptedHttp({"GET": says}, {NAME: LARGE}, is_dav=False) as server:
        assert down(server, tmp_path, streams=2).code == 0
        assert exact(server, tmp_path)


@SIZES
def test_another_part(content: bytes, tmp_path: Path) -> None:
    """A part that was not asked for is not used, and the server not asked for parts any more."""

    def other(exchange: Exchange) -> Answer:
        answer = exchange.usual()
        end = 4 + len(answer.body)
        return answer.having(Content_Range=f"bytes 5-{end}/{max(len(content), end + 1)}")

    with ScriptedHttp({"GET": other}, {NAME: content}) as server:
        outcome = down(server, tmp_path)
        if outcome.code == 0:
            assert exact(server, tmp_path)
        else:
            assert outcome.code == 8


@pytest.mark.parametrize("told", ["", "bytes 0-1/", "bytes 5-1/9", "lines 0-1/2", f"bytes 0-{10**20}/*"])
def test_a_part_that_does_not_say_which(told: str, tmp_path: Path) -> None:
    def unclear(exchange: Exchange) -> Answer:
        return exchange.usual().having(Content_Range=told) if exchange.asked.range else exchange.usual()

    with ScriptedHttp({"GET": unclear}, {NAME: LARGE}) as server:
        assert down(server, tmp_path).code == 0
        assert exact(server, tmp_path)


def test_parts_of_a_file_of_another_size(tmp_path: Path) -> None:
    def other(exchange: Exchange) -> Answer:
        answer, start = exchange.usual(), (exchange.asked.range or (0, 0))[0]
        return answer.having(Content_Range=f"bytes {start}-{start + len(answer.body) - 1}/{len(LARGE) + 1}")

    with ScriptedHttp({"GET": other}, {NAME: LARGE}, is_dav=False) as server:
        outcome = down(server, tmp_path)
        assert outcome.code == 0
        assert exact(server, tmp_path)
    assert any(f"{len(LARGE) + 1}" in note for note in outcome.notes)


@pytest.mark.parametrize(
    ("header", "values"),
    [
        ("ETag", (f'"{number}"' for number in itertools.count())),
        ("Last_Modified", (f"Sun, 06 Nov 1994 08:{m:02}:{s:02} GMT" for m in range(60) for s in range(60))),
    ],
    ids=["ETag", "Last-Modified"],
)
def test_another_file_with_each_part(header: str, values: Iterator[str], tmp_path: Path) -> None:
    def another(exchange: Exchange) -> Answer:
        return exchange.usual().having(**{header: next(values)})

    with ScriptedHttp({"GET": another}, {NAME: LARGE}) as server:
        outcome = down(server, tmp_path)
    assert outcome.code == 8
    assert "changed while it was copied" in outcome.text


@pytest.mark.parametrize("streams", [1, 4])
def test_replaced_on_the_way(streams: int, tmp_path: Path) -> None:
    """After some parts the file is another one, of the same size."""
    other = bytes(len(LARGE))
    numbers = itertools.count()

    def replaced(exchange: Exchange) -> Answer:
        if next(numbers) == 3:
            exchange.server.files[NAME] = other
        return exchange.usual()

    with ScriptedHttp({"GET": replaced}, {NAME: LARGE}) as server:
        outcome = down(server, tmp_path, streams=streams)
    assert outcome.code == 8
    assert "changed while it was copied" in outcome.text


def test_fewer_bytes_than_were_asked_for(tmp_path: Path) -> None:
    """Which a server may send; the rest is asked for again."""

    def fewer(exchange: Exchange) -> Answer:
        answer = exchange.usual()
        if (asked := exchange.asked.range) is None:
            return answer
        body = answer.body[:100_000]
        where = f"bytes {asked[0]}-{asked[0] + len(body) - 1}/{len(LARGE)}"
        return replace(answer.having(Content_Range=where), body=body)

    with ScriptedHttp({"GET": fewer}, {NAME: LARGE}) as server:
        assert down(server, tmp_path, retries=0).code == 0
        assert exact(server, tmp_path)


class Swapped:
    """Sends the half of its first answer, and answers what is asked for meanwhile in the wrong order."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.is_done = False

    def __call__(self, exchange: Exchange) -> Answer | None:
        answer = exchange.usual()
        with self._lock:
            if self.is_done:
                return answer
            packed = answer.packed()
            exchange.say(packed[: len(packed) // 2])
            behind = [each for each in (exchange.next_request(), exchange.next_request()) if each]
            self.is_done = len(behind) == 2
        exchange.say(packed[len(packed) // 2 :])
        for each in reversed(behind):
            exchange.say(each.usual().packed(is_head=each.asked.method == "HEAD"))
        return None


def test_parts_in_the_wrong_order(tmp_path: Path) -> None:
    swapped = Swapped()
    with ScriptedHttp({"GET": swapped}, {NAME: LARGE}) as server:
        outcome = down(server, tmp_path, streams=1)
        assert outcome.code == 0
        assert exact(server, tmp_path)
        assert all(asked.range for asked in server.asked("GET"))  # parts are as good as before, one by one
    assert swapped.is_done


def test_whole_files_in_the_wrong_order(tmp_path: Path) -> None:
    """Of the same size: their tags tell which is which."""
    files = {f"/folder/{n}": bytes([n]) * 200_000 for n in range(8)}
    swapped = Swapped()
    with ScriptedHttp({"GET": swapped}, files) as server:
        outcome = copied(f"{server.dav}/folder", tmp_path / "to", recursive=True, streams=1)
        assert outcome.code == 0, outcome
        for path in (tmp_path / "to").iterdir():
            assert path.read_bytes() == files[f"/folder/{path.name}"]
    assert swapped.is_done


def test_whole_files_in_the_wrong_order_that_are_passed_on() -> None:
    files = {f"/folder/{n}": bytes([n]) * 200_000 for n in range(8)}
    swapped = Swapped()
    with ScriptedHttp({"GET": swapped}, files) as server, ScriptedHttp() as other:
        other.folders.add("/to")
        outcome = copied(f"{server.dav}/folder", f"{other.dav}/to", recursive=True, streams=1)
        assert outcome.code == 0, outcome
        assert {path.replace("/to", "/folder"): content for path, content in other.files.items()} == files
    assert swapped.is_done


class Dripping:
    """Answers the first question for a part with less than that, and sends most of it byte by byte."""

    def __init__(self) -> None:
        self._numbers = itertools.count()
        self.left_bytes = 600_000  # more than is received in vain

    def __call__(self, exchange: Exchange) -> Answer | None:
        answer, asked = exchange.usual(), exchange.asked.range
        if asked is None or next(self._numbers):
            return answer
        body = answer.body[: self.left_bytes + 100_000]
        where = f"bytes {asked[0]}-{asked[0] + len(body) - 1}/{len(LARGE)}"
        packed = replace(answer.having(Content_Range=where), body=body).packed()
        exchange.say(packed[: -self.left_bytes])
        for i in range(len(packed) - self.left_bytes, len(packed)):
            exchange.say(packed[i : i + 1])  # until the client has gone
            exchange.server.over.wait(0.01)
        return None


def test_less_than_was_asked_for_that_others_bring(tmp_path: Path) -> None:
    """What the server has left out is brought, too, once nobody waits for its answer any more."""
    with ScriptedHttp({"GET": Dripping()}, {NAME: LARGE}) as server:
        assert down(server, tmp_path, streams=2, retries=0).code == 0
        assert exact(server, tmp_path)
