"""Copies between two web servers of which the one that is told answers as no real one can be had to."""

import contextlib
import hashlib
import itertools
import json
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Unpack

import pytest
from web.given_options import GivenOptions
from web.servers.host_certificate import host_certificate
from web.servers.scripted import CopyAnswer, Headers, ScriptedSite, scripted_site

from mpx.errors import ConnectionLost, IntegrityError, Interrupted, IsThere, MpxError, NoSpace, UsageError
from mpx.options import CopyOptions
from mpx.report import Report
from mpx.transfer.copy import copy

DATA, TOKEN = bytes(range(256)) * 40, "the-token-of-the-user"
STRAIGHT, THROUGH_US = "data go straight", "data pass through this host"
PULL, PUSH = "(pull)", "(push)"
NO_BYTES_S = 0.02  # between two markers that tell of nothing new

Pair = tuple[ScriptedSite, ScriptedSite]


@pytest.fixture
def pair(monkeypatch: pytest.MonkeyPatch) -> Iterator[Pair]:
    """Source and destination; a copy is refused by both until the test has said what they answer."""
    monkeypatch.setenv("BEARER_TOKEN", TOKEN)
    with scripted_site(tls=True) as source, scripted_site(tls=True) as destination:
        source.files["/file"] = DATA
        yield source, destination


def marker(moved: int) -> bytes:
    return f"Perf Marker\n    Stripe Index: 0\n    Stripe Bytes Transferred: {moved}\nEnd\n".encode()


def stores(
    site: ScriptedSite, content: bytes, *body: bytes, status: int = 201
) -> Callable[[str, Headers], CopyAnswer]:
    """What a destination does that is told to copy."""

    def copies(name: str, _: Headers) -> CopyAnswer:
        site.files[name] = content
        return status, {}, body

    return copies


def go(pair: Pair, name: str = "file", **options: Unpack[GivenOptions]) -> Report:
    given: GivenOptions = {"ca": str(host_certificate().ca), "retries": 0, **options}
    source, destination = pair
    return copy(source.url + name, destination.url + "copied", CopyOptions(**given))


def said(report: Report, words: str) -> bool:
    return any(words in note for note in report.notes)


def md5_told(site: ScriptedSite, name: str, _: str) -> Headers:
    return {"Digest": f"md5={hashlib.md5(site.files[name]).hexdigest()}"}


def failed(pair: Pair, kind: type[MpxError], **options: Unpack[GivenOptions]) -> MpxError:
    """The error of a copy; it leaves nothing behind."""
    with pytest.raises(kind) as raised:
        go(pair, **options)
    assert not pair[1].files
    return raised.value


@pytest.mark.parametrize("status", [201, 202])
def test_the_file_is_renamed_once_the_last_line_says_success(pair: Pair, status: int) -> None:
    pair[1].copies = stores(pair[1], DATA, marker(5), marker(len(DATA)), b"success: Created", status=status)
    report = go(pair, third_party="only")
    assert pair[1].files == {"/copied": DATA}
    assert said(report, STRAIGHT) and said(report, PULL)
    assert not pair[1].stored


def test_what_comes_meanwhile_stays_where_none_is_to_be_replaced(pair: Pair) -> None:
    def copies(name: str, told: Headers) -> CopyAnswer:
        assert told["Overwrite"] == "F"
        pair[1].files.setdefault(name, b"theirs")
        return 412, {}, ()

    pair[1].copies = copies
    with pytest.raises(IsThere):
        go(pair, third_party="only", in_place=True, overwrite="never")
    assert pair[1].files == {"/copied": b"theirs"}


@pytest.mark.parametrize("last", [b"failure: broken", b"", b"success: Created\nfailure: broken"])
def test_a_copy_that_ends_otherwise_failed_and_is_tried_again(pair: Pair, last: bytes) -> None:
    pair[1].copies = stores(pair[1], DATA, marker(5), last)
    error = failed(pair, ConnectionLost, retries=1)
    assert ("broken" if last else "does not say") in str(error)
    assert [method for method, _ in pair[1].asked].count("COPY") == 2


def test_what_an_attempt_has_left_is_removed_before_the_next(pair: Pair) -> None:
    """Who was to copy it may do so still, into what has that name."""
    answers = iter([b"failure: broken", b"success: Created"])

    def copies(name: str, told: Headers) -> CopyAnswer:
        return stores(pair[1], DATA, marker(5), next(answers))(name, told)

    pair[1].copies = copies
    report = go(pair, retries=1)
    methods = [method for method, name in pair[1].asked if name.startswith("/.copied")]
    told = [i for i, method in enumerate(methods) if method == "COPY"]
    assert len(told) == 2 and "DELETE" in methods[told[0] : told[1]]
    assert report.files.moved == 1 and pair[1].files == {"/copied": DATA}


def test_a_connection_that_is_closed_early_is_no_success(pair: Pair) -> None:
    def pieces() -> Iterator[bytes]:
        yield marker(5)
        yield b"success: Created\n"
        raise ConnectionError

    pair[1].copies = lambda *_: (201, {}, pieces())
    failed(pair, ConnectionLost)


def test_markers_that_tell_of_nothing_new_are_a_stall(pair: Pair) -> None:
    ended = threading.Event()

    def pieces() -> Iterator[bytes]:
        try:
            while True:
                ended.wait(NO_BYTES_S)
                yield marker(5)
        finally:
            ended.set()

    pair[1].copies = lambda *_: (201, {}, pieces())
    error = failed(pair, MpxError, timeout_s=0.5)
    assert error.exit_code == 7 and "nothing more" in str(error)
    assert ended.wait(60)  # the connection was closed


def test_a_push_that_is_cancelled_leaves_nothing(pair: Pair) -> None:
    cancel = threading.Event()

    def copies(_: str, told: Headers) -> CopyAnswer:
        pair[1].files["/" + told["Destination"].rpartition("/")[2]] = DATA[:5]
        cancel.set()
        return 201, {}, (marker(5) for _ in iter(lambda: threading.Event().wait(NO_BYTES_S), True))

    pair[0].copies = copies
    options = CopyOptions(ca=str(host_certificate().ca), third_party="push")
    with pytest.raises(Interrupted):
        copy(pair[0].url + "file", pair[1].url + "copied", options, cancel=cancel)
    assert ("COPY", "/file") in pair[0].asked and not pair[1].files


def test_success_of_another_size_is_found(pair: Pair) -> None:
    pair[1].copies = stores(pair[1], DATA[:-1], b"success: Created")
    error = failed(pair, IntegrityError)
    assert error.exit_code == 8 and f"{len(DATA) - 1} of" in str(error)


def test_other_bytes_of_the_same_size_are_found_by_checksum(pair: Pair) -> None:
    for site in pair:
        site.digest = partial(md5_told, site)
    pair[1].copies = stores(pair[1], DATA[:-1] + b"x", b"success: Created")
    error = failed(pair, IntegrityError, checksum="md5")
    assert error.exit_code == 8 and "md5" in str(error)


# --- which way -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "refusal",
    [
        None,
        (400, {}, [b""]),
        (501, {}, [b""]),
        (201, {}, [b"failure: Couldn't connect to server"]),
        (201, {}, [marker(0), b"failure: Remote side failed with status code 404"]),
    ],
    ids=str,
)
def test_a_refused_pull_becomes_a_push_and_then_goes_through_us(
    pair: Pair, refusal: CopyAnswer | None
) -> None:
    if refusal:
        for site in pair:
            site.copies = lambda *_: refusal
    report = go(pair)
    assert [said(report, words) for words in (PULL, PUSH, THROUGH_US)] == [True] * 3
    assert pair[1].files == {"/copied": DATA}
    assert [name for method, name in pair[0].asked if method == "COPY"] == ["/file"]
    with pytest.raises(UsageError, match="--third-party only is not possible here"):
        go(pair, third_party="only")
    for way in ("pull", "push"):
        with pytest.raises(UsageError, match=f"--third-party {way} is not possible here"):
            go(pair, third_party=way)


def test_a_full_destination_is_told_at_once(pair: Pair) -> None:
    full = (201, {}, [marker(0), b"failure: Unable to write file; No space left on device"])
    pair[1].copies = lambda *_: full
    error = failed(pair, NoSpace)
    assert error.report and not any(said(error.report, words) for words in (PUSH, THROUGH_US))
    assert [name for method, name in pair[0].asked if method == "COPY"] == []


def test_push_is_told_to_the_source(pair: Pair) -> None:
    def copies(name: str, told: Headers) -> CopyAnswer:
        assert told["Destination"].startswith(pair[1].url + ".copied")
        pair[1].files["/" + told["Destination"].rpartition("/")[2]] = pair[0].files[name]
        return 201, {}, [marker(0), b"success: Created"]

    pair[0].copies = copies
    report = go(pair, third_party="push")
    assert pair[1].files == {"/copied": DATA} and said(report, PUSH)
    assert not any(method == "COPY" for method, _ in pair[1].asked)


def test_a_server_that_copies_within_itself_is_left_as_it_was(pair: Pair) -> None:
    """As plain WebDAV has COPY, whatever host the Destination names."""

    def copies(name: str, told: Headers) -> CopyAnswer:
        pair[0].files["/" + told["Destination"].rpartition("/")[2]] = pair[0].files[name]
        return 201, {}, [b"<html>Created</html>"]

    pair[0].copies = copies
    report = go(pair)
    assert said(report, THROUGH_US) and said(report, "copies to no other server")
    assert pair[0].files == {"/file": DATA} and pair[1].files == {"/copied": DATA}


def test_a_plain_web_server_is_not_told_at_all(pair: Pair) -> None:
    pair[0].name = pair[1].name = "nginx/1.22"
    report = go(pair)
    origins = " or ".join(site.url.split("/")[2] for site in reversed(pair))
    assert said(report, THROUGH_US) and said(report, f"{origins} is known not to copy")
    assert not any(method in ("COPY", "POST") for site in pair for method, _ in site.asked)


@pytest.mark.parametrize("way", ["pull", "push"])
def test_ways_are_those_of_web_servers(tmp_path: Path, way: str) -> None:
    (tmp_path / "file").write_bytes(DATA)
    for to in (f"{tmp_path}/copied", "ftp://127.0.0.1:1/x"):
        with pytest.raises(UsageError, match="one is told to copy"):
            copy(f"{tmp_path}/file", to, CopyOptions(third_party=way))


# --- what is handed over ---------------------------------------------------------------------------


def let_in(pair: Pair, *secrets: str) -> list[str | None]:
    """Have the destination copy with these only; return what it is shown, in turn."""
    shown: list[str | None] = []

    def copies(name: str, told: Headers) -> CopyAnswer:
        shown.append(told.get("TransferHeaderAuthorization"))
        if shown[-1] not in [f"Bearer {each}" for each in secrets]:
            return 201, {}, [marker(0), f"failure: {shown[-1]}: status code 403".encode()]
        return stores(pair[1], DATA, b"success: Created")(name, told)

    pair[1].copies = copies
    return shown


def test_a_macaroon_is_handed_over_in_place_of_the_token(pair: Pair) -> None:
    pair[0].macaroon = "a-macaroon"
    shown = let_in(pair, "a-macaroon")
    report = go(pair)
    assert shown == ["Bearer a-macaroon"]
    assert said(report, "with a macaroon for that file, for an hour") and not said(report, "your token")


@pytest.mark.parametrize("macaroon", [None, "permits-nothing", "x\r\nX-Header: y", "", "x" * 100_000])
def test_else_the_token_which_the_report_says_and_does_not_hold(pair: Pair, macaroon: str | None) -> None:
    pair[0].macaroon = macaroon
    shown = let_in(pair, TOKEN)
    report = go(pair)
    tried = ["Bearer permits-nothing"] if macaroon == "permits-nothing" else []
    assert shown == [*tried, f"Bearer {TOKEN}"]
    assert said(report, f"with your token for 127.0.0.1:{pair[0].url.split(':')[2].rstrip('/')}")
    assert TOKEN not in json.dumps(report.as_dict())


def test_no_server_has_its_secrets_shown_in_a_message(pair: Pair) -> None:
    pair[0].macaroon = "a-macaroon"
    let_in(pair)  # nobody
    with pytest.raises(UsageError) as raised:
        go(pair, third_party="pull")
    assert raised.value.report is not None
    text = str(raised.value) + json.dumps(raised.value.report.as_dict())
    assert "status code 403" in text and TOKEN not in text and "a-macaroon" not in text


def test_a_password_is_handed_to_nobody(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MPX_PASSWORD", "the-password")
    pair[0].url = pair[0].url.replace("://", "://alice@")
    shown = let_in(pair, TOKEN)
    report = go(pair)
    assert not shown and said(report, "a password lets us in") and pair[1].files == {"/copied": DATA}


def test_who_is_led_to_gets_nothing(pair: Pair) -> None:
    with scripted_site(tls=True) as other:
        pair[1].copies = lambda *_: (307, {"Location": other.url + "x"}, [])
        with pytest.raises(UsageError, match="--send-token-to"):
            go(pair, third_party="pull")
        assert not other.asked


@pytest.mark.parametrize("clear", [0, 1])
def test_nothing_is_handed_over_in_the_clear(pair: Pair, clear: int) -> None:
    with contextlib.ExitStack() as held:
        sites = list(pair)
        sites[clear] = held.enter_context(scripted_site())
        sites[0].files["/file"] = DATA
        report = go((sites[0], sites[1]))
        assert said(report, "not inside TLS") and said(report, THROUGH_US)
        asked = itertools.chain.from_iterable(site.asked for site in sites)
        assert not {"COPY", "POST"} & {method for method, _ in asked}
