"""Several servers behind one name, each of which makes ETags of its own for the same content."""

import itertools
from collections.abc import Callable
from pathlib import Path

import pytest
from web.lying import LARGE, NAME, SMALL, copied, down, exact
from web.scripted_http import Answer, Exchange, Script, Scripted, ScriptedHttp

from mpx.endpoints.web.fetch import FIRST_PIECE

Which = Callable[[Exchange], int]  # of the replicas answers a request


def replicas(which: Which) -> Script:
    def answers(exchange: Exchange) -> Answer:
        answer = exchange.usual()
        return answer.having(ETag=f'"inode-{which(exchange)}"') if answer.status < 300 else answer

    return dict.fromkeys(("GET", "HEAD"), answers)


def dated_replicas(which: Which, *, tag: str = '"of the content"') -> Script:
    """Each has stored the file at a time of its own."""

    def answers(exchange: Exchange) -> Answer:
        answer = exchange.usual()
        modified = f"Sun, 06 Nov 1994 08:49:{which(exchange):02} GMT"
        return answer.having(ETag=tag, Last_Modified=modified) if answer.status < 300 else answer

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


@pytest.mark.parametrize("streams", [1, 4])
@pytest.mark.parametrize("balanced", [by_request, by_connection])
@pytest.mark.parametrize("content", [SMALL, LARGE], ids=["small", "large"])
def test_replicas_with_times_of_their_own(
    content: bytes, balanced: Callable[[int], Which], streams: int, tmp_path: Path
) -> None:
    with ScriptedHttp(dated_replicas(balanced(2)), {NAME: content}, is_dav=False) as server:
        outcome = down(server, tmp_path, streams=streams, retries=0)
        assert outcome.code == 0, outcome
        assert exact(server, tmp_path)


def test_times_of_their_own_without_tags(tmp_path: Path) -> None:
    """One of them may have another content of the same size."""
    with ScriptedHttp(dated_replicas(by_request(2), tag=""), {NAME: LARGE}, is_dav=False) as server:
        outcome = down(server, tmp_path, streams=2, retries=0)
    assert outcome.code == 8, outcome


def test_a_time_that_does_not_come_back_is_that_of_another_content(tmp_path: Path) -> None:
    """Its size and its tag are the same, as tags of inodes are where a file is written over."""
    numbers, script = itertools.count(), dated_replicas(lambda _: int(next(numbers) >= 2))
    with ScriptedHttp(script, {NAME: LARGE}, is_dav=False) as server:
        outcome = down(server, tmp_path, streams=4, retries=0)
    assert outcome.code == 8, outcome
    assert "changed while it was copied" in outcome.text


def test_a_whole_file_that_was_cut_off_comes_from_another_one(tmp_path: Path) -> None:
    """It is asked for once more, from its first byte."""
    script, cuts = replicas(by_request(2)), itertools.count()

    def cut_off(exchange: Exchange) -> Answer | None:
        answer = script["GET"](exchange)
        if exchange.asked.range or answer is None or next(cuts) > 1:
            return answer
        exchange.reset(answer.packed()[:-FIRST_PIECE])
        return None

    with ScriptedHttp({**script, "GET": cut_off}, {NAME: LARGE}, is_dav=False) as server:
        outcome = down(server, tmp_path, streams=2, retries=3)
        assert outcome.code == 0, outcome
        assert exact(server, tmp_path)
        assert next(cuts) > 1


@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("content", [SMALL, LARGE], ids=["small", "large"])
def test_relays_from_replicas(content: bytes, count: int) -> None:
    """The destination stores whole files: each is asked for in one piece, of one of them."""
    script, cuts = replicas(by_request(count)), itertools.count()

    def cut_off(exchange: Exchange) -> Answer | None:
        answer = script["GET"](exchange)
        if exchange.asked.range or answer is None or next(cuts) > 1:
            return answer
        exchange.reset(answer.packed()[:-1000])
        return None

    with (
        ScriptedHttp({**script, "GET": cut_off}, {NAME: content}, is_dav=False) as source,
        ScriptedHttp({}, {"/folder/other": b""}) as destination,
    ):
        outcome = copied(f"{source.origin}{NAME}", f"{destination.dav}{NAME}", retries=4)
        assert outcome.code == 0, outcome
        assert destination.files[NAME] == content


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
@pytest.mark.parametrize(("start", "streams"), [(0, 1), (FIRST_PIECE, 2)], ids=["first", "later"])
def test_a_replica_that_does_not_have_the_file_yet(
    start: int, streams: int, status: int, tmp_path: Path
) -> None:
    """Others have it, and are asked for the range that it was to send; also for the first one."""
    numbers = itertools.count()

    def lacks(exchange: Exchange) -> Answer:
        part = exchange.asked.range or (0, len(LARGE))
        return Answer(status) if part[0] <= start < part[1] and next(numbers) < 2 else exchange.usual()

    with ScriptedHttp({"GET": lacks}, {NAME: LARGE}, is_dav=False) as server:
        outcome = down(server, tmp_path, streams=streams, retries=0)
        assert outcome.code == 0, outcome
        assert exact(server, tmp_path)
    assert next(numbers) > 2


@pytest.mark.parametrize("lacking", [0, 1])
def test_each_other_connection_leads_to_one_that_does_not_have_it(lacking: int, tmp_path: Path) -> None:
    which = by_connection(2)

    def lacks(exchange: Exchange) -> Answer:
        return Answer(404) if which(exchange) == lacking else exchange.usual()

    with ScriptedHttp({"GET": lacks}, {NAME: LARGE}, is_dav=False) as server:
        outcome = down(server, tmp_path, streams=1, retries=0)
        assert outcome.code == 0, outcome
        assert exact(server, tmp_path)


def test_files_that_are_listed_and_not_there(tmp_path: Path) -> None:
    """However often they are asked for: that keeps no others, and is not taken for a lost connection."""
    files = {f"/folder/{n}": b"content" for n in range(20)}

    def missing(exchange: Exchange) -> Answer:
        return Answer(404) if int(exchange.asked.path.rpartition("/")[2]) % 2 else exchange.usual()

    with ScriptedHttp({"GET": missing}, files) as server:
        outcome = copied(f"{server.dav}/folder", tmp_path / "to", recursive=True)
    assert outcome.code == 10, outcome
    assert "does not exist" in outcome.text
    assert {path.name for path in (tmp_path / "to").iterdir()} == {f"{n}" for n in range(0, 20, 2)}


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
