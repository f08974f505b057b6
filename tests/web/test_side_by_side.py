"""A server that takes no requests ahead (XRootD) is asked over several connections at once."""

import itertools
import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from web.keeping import telling
from web.lying import copied
from web.scripted_http import PATIENCE_S, SOON_S, Answer, Exchange, Scripted, ScriptedHttp

from mpx.endpoints.web.access import WebAccess
from mpx.endpoints.web.dialogue import WebDialogue
from mpx.endpoints.web.digests import WebDigests
from mpx.endpoints.web.options import WebOptions
from mpx.endpoints.web.side_by_side import MOST_CONNECTIONS
from mpx.engine.endpoint import Part
from mpx.location import parse_location

NAMED = {"Server": "XrootD/v5.5.3"}
SMALL_FILES = {f"/folder/from/{number}": bytes([number]) * (100 + number) for number in range(60)}
METHODS = ("GET", "HEAD", "PUT", "MOVE", "MKCOL", "OPTIONS", "PROPFIND", "DELETE")


class Counted:
    """Answers as XRootD would by its name; `most` requests of a kind were under way at once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._now: dict[str, int] = {}
        self.most: dict[str, int] = {}
        self.reached = threading.Condition(self._lock)

    def script(self, **more: Scripted) -> dict[str, Scripted]:
        """Return what the server answers; `more`: to some methods."""
        return {method: self._counting(more.get(method, Exchange.usual)) for method in METHODS}

    def _counting(self, answer: Scripted) -> Scripted:
        def counted(exchange: Exchange) -> Answer | None:
            kind = exchange.asked.method + "+digest" * ("want-digest" in exchange.asked.headers)
            with self.reached:
                self._now[kind] = self._now.get(kind, 0) + 1
                self.most[kind] = max(self.most.get(kind, 0), self._now[kind])
                self.reached.notify_all()
            try:
                given = answer(exchange)
            finally:
                with self._lock:
                    self._now[kind] -= 1
            return given and given.having(**NAMED)

        return counted

    def when(self, kind: str, count: int, answer: Scripted) -> Scripted:
        """Answer only once so many of a kind were under way at once; 500 where that never comes."""

        def late(exchange: Exchange) -> Answer | None:
            with self.reached:
                came = self.reached.wait_for(lambda: self.most.get(kind, 0) >= count, PATIENCE_S / 10)
            return answer(exchange) if came else Answer(500)

        return late


@contextmanager
def asking(server: ScriptedHttp) -> Iterator[WebDialogue]:
    """Give a dialogue with a server that is known as one that takes nothing ahead."""
    access = WebAccess(parse_location(f"{server.dav}/folder"), WebOptions())
    access.pipelining.refuse(access.origin)
    dialogue = WebDialogue(access)
    try:
        yield dialogue
    finally:
        dialogue.close()


def test_many_questions_go_over_several_connections() -> None:
    """Which all get their own answers, in order, and are kept for the next ones."""
    counted = Counted()
    head = counted.when("HEAD", MOST_CONNECTIONS, Exchange.usual)
    files = {f"/folder/{number}": bytes(number) for number in range(200)}
    with ScriptedHttp(counted.script(HEAD=head), files) as server, asking(server) as dialogue:
        urls = [dialogue.access.url_of(name) for name in files]
        for _ in range(2):
            answers = list(dialogue.ask_all("HEAD", urls))
            assert [answer and answer[0].told_bytes for answer in answers] == list(range(200))
        assert counted.most["HEAD"] == MOST_CONNECTIONS
        assert len({each.connection for each in server.heard}) == MOST_CONNECTIONS


def test_few_questions_open_no_further_connections() -> None:
    counted = Counted()
    with ScriptedHttp(counted.script(), {"/folder/0": b"0"}) as server, asking(server) as dialogue:
        urls = [dialogue.access.url_of("/folder/0")] * 5
        assert all(dialogue.ask_all("HEAD", urls))
        assert {each.connection for each in server.heard} == {0}


def test_a_connection_that_ends_costs_its_own_answer_only() -> None:
    def ends(exchange: Exchange) -> Answer | None:
        return exchange.reset() if exchange.asked.path.endswith("/7") else exchange.usual()

    counted, files = Counted(), {f"/folder/{number}": bytes(number) for number in range(60)}
    with ScriptedHttp(counted.script(HEAD=ends), files) as server, asking(server) as dialogue:
        answers = list(dialogue.ask_all("HEAD", [dialogue.access.url_of(name) for name in files]))
    assert [number for number, answer in enumerate(answers) if answer is None] == [7]


def test_a_server_that_admits_one_connection_only() -> None:
    """Others are not waited for: the questions go over that one."""
    counted, files = Counted(), {f"/folder/{number}": bytes(number) for number in range(60)}
    with ScriptedHttp(counted.script(), files) as server, asking(server) as dialogue:
        assert all(dialogue.ask_all("HEAD", [dialogue.access.url_of("/folder/0")]))
        server.admit_no_more()
        answers = list(dialogue.ask_all("HEAD", [dialogue.access.url_of(name) for name in files]))
    assert all(answers)
    assert {each.connection for each in server.heard} == {0}


def test_two_digests_are_asked_for_at_once() -> None:
    """And never more, as some servers compute no more and leave the others without an answer."""
    counted, numbers = Counted(), itertools.count()

    def unhurried(exchange: Exchange) -> Answer | None:
        """Leave time for a third one to come."""
        if next(numbers) < 2:
            with counted.reached:
                counted.reached.wait_for(lambda: counted.most["HEAD+digest"] > 2, SOON_S)
        return telling(exchange)

    head = counted.when("HEAD+digest", 2, unhurried)
    with ScriptedHttp(counted.script(HEAD=head), SMALL_FILES) as server, asking(server) as dialogue:
        parts = [Part(name, 0, len(content), is_whole=True) for name, content in SMALL_FILES.items()]
        told = WebDigests(dialogue).ask("adler32", parts, lambda: False)
    assert told == [f"{zlib.adler32(content):08x}" for content in SMALL_FILES.values()]
    assert counted.most["HEAD+digest"] == 2


def test_a_digest_that_is_forgotten_is_asked_for_again() -> None:
    """XRootD 5.5 answers HEAD without it now and then."""
    numbers = itertools.count(1)
    forgetful: Scripted = lambda each: each.usual() if next(numbers) in (5, 6, 20) else telling(each)  # noqa: E731
    with ScriptedHttp(Counted().script(HEAD=forgetful), SMALL_FILES) as server, asking(server) as dialogue:
        parts = [Part(name, 0, len(content), is_whole=True) for name, content in SMALL_FILES.items()]
        told = WebDigests(dialogue).ask("adler32", parts, lambda: False)
    assert told == [f"{zlib.adler32(content):08x}" for content in SMALL_FILES.values()]


def test_a_download_never_asks_for_more_than_two_digests_at_once(tmp_path: Path) -> None:
    counted = Counted()
    with ScriptedHttp(counted.script(HEAD=telling), SMALL_FILES) as server:
        outcome = copied(f"{server.dav}/folder/from", tmp_path / "to", recursive=True, streams=4)
        assert outcome.code == 0, outcome
        digests = server.asked("HEAD")
    assert counted.most["HEAD+digest"] <= 2
    assert {each.path for each in digests} == set(SMALL_FILES)


def test_small_files_are_read_back_several_at_once(tmp_path: Path) -> None:
    """Each is stored, read back, renamed and looked at: four requests; a damaged one is sent again."""
    counted, damaged = Counted(), set[str]()

    def put(exchange: Exchange) -> Answer | None:
        answer, path = exchange.usual(), exchange.asked.path
        if not damaged:
            damaged.add(path)
            exchange.server.files[path] = bytes(len(exchange.server.files[path]))
        return answer

    (tmp_path / "from").mkdir()
    for name, content in SMALL_FILES.items():
        (tmp_path / "from" / name.rpartition("/")[2]).write_bytes(content)
    with ScriptedHttp(counted.script(PUT=put, HEAD=telling), {"/folder/other": b""}) as server:
        outcome = copied(tmp_path / "from", f"{server.dav}/folder/to", recursive=True, streams=4)
        assert outcome.code == 0, outcome
        assert {f"/folder/to/{name.rpartition('/')[2]}": data for name, data in SMALL_FILES.items()} == {
            name: data for name, data in server.files.items() if name != "/folder/other"
        }
        per_file = len([each for each in server.heard if "/folder/to/" in each.path])
    assert any("arrived damaged, sent again" in note for note in outcome.notes)
    assert per_file <= 4 * len(SMALL_FILES) + 20
    assert any("verified by reading back" in note for note in outcome.notes)


def test_folders_are_made_before_what_is_in_them(tmp_path: Path) -> None:
    """Also where they are asked for over several connections: none is asked for twice."""
    counted = Counted()
    for number in range(60):
        (tmp_path / f"from/a/{number}/below").mkdir(parents=True)
    with ScriptedHttp(counted.script(), {"/folder/other": b""}) as server:
        outcome = copied(tmp_path / "from", f"{server.dav}/folder/to", recursive=True)
        assert outcome.code == 0, outcome
        made = [each.path for each in server.asked("MKCOL")]
    assert len(made) == len(set(made)) == 122


@pytest.fixture(autouse=True)
def _no_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BEARER_TOKEN", raising=False)
