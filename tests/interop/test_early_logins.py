"""Servers that are known to take a login in one write are sent it before they greet us, and may mind that."""

import select
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from interop.foreign_servers import ForeignServer
from interop.rounds import Rounds
from interop.scripted_server import PATIENCE_S, Dialogue
from interop.storing_server import FEATURES, StoringServer
from sites import make

import mpx
from mpx.endpoints.ftp.known_servers import KnownServers, Login
from mpx.endpoints.ftp.login import log_in
from mpx.endpoints.ftp.session import ClientSession, SessionOptions
from mpx.errors import SessionEnded, TransferTimeout
from mpx.location import parse_location

QUICK = mpx.CopyOptions(retries=1, timeout_s=5, connect_timeout_s=5)
LOST = ConnectionError("lost")


def closes(dialogue: Dialogue) -> str:
    raise LOST


def says_421(dialogue: Dialogue) -> str:
    dialogue.say("421 talk when you are asked")
    raise LOST


def says_500(dialogue: Dialogue) -> str:
    dialogue.control.recv(65536)
    dialogue.say("220 ready")
    return "500 talk when you are asked"


def loses(dialogue: Dialogue) -> str:
    dialogue.control.recv(65536)
    return "220 ready"


def nameless(dialogue: Dialogue) -> str:
    dialogue.control.recv(65536)
    return "220 "


def wants_no_login(dialogue: Dialogue) -> str:
    return "230 welcome"


@pytest.fixture(autouse=True)
def _knows_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mpx.endpoints.ftp.login._slow", {})
    monkeypatch.setattr("mpx.endpoints.ftp.login._ask_for_password", set())


class Minds:
    """Banners: the first connection gets one once it has spoken, as the test wants it; the others at once."""

    def __init__(self, reacts: Callable[[Dialogue], str]) -> None:
        self._reacts = iter([reacts])
        self.heard = b""  # before the greeting
        self.then = "220 ready"  # to all others
        self.connections = 0
        self._is_in: Dialogue | None = None  # who was greeted with 230

    def __call__(self, dialogue: Dialogue, _: str) -> str:
        self.connections += 1
        reacts = next(self._reacts, None)
        if reacts is None:
            return self.then
        assert select.select([dialogue.control], [], [], PATIENCE_S)[0]
        self.heard = dialogue.control.recv(65536, socket.MSG_PEEK)
        banner = reacts(dialogue)
        self._is_in = dialogue if banner.startswith("230") else None
        return banner

    def user(self, dialogue: Dialogue, _: str) -> str:
        """Answer USER."""
        return "530 somebody is here" if dialogue is self._is_in else "331 and?"


def opened(minds: Minds) -> StoringServer:
    """Return a server that was seen to take logins in one write in an earlier run."""
    script = {"banner": minds, "USER": minds.user, "PASS": lambda *_: "230 welcome"}
    server = StoringServer(script, features=(*FEATURES, "ERET", "PARALLEL"), checksums=True, mode_e=True)
    KnownServers().saw(address(server), Login.EARLY)
    return server


def address(server: StoringServer) -> tuple[str, int]:
    location = parse_location(server.url + "/")
    return location.host, location.port


@pytest.mark.parametrize("reacts", [closes, says_421, says_500, loses, nameless, wants_no_login])
def test_who_minds_gets_a_second_connection(
    reacts: Callable[[Dialogue], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if reacts in (loses, nameless):
        monkeypatch.setattr("mpx.endpoints.ftp.login.QUIET_S", 0.5)
    content = make(tmp_path / "up", 300_001).read_bytes()
    minds = Minds(reacts)
    with opened(minds) as server:
        mpx.copy(tmp_path / "up", f"{server.url}/up", QUICK)
        assert server.files["/up"] == content
        assert minds.heard.startswith(b"USER anonymous\r\nPASS ")
        assert not KnownServers().takes_early(address(server))


def test_who_does_not_mind_stays_known(tmp_path: Path) -> None:
    content = make(tmp_path / "up", 300_001).read_bytes()
    minds = Minds(lambda _: "220 ready")
    with opened(minds) as server:
        mpx.copy(tmp_path / "up", f"{server.url}/up", QUICK)
        assert server.files["/up"] == content
        assert server.heard.count("USER") == 2  # of the session that looked and moved, and of the committer's
        assert KnownServers().takes_early(address(server))


def test_a_secret_waits_for_who_asks_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MPX_PASSWORD", "secret")
    content = make(tmp_path / "up", 300_001).read_bytes()
    minds = Minds(lambda _: "220 ready")
    with opened(minds) as server:
        mpx.copy(tmp_path / "up", server.url.replace("//", "//me@") + "/up", QUICK)
        assert server.files["/up"] == content
    assert minds.heard == b"USER me\r\n"


@pytest.mark.peers
def test_servers_of_others_do_not_mind(
    foreign: ForeignServer, tmp_path: Path, rounds: Rounds, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They ask for a password: the first session of each process says who it is before the greeting."""
    content = make(tmp_path / "up", 300_001).read_bytes()
    mpx.copy(tmp_path / "up", f"{foreign.url}up", QUICK)
    assert not rounds.early
    before = len(rounds.sessions)
    monkeypatch.setattr("mpx.endpoints.ftp.login._ask_for_password", set())  # as in another process
    mpx.copy(f"{foreign.url}up", tmp_path / "down", QUICK)
    assert (tmp_path / "down").read_bytes() == content
    assert rounds.early == [rounds.sessions[before]]
    first, second = rounds.of(rounds.early[0])[:2]
    assert first == [["USER"]] and second[0][0] == "PASS"


@pytest.mark.peers
def test_vsftpd_does_not_mind(vsftpd: tuple[str, Path], tmp_path: Path, rounds: Rounds) -> None:
    content = make(tmp_path / "up", 300_001).read_bytes()
    mpx.copy(tmp_path / "up", f"{vsftpd[0]}/up", QUICK)
    mpx.copy(f"{vsftpd[0]}/up", tmp_path / "down", QUICK)
    assert (tmp_path / "down").read_bytes() == content
    assert len(rounds.sessions) >= 3
    assert rounds.early == rounds.sessions[1:]


def test_who_has_taken_it_and_then_refuses_is_full(tmp_path: Path) -> None:
    """It is not taken for one that minds, and gets no second connection at once."""
    minds = Minds(lambda _: "220 ready")
    with opened(minds) as server:
        known = KnownServers()
        options = SessionOptions(connect_timeout_s=5, timeout_s=5, known=known)
        location = parse_location(server.url + "/")
        log_in(ClientSession(location, options)).close()
        minds.then = "421 too many"
        with pytest.raises(SessionEnded, match="too many"):
            log_in(ClientSession(location, options))
        assert minds.connections == 2
        assert known.takes_early(address(server))


@pytest.fixture
def silent() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener


def test_who_never_greets_is_not_tried_twice(silent: socket.socket) -> None:
    known = KnownServers()
    server = silent.getsockname()
    known.saw(server, Login.EARLY)
    options = SessionOptions(connect_timeout_s=0.3, known=known)
    session = ClientSession(parse_location(f"ftp://{server[0]}:{server[1]}/"), options)
    with pytest.raises(TransferTimeout, match="sent no greeting"):
        log_in(session)
    silent.accept()[0].close()
    silent.setblocking(False)
    with pytest.raises(BlockingIOError):
        silent.accept()
    assert known.takes_early(server)
