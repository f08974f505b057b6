"""Answers of 500 to questions, and in relays: as to GET and PUT, what lasts is a refusal."""

from pathlib import Path

import pytest
from web.lying import NAME, SMALL, copied, first, up
from web.scripted_http import Answer, Exchange, Scripted, ScriptedHttp
from web.test_lasting_failures import LOG, MANY_TRIES, MOST_PUTS, broken

from mpx.endpoints.web.failing import FEW_TRIES, TRIES

REFUSED = {"source": 3, "destination": 4}  # exit codes
# Questions for one attempt at most: with and without replacing what is there, and in each form of a name.
QUESTIONS_EACH = 4


def test_a_name_that_is_not_given(tmp_path: Path) -> None:
    (tmp_path / "src").write_bytes(SMALL)
    with ScriptedHttp({"MOVE": broken()}, {"/folder/other": b""}) as server:
        outcome = up(server, tmp_path / "src", retries=MANY_TRIES)
        assert TRIES <= len(server.asked("MOVE")) <= QUESTIONS_EACH * MOST_PUTS
    assert outcome.code == REFUSED["destination"], outcome
    assert f"{LOG}, and whether it has room and may write there" in outcome.text


def describes_until(method: str) -> dict[str, Scripted]:
    """Describe things only until such a request comes."""

    def describe(exchange: Exchange) -> Answer | None:
        return Answer(500, ends=True) if exchange.server.asked(method) else exchange.usual()

    return dict.fromkeys(("PROPFIND", "HEAD", "OPTIONS"), describe)


def test_a_source_that_describes_nothing_any_more(tmp_path: Path) -> None:
    with ScriptedHttp(describes_until("GET"), {NAME: SMALL}) as server:
        outcome = copied(f"{server.dav}{NAME}", tmp_path / "file", retries=MANY_TRIES)
        assert len(server.heard) <= 2 * QUESTIONS_EACH * MOST_PUTS
    assert outcome.code == REFUSED["source"], outcome
    assert LOG in outcome.text


def test_a_destination_that_describes_nothing_any_more(tmp_path: Path) -> None:
    """It says that it has stored the file, and that it has its name: no more is known."""
    (tmp_path / "src").write_bytes(SMALL)
    with ScriptedHttp(describes_until("PUT"), {"/folder/other": b""}) as server:
        outcome = up(server, tmp_path / "src", retries=MANY_TRIES)
        assert len(server.heard) <= 2 * QUESTIONS_EACH * MOST_PUTS
        assert server.files[NAME] == SMALL
    assert outcome.code == 0, outcome
    assert any("unverified" in note and LOG in note for note in outcome.notes)


def test_a_name_that_is_not_given_for_now(tmp_path: Path) -> None:
    (tmp_path / "src").write_bytes(SMALL)
    with ScriptedHttp({"MOVE": first(TRIES - 1, broken())}, {"/folder/other": b""}) as server:
        assert up(server, tmp_path / "src", retries=MANY_TRIES).code == 0
        assert server.files[NAME] == SMALL


def test_names_that_are_not_given_are_not_tried_at_length_for_each(tmp_path: Path) -> None:
    count = 12
    (tmp_path / "from").mkdir()
    for number in range(count):
        (tmp_path / f"from/{number}").write_bytes(SMALL)
    with ScriptedHttp({"MOVE": broken()}, {"/folder/other": b""}) as server:
        outcome = copied(tmp_path / "from", f"{server.dav}/folder/to", recursive=True, retries=MANY_TRIES)
        moves = len(server.asked("MOVE"))
    assert outcome.code == 10, outcome
    assert moves <= QUESTIONS_EACH * (count * (FEW_TRIES + 2) + MOST_PUTS)


@pytest.mark.parametrize("end", REFUSED)
def test_relays(end: str, tmp_path: Path) -> None:
    method = "GET" if end == "source" else "PUT"
    scripts = {each: {method: broken()} if each == end else {} for each in REFUSED}
    with (
        ScriptedHttp(scripts["source"], {NAME: SMALL}) as source,
        ScriptedHttp(scripts["destination"], {"/folder/other": b""}) as destination,
    ):
        outcome = copied(f"{source.origin}{NAME}", f"{destination.dav}{NAME}", retries=MANY_TRIES)
        broken_one = source if end == "source" else destination
        assert TRIES <= len(broken_one.asked(method)) <= 2 * MOST_PUTS
    assert outcome.code == REFUSED[end], outcome
    assert LOG in outcome.text


def test_relays_of_what_fails_for_now(tmp_path: Path) -> None:
    del tmp_path
    with (
        ScriptedHttp({"GET": first(1, broken())}, {NAME: SMALL}) as source,
        ScriptedHttp({"PUT": first(TRIES - 1, broken())}, {"/folder/other": b""}) as destination,
    ):
        outcome = copied(f"{source.origin}{NAME}", f"{destination.dav}{NAME}", retries=MANY_TRIES)
        assert outcome.code == 0, outcome
        assert destination.files[NAME] == SMALL
