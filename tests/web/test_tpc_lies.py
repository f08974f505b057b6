"""Web servers that are told to copy from or to each other, and break off, lead elsewhere or never end."""

import contextlib
import re
import threading
from collections.abc import Callable, Iterator
from urllib.parse import unquote, urlsplit

import pytest
from web.lying import NAME, SECRET, SMALL, Outcome, copied
from web.scripted_http import Answer, Exchange, Scripted, ScriptedHttp
from web.servers.host_certificate import host_certificate

import mpx
from mpx.endpoints.web.third_party import copying

TO = "/folder/copied"
BEGUN = b"HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n"
MARKER = "Perf Marker\nStripe Index: 0\nStripe Bytes Transferred: {}\nEnd\n"
PRECIOUS = b"another one"

Pair = tuple[ScriptedHttp, ScriptedHttp]


@pytest.fixture
def pair(monkeypatch: pytest.MonkeyPatch) -> Iterator[Pair]:
    """Source and destination."""
    monkeypatch.setenv("BEARER_TOKEN", SECRET)
    with ScriptedHttp(files={NAME: SMALL}, tls=True) as source, ScriptedHttp(tls=True) as destination:
        destination.folders.add("/folder")
        yield source, destination


def go(pair: Pair, **options: object) -> Outcome:
    options = {"checksum": "none", "third_party": "pull", **options}
    return copied(f"{pair[0].dav}{NAME}", f"{pair[1].dav}{TO}", **options)


def chunk(text: str) -> bytes:
    return f"{len(text):x}\r\n{text}\r\n".encode()


def pulls(source: ScriptedHttp, *told: str) -> Scripted:
    """What a destination does that is told to copy: it stores the file, and says this."""

    def copy(exchange: Exchange) -> None:
        name = unquote(urlsplit(exchange.asked.headers["source"]).path)
        exchange.server.files[exchange.asked.path] = source.files[name]
        exchange.say(BEGUN + b"".join(map(chunk, told)) + b"0\r\n\r\n")

    return copy


def said(outcome: Outcome, words: str) -> bool:
    return any(words in note for note in outcome.notes)


# --- macaroons -------------------------------------------------------------------------------------


def first_reads(then: Callable[[Exchange], Answer | None]) -> Scripted:
    def answer(exchange: Exchange) -> Answer | None:
        exchange.body()
        return then(exchange)

    return answer


BROKEN_OFF = b'HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{"macaroon": "x"}'
NO_MACAROONS: dict[str, Callable[[Exchange], Answer | None]] = {
    "closed": lambda exchange: exchange.bye(),
    "reset": lambda exchange: exchange.reset(),
    "silence": lambda exchange: exchange.hold(),
    "no HTTP": lambda exchange: exchange.bye(b"hello\r\n"),
    "broken off": lambda exchange: exchange.bye(BROKEN_OFF),
    "login page": lambda _: Answer(200, {"Content-Type": "text/html"}, b"<html>Log in</html>"),
    "elsewhere": lambda _: Answer(302, {"Location": "https://localhost:1/login"}),
    "in the clear": lambda _: Answer(302, {"Location": "http://localhost:1/login"}),
    "too much": lambda _: Answer(200, {}, b'{"macaroon": "' + b"x" * 10_000_000 + b'"}'),
    "a number": lambda _: Answer(200, {}, b'{"macaroon": 7}'),
    "a proxy's": lambda _: Answer(502, {}),
}


@pytest.mark.parametrize("kind", NO_MACAROONS)
def test_who_makes_no_macaroon_is_handed_the_token(pair: Pair, kind: str) -> None:
    pair[0].script = {"POST": first_reads(NO_MACAROONS[kind])}
    pair[1].script = {"COPY": pulls(pair[0], "success: Created")}
    outcome = go(pair, retries=0)
    assert outcome.code == 0 and said(outcome, "with your token"), outcome
    assert pair[1].files == {TO: SMALL}
    (told,) = pair[1].asked("COPY")
    assert told.headers["transferheaderauthorization"] == f"Bearer {SECRET}"


NO_ANSWERS: dict[str, Callable[[Exchange], Answer | None]] = {
    "closed": lambda exchange: exchange.bye(),
    "reset": lambda exchange: exchange.reset(),
    "silence": lambda exchange: exchange.hold(),
    "bad gateway": lambda _: Answer(502, {}),
    "gateway timeout": lambda _: Answer(504, {}),
    "busy": lambda _: Answer(503, {"Retry-After": "0"}),
    "too many requests": lambda _: Answer(429, {"Retry-After": "0"}),
}
ONE = Answer(200, {}, b'{"macaroon": "one"}')


@pytest.mark.parametrize("kind", NO_ANSWERS)
def test_a_failure_of_the_network_does_not_hand_over_the_token(pair: Pair, kind: str) -> None:
    """Nothing is answered for as long as it lasts, at the first request for a macaroon and what follows."""
    left = [NO_ANSWERS[kind]] * 3

    def fail(exchange: Exchange) -> Answer | None:
        exchange.body()
        return left.pop()(exchange)

    def make(exchange: Exchange) -> Answer | None:
        return fail(exchange) if left else first_reads(lambda _: ONE)(exchange)

    def describe(exchange: Exchange) -> Answer | None:
        return fail(exchange) if left and exchange.server.asked("POST") else exchange.usual()

    pair[0].script = {"POST": make, "HEAD": describe}
    pair[1].script = {"COPY": pulls(pair[0], "success: Created")}
    outcome = go(pair, retries=3)
    assert outcome.code == 0 and not left, outcome
    (told,) = pair[1].asked("COPY")
    assert told.headers["transferheaderauthorization"] == "Bearer one" and not said(outcome, "your token")


@pytest.mark.parametrize("kind", NO_ANSWERS)
def test_nor_does_one_that_lasts(pair: Pair, kind: str) -> None:
    def describe(exchange: Exchange) -> Answer | None:
        return NO_ANSWERS[kind](exchange) if exchange.server.asked("POST") else exchange.usual()

    pair[0].script = {"POST": first_reads(NO_ANSWERS[kind]), "HEAD": describe}
    outcome = go(pair, retries=0)
    assert outcome.code in (6, 7) and not pair[1].asked("COPY"), outcome


def test_one_that_has_made_some_is_asked_again(pair: Pair) -> None:
    """The token is handed over where there are no macaroons, and not for a moment's failure."""
    answers = iter([Answer(200, {}, b'{"macaroon": "one"}'), None, Answer(200, {}, b'{"macaroon": "two"}')])

    def make(exchange: Exchange) -> Answer | None:
        answer = next(answers)
        return answer or exchange.bye()

    pair[0].script = {"POST": first_reads(make)}
    pair[0].files["/folder/second"] = SMALL
    pair[1].script = {"COPY": pulls(pair[0], "success: Created")}
    outcome = copied(
        f"{pair[0].dav}/folder",
        f"{pair[1].dav}/folder",
        recursive=True,
        streams=1,
        checksum="none",
        third_party="pull",
    )
    assert outcome.code == 0, outcome
    handed = [told.headers["transferheaderauthorization"] for told in pair[1].asked("COPY")]
    assert handed == ["Bearer one", "Bearer two"] and not said(outcome, "your token")


# --- where the server leads ------------------------------------------------------------------------


def test_who_leads_out_of_tls_is_asked_nothing_there_and_the_copy_goes_on(pair: Pair) -> None:
    with ScriptedHttp() as other:
        pair[1].script = {"COPY": lambda _: Answer(307, {"Location": f"{other.origin}/x"})}
        outcome = go(pair, third_party="auto")
        assert outcome.code == 0 and said(outcome, "in the clear"), outcome
        assert pair[1].files == {TO: SMALL} and not other.heard


@pytest.mark.parametrize("to", ["http", "dav"])
def test_it_is_led_to_a_data_server_that_may_have_the_token(pair: Pair, to: str) -> None:
    with ScriptedHttp(tls=True) as other:

        def copy(exchange: Exchange) -> None:
            assert exchange.asked.headers["authorization"] == f"Bearer {SECRET}"
            pair[1].files[exchange.asked.path] = SMALL
            exchange.say(BEGUN + chunk("success: Created") + b"0\r\n\r\n")

        other.script = {"COPY": copy}
        place = other.origin.replace("http", to, 1)
        pair[1].script = {"COPY": lambda told: Answer(307, {"Location": f"{place}{told.asked.target}"})}
        outcome = go(pair, send_token_to=(f"localhost:{other.port}",))
        assert outcome.code == 0 and pair[1].files == {TO: SMALL}, outcome
        assert len(other.asked("COPY")) == 1


# --- answers ---------------------------------------------------------------------------------------


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Markers are to come sooner than servers send them."""
    monkeypatch.setattr(copying, "MARKER_S", 0.1)


@pytest.mark.usefixtures("soon")
def test_more_than_there_is_is_no_progress(pair: Pair) -> None:
    """Else an answer would last for ever whose markers grow and grow."""

    def copy(exchange: Exchange) -> None:
        exchange.say(BEGUN)
        with contextlib.suppress(OSError):
            for i in range(1, 10_000):
                exchange.say(chunk(MARKER.format(len(SMALL) * i)))
                exchange.server.over.wait(0.02)
        exchange.is_over = True

    pair[1].script = {"COPY": copy}
    outcome = go(pair, timeout_s=0.1, retries=0)
    assert outcome.code == 7 and "copied nothing more" in outcome.text, outcome
    assert not pair[1].files


@pytest.mark.usefixtures("soon")
def test_what_has_come_takes_a_while_to_be_stored(pair: Pair) -> None:
    """The more the longer, and not every server says so meanwhile."""
    pair[0].files[NAME] = bytes(60_000_000)

    def copy(exchange: Exchange) -> None:
        exchange.server.files[exchange.asked.path] = pair[0].files[NAME]
        exchange.say(BEGUN + chunk(MARKER.format(60_000_000)))
        exchange.server.over.wait(2.0)
        exchange.say(chunk("success: Created") + b"0\r\n\r\n")

    pair[1].script = {"COPY": copy}
    outcome = go(pair, timeout_s=1.0, retries=0)
    assert outcome.code == 0, outcome


@pytest.mark.parametrize("stored", [b"", b"junk"])
def test_a_file_of_no_bytes_is_stored_as_one(pair: Pair, stored: bytes) -> None:
    """By whoever copies it; where we read it ourselves the data decide, whatever size was told."""

    def copy(exchange: Exchange) -> None:
        exchange.server.files[exchange.asked.path] = stored
        exchange.say(BEGUN + chunk("success: Created") + b"0\r\n\r\n")

    pair[0].files[NAME] = b""
    pair[1].script = {"COPY": copy}
    outcome = go(pair)
    assert (outcome.code, pair[1].files) == ((8, {}) if stored else (0, {TO: b""})), outcome


def test_the_reason_has_all_its_lines(pair: Pair) -> None:
    """And by its first one a macaroon that lets nobody in is known."""
    pair[0].script = {"POST": first_reads(lambda _: Answer(200, {}, b'{"macaroon": "useless"}'))}
    pair[1].script = {"COPY": pulls(pair[0], "failure: rejected GET: 403 No\n<html>\nGo\n</html>\n")}
    outcome = go(pair)
    assert outcome.code == 2 and "rejected GET: 403 No <html> Go </html>" in outcome.text
    handed = [told.headers["transferheaderauthorization"] for told in pair[1].asked("COPY")]
    assert handed == ["Bearer useless", f"Bearer {SECRET}"]


def test_a_refusal_both_ways_is_told_with_both_reasons(pair: Pair) -> None:
    pair[1].script = {"COPY": lambda _: Answer(412)}
    pair[0].script = {"COPY": lambda _: Answer(405)}
    outcome = go(pair, third_party="only")
    assert outcome.code == 2 and re.search("412 .*; nor the other way: .* 405 ", outcome.text), outcome


def test_what_fails_after_some_of_it_is_tried_again(pair: Pair) -> None:
    """Nothing else tells that this way works: the first marker comes after seconds."""
    whole = pulls(pair[0], "success: Created")

    def copy(exchange: Exchange) -> Answer | None:
        if len(pair[1].asked("COPY")) > 1:
            return whole(exchange)
        exchange.server.files[exchange.asked.path] = SMALL[:100]
        exchange.say(BEGUN + chunk("failure: Failed sending data to the peer") + b"0\r\n\r\n")
        return None

    pair[1].script = {"COPY": copy}
    outcome = go(pair)
    assert outcome.code == 0 and pair[1].files == {TO: SMALL}, outcome
    assert said(outcome, "trying again after") and len(pair[1].asked("COPY")) == 2


def test_streams_that_were_asked_for_are_no_obstacle_after_a_refusal(pair: Pair) -> None:
    """Through this host they are files at once, and no more of them than sessions."""
    many = {f"/folder/{i}": SMALL + bytes(i) for i in range(5)}
    pair[0].files = dict(many)
    options = {"third_party": "auto", "checksum": "none", "recursive": True}
    outcome = copied(f"{pair[0].dav}/folder", f"{pair[1].dav}/folder", streams=20, **options)
    assert outcome.code == 0 and said(outcome, "data pass through this host"), outcome
    assert pair[1].files == many


def test_what_an_earlier_run_has_left_is_removed_first(pair: Pair) -> None:
    """Who was told by a run that was killed may copy for seconds still, into what has that name."""
    cancel, there = threading.Event(), []

    def stops(exchange: Exchange) -> None:
        exchange.server.files[exchange.asked.path] = SMALL[:5]
        exchange.say(BEGUN + chunk(MARKER.format(5)))
        cancel.set()
        exchange.hold()

    def copy(exchange: Exchange) -> Answer | None:
        there.append(exchange.asked.path in pair[1].files)
        return pulls(pair[0], "success: Created")(exchange)

    pair[1].script = {"COPY": stops, "DELETE": lambda _: Answer(403)}
    options = mpx.CopyOptions(ca=str(host_certificate().ca), third_party="pull", checksum="none")
    with pytest.raises(mpx.Interrupted):
        mpx.copy(f"{pair[0].dav}{NAME}", f"{pair[1].dav}{TO}", options, cancel=cancel)
    assert len(pair[1].files) == 1
    pair[1].script = {"COPY": copy}
    assert go(pair).code == 0 and there == [False]
    assert pair[1].files == {TO: SMALL}


# --- in place --------------------------------------------------------------------------------------


def test_one_that_may_copy_within_itself_is_not_told_to_write_under_a_final_name(pair: Pair) -> None:
    """As plain WebDAV has COPY, whatever host the Destination names."""

    def copies_within(exchange: Exchange) -> Answer:
        to = unquote(urlsplit(exchange.asked.headers["destination"]).path)
        pair[0].files[to] = pair[0].files[exchange.asked.path]
        return Answer(201)

    pair[0].files[TO] = PRECIOUS
    pair[0].script = {"COPY": copies_within}
    outcome = go(pair, third_party="auto", in_place=True)
    assert outcome.code == 0 and said(outcome, "might write over its own /folder/copied"), outcome
    assert pair[0].files[TO] == PRECIOUS and pair[1].files == {TO: SMALL}
