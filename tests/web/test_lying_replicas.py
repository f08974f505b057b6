"""Several servers behind one name, each of which makes ETags of its own for the same content."""

import itertools
from collections.abc import Callable
from pathlib import Path

import pytest
from web.lying import LARGE, NAME, SMALL, copied, down, exact
from web.scripted_http import Answer, Exchange, Script, Scripted, ScriptedHttp

Which = Callable[[Exchange], int]  # of the replicas answers a request


def replicas(which: Which) -> Script:
    def answers(exchange: Exchange) -> Answer:
        answer = exchange.usual()
        return answer.having(ETag=f'"inode-{which(exchange)}"') if answer.status < 300 else answer

    return dict.fromkeys(("GET", "HEAD"), answers)


def by_request(count: int) -> Which:
    numbers = itertools.count()
    return lambda _: next(numbers) % count


def by_connection(count: int) -> Which:
    return lambda exchange: exchange.asked.connection % count


@pytest.mark.parametrize("streams", [1, 4])
@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("balanced", [by_request, by_connection])
@pytest.mark.parametrize("content", [SMALL, LARGE], ids=["small", "large"])
def test_replicas_with_tags_of_their_own(
    content: bytes, balanced: Callable[[int], Which], count: int, streams: int, tmp_path: Path
) -> None:
    with ScriptedHttp(replicas(balanced(count)), {NAME: content}, is_dav=False) as server:
        outcome = down(server, tmp_path, streams=streams, retries=0)
        assert outcome.code == 0, outcome
        assert exact(server, tmp_path)


def test_files_of_replicas(tmp_path: Path) -> None:
    files = {f"/folder/{n}": bytes([n]) * 100_000 for n in range(20)}
    with ScriptedHttp(replicas(by_request(2)), files, is_dav=False) as server:
        for name, content in files.items():
            to = tmp_path / name.rpartition("/")[2]
            assert copied(f"{server.origin}{name}", to, retries=0).code == 0
            assert to.read_bytes() == content


@pytest.mark.parametrize("content", [SMALL, LARGE], ids=["small", "large"])
def test_a_content_that_does_not_come_back_was_replaced(content: bytes, tmp_path: Path) -> None:
    """Its size is the same, and so is its time."""
    numbers = itertools.count()

    def replaced(exchange: Exchange) -> Answer:
        if next(numbers) == 2:
            exchange.server.files[NAME] = bytes(len(content))
        return exchange.usual()

    script: dict[str, Scripted] = {"GET": replaced, "HEAD": replaced}
    with ScriptedHttp(script, {NAME: content}, is_dav=False) as server:
        outcome = down(server, tmp_path, streams=4, retries=0)
    assert outcome.code == 8, outcome
    assert "changed while it was copied" in outcome.text


@pytest.mark.parametrize("status", [404, 410])
def test_a_replica_that_does_not_have_the_file_yet(status: int, tmp_path: Path) -> None:
    """Some of it has come from others, and so does the rest."""
    numbers = itertools.count()

    def lacks(exchange: Exchange) -> Answer:
        return Answer(status) if next(numbers) in (3, 5) else exchange.usual()

    with ScriptedHttp({"GET": lacks}, {NAME: LARGE}, is_dav=False) as server:
        outcome = down(server, tmp_path, streams=2, retries=3)
        assert outcome.code == 0, outcome
        assert exact(server, tmp_path)


def test_a_file_that_is_removed_on_the_way(tmp_path: Path) -> None:
    """It is asked about once, and then missing."""
    numbers = itertools.count()

    def removed(exchange: Exchange) -> Answer:
        if next(numbers) == 3:
            exchange.server.files.clear()
        return exchange.usual()

    with ScriptedHttp({"GET": removed}, {NAME: LARGE}, is_dav=False) as server:
        outcome = down(server, tmp_path, streams=2, retries=10)
    assert outcome.code == 3, outcome
    assert "does not exist" in outcome.text
