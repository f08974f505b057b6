"""What the module for servers does: it never raises, and what it has got is given back."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from mpx_controller.stock.netmgr import mpx_netmgr
from mpx_controller.stock.netmgr.mpx_netmgr import session as session_module
from mpx_controller.stock.netmgr.mpx_netmgr.helper import Helper
from mpx_controller.stock.netmgr.mpx_netmgr.pair import Pair
from mpx_controller.stock.netmgr.mpx_netmgr.session import Session, own_address, split_contact
from mpx_controller.stock.netmgr.mpx_netmgr.settings import read_settings
from pretended import Book, kept, saying

HERE, THERE = "127.0.0.1", "192.0.2.9:2000"
FOLDER = Path(mpx_netmgr.__file__).parent.parent
Eventually = Callable[..., None]


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[str]]:
    file = tmp_path / "netmgr.log"
    monkeypatch.setenv("MPX_NETMGR_LOG", str(file))
    return lambda: file.read_text().splitlines() if file.exists() else []


@pytest.fixture
def book(monkeypatch: pytest.MonkeyPatch) -> Iterator[Book]:
    book = Book()
    with kept(book) as url:
        monkeypatch.setenv("MPX_CONTROLLER", url)
        yield book


def test_streams_of_a_download(book: Book, log: Callable[[], list[str]], eventually: Eventually) -> None:
    session = Session()
    session.get_ready()
    for port in (5001, 5002, 5003):
        session.connected("none", f"{HERE}:{port}", THERE)
    assert book.sets == {1: {5001: 0, 5002: 1, 5003: 2}} and book.pairs[1] == (HERE, "192.0.2.9")
    session.closed(f"{HERE}:5002", THERE)
    eventually(lambda: book.sets == {1: {5001: 0, 5003: 2}})
    session.connected("T\n7", f"{HERE}:5004", THERE)
    assert book.sets[2] == {5004: 0}
    del session
    eventually(lambda: book.sets == {})
    assert len(log()) == 2 and "of task T7 from 127.0.0.1 to 192.0.2.9 are on 4 paths" in log()[1]


def test_over_tls_with_a_token(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, log: Callable[[], list[str]]
) -> None:
    whole, key = tmp_path / "whole.pem", tmp_path / "key.pem"
    words = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-days",
        "2",
        "-subj",
        "/CN=controller",
    ]
    words += ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(whole)]
    subprocess.run(words, check=True, capture_output=True)
    whole.write_text(key.read_text() + whole.read_text())
    book = Book()
    with kept(book, whole) as url:
        monkeypatch.setenv("MPX_CONTROLLER", url)
        monkeypatch.setenv("MPX_CONTROLLER_TOKEN", "sixteen-characters")
        Session().connected("none", f"{HERE}:5001", THERE)
        assert book.sets == {} and "certificate" in log()[0]
        monkeypatch.setenv("SSL_CERT_FILE", str(whole))
        session = Session()
        session.connected("none", f"{HERE}:5001", THERE)
        assert book.sets == {1: {5001: 0}} and book.tokens == {"Bearer sixteen-characters"}
        del session


def test_streams_of_an_upload(book: Book, log: Callable[[], list[str]], eventually: Eventually) -> None:
    """The driver calls our own end by a name."""
    session = Session()
    with socket.create_server((HERE, 0)) as listening, ExitStack() as opened:
        port = listening.getsockname()[1]
        for number in (1, 2):
            client = opened.enter_context(socket.create_connection((HERE, port)))
            opened.enter_context(listening.accept()[0])
            contact = "{}:{}".format(*client.getsockname())
            session.accepted("unset", f"localhost:{port}", contact)
            assert len(book.sets[1]) == number and client.getsockname()[1] in book.sets[1]
        session.closed(f"localhost:{port}", contact)
        eventually(lambda: len(book.sets[1]) == 1)
    assert book.pairs == {1: (HERE, HERE)} and "not steered" not in "".join(log())


def test_a_session_that_is_killed_gives_back(book: Book, eventually: Eventually) -> None:
    code = f"""
import time
from mpx_netmgr import post_connect
post_connect("none", "tcp", "{HERE}:5001", "{THERE}", [])
print("ready", flush=True)
time.sleep(600)
"""
    words, told = [sys.executable, "-c", code], {**os.environ, "PYTHONPATH": str(FOLDER)}
    with subprocess.Popen(words, env=told, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None and process.stdout.readline() == b"ready\n"
            assert book.sets == {1: {5001: 0}}
        finally:
            process.send_signal(signal.SIGKILL)
    eventually(lambda: book.sets == {})


def test_after_a_failure_nobody_waits_for_a_while(
    book: Book, log: Callable[[], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    book.away, session = True, Session()
    for port in (5001, 5002, 5003):
        session.connected("none", f"{HERE}:{port}", THERE)
    assert book.requests == 1
    monkeypatch.setattr(session_module, "AGAIN_S", 0.0)
    again = Session()
    again.connected("none", f"{HERE}:5004", THERE)
    book.away = False
    again.connected("none", f"{HERE}:5005", THERE)
    assert book.sets == {1: {5005: 0}}
    assert ["not steered" in line for line in log()] == [True, True, False]


def test_an_answer_that_comes_too_late_is_nobody_else_s(book: Book) -> None:
    helper, pair = Helper(), Pair(HERE, "192.0.2.9")
    book.answers.clear()
    assert "does not answer" in helper.place(pair, 5001)["failed"]
    book.answers.set()
    told = helper.place(pair, 5002)
    assert book.sets[told["path_set"]][5002] == told["path"]


def test_the_helper_ends_with_its_session_while_an_answer_drips(
    monkeypatch: pytest.MonkeyPatch, eventually: Eventually
) -> None:
    with saying(b"HTTP/1.1 200 OK\r\nX: ", for_ever=True) as url:
        monkeypatch.setenv("MPX_CONTROLLER", url)
        helper = Helper()
        process = helper._process
        assert "does not answer" in helper.place(Pair(HERE, "192.0.2.9"), 5001)["failed"]
        del helper
        eventually(lambda: process.poll() is not None)


@pytest.mark.parametrize(
    ("answer", "for_ever"),
    [
        (None, False),
        (b"HTTP/1.1 200 OK\r\nX: ", True),  # never done, never quiet for long
        (b"HTTP/1.1 403 No\r\n\r\n{}", False),
        (
            b'HTTP/1.1 200 OK\r\n\r\n{"id": 1, "paths": [{}], "streams": 1, "lease_s": 60}',
            False,
        ),  # no streams
        (b"nonsense", False),
    ],
)
def test_a_bad_controller_is_logged_once(
    answer: bytes | None,
    for_ever: bool,
    log: Callable[[], list[str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    session = Session()
    with saying(answer, for_ever=for_ever) as url:
        monkeypatch.setenv("MPX_CONTROLLER", url)
        for port in (5001, 5002, 5003):
            session.connected("none", f"{HERE}:{port}", THERE)
            session.closed(f"{HERE}:{port}", THERE)
    (line,) = log()
    assert "streams are not steered: 127.0.0.1 to 192.0.2.9: the controller" in line


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("MPX_CONTROLLER", "", "MPX_CONTROLLER is not set"),
        ("MPX_CONTROLLER", "http://127.0.0.1:1", "Connection refused"),
        ("MPX_PATHS", "many", "MPX_PATHS must be 0 to 64"),
        ("MPX_NETWORKS", "10.0.0.0/33", "10.0.0.0/33"),
        ("MPX_CONTROLLER_TOKEN", "no\nsuch", "Invalid header value"),
    ],
)
def test_bad_settings_are_logged(
    book: Book,
    log: Callable[[], list[str]],
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    value: str,
    says: str,
) -> None:
    monkeypatch.setenv(name, value)
    Session().connected("none", f"{HERE}:5001", THERE)
    (line,) = log()
    assert says in line and book.sets == {}


@pytest.mark.parametrize("local", ["", "here:1", "127.0.0.1", "127.0.0.1:x", f"{HERE}:1"])
@pytest.mark.parametrize("remote", ["", "there:1", "[::1]:70000000", "\0", "192.0.2.1:1"])
def test_hooks_never_raise(
    local: str, remote: str, log: Callable[[], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mpx_netmgr, "_made", [])
    monkeypatch.setenv("MPX_CONTROLLER", "http://127.0.0.1:1")
    for hook in (mpx_netmgr.post_accept, mpx_netmgr.post_connect, mpx_netmgr.post_close):
        hook("none", "tcp", local, remote, [])
    assert len(log()) == 1


def test_a_module_that_cannot_be_loaded_ends_no_transfer(
    log: Callable[[], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mpx_netmgr, "_made", [])
    monkeypatch.setitem(sys.modules, session_module.__name__, None)
    for _ in range(3):
        mpx_netmgr.pre_connect("none", "tcp", THERE, [])
    assert len(log()) == 1 and "not steered" in log()[0]


def test_who_is_affected() -> None:
    told = read_settings({"MPX_CONTROLLER": "http://c", "MPX_NETWORKS": "10.0.0.0/8, fd00::/8"})
    assert [told.applies_to(each) for each in ("10.1.1.1", "fd00::1", "192.0.2.1", "::1")] == [
        True,
        True,
        False,
        False,
    ]
    assert read_settings({"MPX_CONTROLLER": "http://c"}).applies_to("192.0.2.1")


def test_contacts() -> None:
    assert split_contact("[fd00::1]:80") == ("fd00::1", 80)
    assert split_contact("[::ffff:10.0.0.1]:80") == ("10.0.0.1", 80)
    with pytest.raises(OSError, match="no connection to"):
        own_address("192.0.2.1", 1)
