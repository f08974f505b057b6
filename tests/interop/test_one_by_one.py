"""Servers that take no command before the last is answered: they hang up, refuse or lose what comes."""

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from interop.scripted_server import Dialogue
from interop.storing_server import FEATURES, StoringDialogue, StoringServer
from sites import make

import mpx
from mpx.endpoints.ftp import login
from mpx.errors import AuthenticationError, ConnectionLost, TransferTimeout

QUICK = mpx.CopyOptions(retries=1, timeout_s=5, connect_timeout_s=5)
HOWEVER = ["closes", "421", "500", "loses", "reads nothing"]


class OneByOne(StoringDialogue):
    """Reads what has arrived, and takes it for one command."""

    server: "OneByOneServer"

    def run(self) -> None:
        with contextlib.suppress(OSError), self.control:
            self.say(next(self.server.banners, "220 ready"))
            while data := self.control.recv(65536):
                line, _, more = data.partition(b"\r\n")
                if more:
                    self.server.offended += 1
                if more and self.server.how == "closes":
                    return
                if more and self.server.how == "421":
                    self.say("421 one command at a time")
                    return
                if more and self.server.how == "reads nothing":
                    continue
                verb, _, argument = line.decode().partition(" ")
                self.server.heard.append(verb)
                if (reply := self.answer(verb, argument)) is not None:
                    self.say(reply)
                for _ in more.splitlines() if self.server.how == "500" else ():
                    self.say("500 one command at a time")
        self.close()

    def _user(self, argument: str) -> str:
        return self.server.says_to_user

    def _pass(self, argument: str) -> str:
        return "230 welcome"


class OneByOneServer(StoringServer):
    """Counts how often several commands came `how` it does not take them."""

    dialogue = OneByOne
    says_to_user = "331 who are you?"

    def __init__(self, how: str, files: dict[str, bytes]) -> None:
        super().__init__(files=files, features=(*FEATURES, "ERET", "PARALLEL"), checksums=True, mode_e=True)
        self.how = how
        self.offended = 0
        self.banners: Iterator[str] = iter(())  # of the first connections


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mpx.endpoints.ftp.login.QUIET_S", 0.5)
    monkeypatch.setattr("mpx.endpoints.ftp.login._slow", {})
    monkeypatch.setattr("mpx.endpoints.ftp.login._ask_for_password", set())


@pytest.mark.parametrize("how", HOWEVER)
def test_a_copy_goes_on_one_by_one(how: str, tmp_path: Path) -> None:
    content = make(tmp_path / "up", 300_001).read_bytes()
    with OneByOneServer(how, {"/down": content}) as server:
        mpx.copy(tmp_path / "up", f"{server.url}/up", QUICK)
        mpx.copy(f"{server.url}/down", tmp_path / "down", QUICK)
        assert (tmp_path / "down").read_bytes() == server.files["/up"] == content
        assert (
            server.offended == 2
        )  # with the login, and with a pair to make sure; never again in this process
    assert list(login._slow.values()) == [True]


def test_the_next_run_knows_it_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = make(tmp_path / "up", 300_001).read_bytes()
    with OneByOneServer("closes", {"/down": content}) as server:
        mpx.copy(tmp_path / "up", f"{server.url}/up", QUICK)
        offended = server.offended
        monkeypatch.setattr("mpx.endpoints.ftp.login._slow", {})  # as in another process
        mpx.copy(f"{server.url}/down", tmp_path / "down", QUICK)
        assert (tmp_path / "down").read_bytes() == content
        assert server.offended == offended
        monkeypatch.setattr("mpx.endpoints.ftp.login._slow", {})
        mpx.copy(f"{server.url}/down", tmp_path / "down", replace(QUICK, overwrite="always", history=False))
        assert server.offended > offended


def test_a_lost_login_does_not_make_a_server_slow(tmp_path: Path) -> None:
    """What takes commands together after all is given them; only its logins go step by step from then on."""
    content = make(tmp_path / "up", 300_001).read_bytes()
    lost = iter([True])

    def loses_one(dialogue: Dialogue, _: str) -> str:
        if next(lost, False):
            raise ConnectionError("lost")
        return "331 who are you?"

    script = {"USER": loses_one, "PASS": lambda *_: "230 welcome"}
    features = (*FEATURES, "ERET", "PARALLEL")
    with StoringServer(script, features=features, checksums=True, mode_e=True) as server:
        report = mpx.copy(tmp_path / "up", f"{server.url}/up", QUICK)
        assert server.files["/up"] == content
    assert list(login._slow.values()) == [False]
    assert not any("one command" in note for note in report.notes)


def test_who_cannot_be_reached_again_is_not_known_by_it(tmp_path: Path) -> None:
    """What the first connection was told is reported, and nothing is remembered."""
    clients: list[socket.socket] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def greet_once() -> None:
            clients.append(listener.accept()[0])
            clients[0].sendall(b"220 ready\r\n")

        thread = threading.Thread(target=greet_once)
        thread.start()
        url = f"ftp://127.0.0.1:{listener.getsockname()[1]}/file"
        with pytest.raises(TransferTimeout, match="did not answer"):
            mpx.copy(url, tmp_path / "file", mpx.CopyOptions(retries=0, timeout_s=0.3, connect_timeout_s=0.3))
        thread.join()
    clients[0].close()
    assert not login._slow


def test_one_that_is_full_after_two_attempts_is_known_all_the_same(tmp_path: Path) -> None:
    """It admits one session, and has not noticed yet that the one before it has ended."""
    with OneByOneServer("closes", {"/down": b"123"}) as server:
        server.banners = iter(["220 ready", "220 ready", "421 too many"])
        with pytest.raises(ConnectionLost):
            mpx.copy(f"{server.url}/down", tmp_path / "down", QUICK)
        offended = server.offended
        mpx.copy(f"{server.url}/down", tmp_path / "down", QUICK)
        assert server.offended == offended == 2


def test_one_that_is_full_understands_logins_at_once(tmp_path: Path) -> None:
    """A refusal that says why is the answer to the login, and no sign that it was not understood."""
    refusals = iter(["530 Sorry, the maximum number of clients are already connected."])
    script = {"USER": lambda *_: "331 who?", "PASS": lambda *_: next(refusals, "230 welcome")}
    with StoringServer(script, files={"/down": b"123"}) as server:
        mpx.copy(f"{server.url}/down", tmp_path / "down", QUICK)
    assert not login._slow


def refused(*_: object) -> str:
    return "530 Login incorrect."


def refused_late(*_: object) -> str:
    time.sleep(1.5)  # three times as long as may pass in silence here
    return refused()


def not_understood(*_: object) -> str:
    return "503 Login incorrect."


@pytest.mark.parametrize("answer", [refused, refused_late, not_understood])
def test_a_refused_login_is_no_reason_to_try_again(
    answer: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second attempt with a wrong password may lock an account."""
    monkeypatch.setenv("MPX_PASSWORD", "secret")
    script = {"USER": lambda *_: "331 who?", "PASS": answer}
    with StoringServer(script) as server:
        with pytest.raises(AuthenticationError):
            mpx.copy(f"{server.url.replace('//', '//me@')}/file", tmp_path / "file", QUICK)
        assert server.heard.count("USER") == server.heard.count("PASS") == 1


def test_a_password_that_is_never_answered_is_not_sent_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MPX_PASSWORD", "secret")
    silent = dict.fromkeys(("PASS", "FEAT", "TYPE", "PWD", "MODE", "MLST", "SIZE"), lambda *_: None)
    with StoringServer({"USER": lambda *_: "331 who?", **silent}) as server:
        with pytest.raises(TransferTimeout):
            options = mpx.CopyOptions(retries=0, timeout_s=1)
            mpx.copy(f"{server.url.replace('//', '//me@')}/file", tmp_path / "file", options)
        assert server.heard.count("PASS") == 1


def test_no_password_for_a_server_that_wants_encryption(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MPX_PASSWORD", "secret")
    with StoringServer({"USER": lambda *_: "530 Non-anonymous sessions must use encryption."}) as server:
        with pytest.raises(AuthenticationError, match="in the clear only"):
            mpx.copy(f"{server.url.replace('//', '//me@')}/file", tmp_path / "file", QUICK)
        assert "PASS" not in server.heard
