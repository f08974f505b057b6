"""Answers of 500: for good, as of a server whose disk is full, they are a refusal; for now they are none."""

import threading
from pathlib import Path

import pytest
from web.lying import NAME, SMALL, copied, down, exact, first, up
from web.scripted_http import Answer, Exchange, Scripted, ScriptedHttp

import mpx
from mpx.endpoints.web.failing import FEW_TRIES, TRIES

MANY_TRIES = 10  # as --retries has it
MOST_PUTS = TRIES + 3  # within the time that it has to last
LOG = "times in turn; see the server's log"


def broken(name: str = "") -> Scripted:
    """Answer 500 to all about files of this name."""
    return lambda exchange: Answer(500, ends=True) if name in exchange.asked.path else exchange.usual()


def test_a_file_that_cannot_be_stored(tmp_path: Path) -> None:
    (tmp_path / "src").write_bytes(SMALL)
    with ScriptedHttp({"PUT": broken()}, {"/folder/other": b""}) as server:
        outcome = up(server, tmp_path / "src", retries=MANY_TRIES)
        assert TRIES <= len(server.asked("PUT")) <= MOST_PUTS
    assert outcome.code == 4, outcome
    assert f"{LOG}, and whether it has room and may write there" in outcome.text


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with ScriptedHttp({"GET": broken()}, {NAME: SMALL}) as server:
        outcome = down(server, tmp_path, retries=MANY_TRIES, streams=1)
    assert outcome.code == 3, outcome
    assert LOG in outcome.text and "room" not in outcome.text


def test_failures_with_others_between_them_are_no_refusals(tmp_path: Path) -> None:
    statuses = iter([500, 500, 500, 502, 500, 500])

    def put(exchange: Exchange) -> Answer | None:
        failed = next(statuses, None)
        return Answer(failed, ends=True) if failed else exchange.usual()

    (tmp_path / "src").write_bytes(SMALL)
    with ScriptedHttp({"PUT": put}, {"/folder/other": b""}) as server:
        assert up(server, tmp_path / "src", retries=MANY_TRIES, streams=1).code == 0
        assert server.files[NAME] == SMALL


@pytest.mark.parametrize("method", ["GET", "PUT"])
def test_failures_that_pass(method: str, tmp_path: Path) -> None:
    script = {method: first(TRIES - 1, broken())}
    (tmp_path / "src").write_bytes(SMALL)
    with ScriptedHttp(script, {NAME: SMALL} if method == "GET" else {"/folder/other": b""}) as server:
        if method == "GET":
            outcome = down(server, tmp_path, retries=MANY_TRIES, streams=1)
            assert exact(server, tmp_path)
        else:
            outcome = up(server, tmp_path / "src", retries=MANY_TRIES, streams=1)
        assert outcome.code == 0, outcome


def test_other_files_go_on(tmp_path: Path) -> None:
    names = {"broken", *map(str, range(11))}
    (tmp_path / "from").mkdir()
    for name in names:
        (tmp_path / "from" / name).write_bytes(SMALL)
    with ScriptedHttp({"PUT": broken("broken")}, {"/folder/other": b""}) as server:
        there = f"{server.dav}/folder/to"
        outcome = copied(tmp_path / "from", there, recursive=True, retries=MANY_TRIES, streams=3)
        stored = {name for name in server.files if name.startswith("/folder/to/")}
    assert outcome.code == 10, outcome
    assert stored == {f"/folder/to/{name}" for name in names - {"broken"}}


def test_a_full_disk_is_not_tried_at_length_for_each_file(tmp_path: Path) -> None:
    count, streams = 40, 4
    (tmp_path / "from").mkdir()
    for number in range(count):
        (tmp_path / f"from/{number}").write_bytes(SMALL)
    with ScriptedHttp({"PUT": broken()}, {"/folder/other": b""}) as server:
        there = f"{server.dav}/folder/to"
        outcome = copied(tmp_path / "from", there, recursive=True, retries=MANY_TRIES, streams=streams)
        puts = len(server.asked("PUT"))
    assert outcome.code == 10, outcome
    assert puts <= streams * MOST_PUTS + count * (FEW_TRIES + 1)


def test_progress_says_what_the_server_answers(tmp_path: Path) -> None:
    """While it is asked again, and nothing arrives."""
    (tmp_path / "src").write_bytes(SMALL)
    was_said = threading.Event()

    def put(exchange: Exchange) -> Answer | None:
        return exchange.usual() if was_said.is_set() else Answer(500, ends=True)

    def look(progress: mpx.Progress) -> None:
        if "; the server answers 500; trying again, attempt " in progress.outage:
            was_said.set()

    with ScriptedHttp({"PUT": put}, {"/folder/other": b""}) as server:
        mpx.copy(str(tmp_path / "src"), f"{server.dav}{NAME}", mpx.CopyOptions(), on_progress=look)
    assert was_said.is_set()
