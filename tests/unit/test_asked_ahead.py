"""Questions that go out with a login, how long their answers stand, and what goes out in one write."""

import pytest

from mpx.endpoints.ftp.asked_ahead import MOST_BYTES, AskedAhead, first_questions
from mpx.endpoints.ftp.sizes import asks_size
from mpx.endpoints.ftp.wire import Reply, command, in_writes

MODE, MLST, SIZE = command("MODE", "E"), command("MLST", "/a"), command("SIZE", "/a")
OK = Reply(200, ("ok",))


def kept() -> AskedAhead:
    ahead = AskedAhead()
    ahead.keep([MODE, MLST, SIZE], [OK, OK, OK])
    return ahead


def test_what_is_asked_first() -> None:
    assert first_questions(["/a", "/a"]) == (MODE, MLST, SIZE)
    assert first_questions([]) == (MODE,)
    assert first_questions(["/a", "/b", "/c"]) == (MODE, MLST, SIZE, command("MLST", "/b"))


@pytest.mark.parametrize("name", ["a", "", "/ä", "/a\nDELE b", "/a\x7f", "/\udcff", "/" + "x" * MOST_BYTES])
def test_names_that_are_not_asked_ahead(name: str) -> None:
    assert first_questions([name, "/a"]) == (MODE, MLST, SIZE)


TELLS_LINKS = {"MLST": "Type*;UNIX.slink*;"}  # so its sizes are trusted
FILE, FOLDER, MISSING = (
    Reply(250, ("of /a", " Type=file; /a", "end")),
    Reply(250, ("of /a", " Type=dir; /a", "end")),
    Reply(550, ("No such file",)),
)


def test_sizes_are_asked_where_they_may_differ_or_cost_nothing() -> None:
    nothing = AskedAhead()
    assert [asks_size({}, nothing, "/a", is_single=single) for single in (True, False)] == [True, True]
    assert [asks_size(TELLS_LINKS, nothing, "/a", is_single=single) for single in (True, False)] == [
        True,
        False,
    ]


NAMED = Reply(250, ("of /type=dir;", " Type=file; /type=dir;", "end"))


@pytest.mark.parametrize(("said", "asks"), [(FILE, True), (NAMED, True), (FOLDER, False), (MISSING, False)])
def test_who_described_a_name_ahead_is_asked_for_its_size_where_that_may_differ(
    said: Reply, asks: bool
) -> None:
    ahead = AskedAhead()
    ahead.keep([MLST], [said])
    assert asks_size({}, ahead, "/a", is_single=True) is asks
    assert not asks_size(TELLS_LINKS, ahead, "/a", is_single=True)
    ahead.keep([MLST, SIZE], [said, OK])
    assert asks_size(TELLS_LINKS, ahead, "/a", is_single=True)


def test_answers_stand_while_only_questions_are_sent() -> None:
    ahead = kept()
    ahead.sent([command("SIZE", "/b"), command("NOOP")])
    assert ahead.answer(MLST) is ahead.answer(MLST) is OK
    assert ahead.answer(command("MLST", "/b")) is None
    ahead.sent([command("SIZE", "/b"), command("DELE", "/a")])
    assert ahead.answer(MLST) is ahead.answer(MODE) is None


def test_answers_stand_for_a_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = 100.0
    monkeypatch.setattr("time.monotonic", lambda: now_s)
    ahead = kept()
    now_s = 101.9
    assert ahead.answer(MLST) is OK
    now_s = 102.1
    assert ahead.answer(MLST) is None


def test_who_has_the_session_next_asks_about_names_itself() -> None:
    ahead = kept()
    ahead.forget_names()
    assert (ahead.answer(MODE), ahead.answer(MLST), ahead.answer(SIZE)) == (OK, None, None)


def test_ports_are_named_alone() -> None:
    a, b, port, extended = b"OPTS\r\n", b"ERET\r\n", b"PORT 1\r\n", b"EPRT 2\r\n"
    assert list(in_writes([a, b])) == [[a, b]]
    assert list(in_writes([a, port, b, a])) == [[a], [port], [b, a]]
    assert list(in_writes([port, extended])) == [[port], [extended]]
    assert list(in_writes([])) == []
