"""Where data connections go that we open: to the host of the session, however the server answers."""

import contextlib
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from interop.scripted_server import Dialogue, Script, ScriptedServer
from interop.stock_server import StockServer
from mpx_command import mpx as run_mpx

import mpx
from mpx.errors import ConnectionLost

OPTIONS = mpx.CopyOptions(retries=0, timeout_s=10, connect_timeout_s=10)
ELSEWHERE = "127.0.0.2"


def no_mode_e(_: Dialogue, mode: str) -> str:
    return "504 no" if mode == "E" else "200 ok"


def refused(*_: object) -> str:
    return "502 not implemented"


def fetch(
    script: Script, near: Path, options: mpx.CopyOptions = OPTIONS, host: str = "127.0.0.1"
) -> list[str]:
    """Copy the file of a server without MODE E; return the commands that it has heard."""
    with ScriptedServer({"MODE": no_mode_e, **script}, host=host) as server:
        mpx.copy(f"{server.url}/file", str(near), options)
        assert near.read_bytes() == server.content
        return server.heard


def with_port(text: str) -> Callable[[Dialogue, str], str]:
    """Answer with a port that listens, its two halves and the whole put into `text`."""

    def answer(dialogue: Dialogue, _: str) -> str:
        port = dialogue.listen()
        return text.format(port // 256, port % 256, port)

    return answer


@pytest.mark.parametrize(
    "script",
    [
        {},
        {"PASV": refused},
        {"EPSV": refused},
        {"EPSV": lambda *_: "229 go (|||x|)"},
        {"EPSV": lambda *_: "200 ok"},
        {"EPSV": refused, "PASV": with_port("227 go (127, 0, 0, 1, {}, {})")},
        {"EPSV": refused, "PASV": with_port("227 127,0,0,1,{},{}")},
        {"EPSV": refused, "PASV": with_port("227 [127,0,0,1,{},{}].")},
        {"EPSV": refused, "PASV": with_port("227 go (0,0,0,0,{},{})")},
        {"banner": lambda *_: "120 in a minute\r\n120 soon\r\n220 ready"},
        {"banner": lambda *_: "220-welcome\r\n\r\n220-220 to all\r\n220 ready"},
    ],
)
def test_answers_that_name_a_port(script: Script, tmp_path: Path) -> None:
    fetch(script, tmp_path / "file")


@pytest.mark.parametrize(
    "script",
    [
        {"EPSV": lambda d, a: "501 no argument" if a else Dialogue._epsv(d, a)},
        {"EPSV": lambda d, a: Dialogue._epsv(d, a) if a == "2" else "501 which?"},
        {"EPSV": refused, "PASV": with_port("227 go (0,0,0,0,{},{})")},
    ],
)
def test_answers_over_ipv6(script: Script, tmp_path: Path) -> None:
    fetch(script, tmp_path / "file", host="::1")


def test_who_has_no_epsv_is_asked_for_it_once_a_session(tmp_path: Path) -> None:
    heard = fetch({"EPSV": refused}, tmp_path / "file")
    assert heard.count("EPSV") <= heard.count("USER")
    folder = tmp_path / "folder"
    with ScriptedServer({"EPSV": refused, "MODE": no_mode_e}) as server:
        for _ in range(3):
            mpx.copy(f"{server.url}/folder", str(folder), mpx.CopyOptions(recursive=True, overwrite="always"))
        assert server.heard.count("EPSV") <= server.heard.count("USER")


@pytest.fixture
def bait() -> Iterator[tuple[int, list[str]]]:
    """A port of another host where nobody is to come."""
    with contextlib.ExitStack() as held:
        while True:  # until the port is free at the server's own address too, where nobody is to listen
            listener = held.enter_context(socket.create_server((ELSEWHERE, 0)))
            own = held.enter_context(socket.socket())
            with contextlib.suppress(OSError):
                own.bind(("127.0.0.1", listener.getsockname()[1]))
                break
        listener.settimeout(0.1)
        yield listener.getsockname()[1], []
        with pytest.raises(TimeoutError):
            listener.accept()


def test_another_host_is_not_followed(bait: tuple[int, list[str]], tmp_path: Path) -> None:
    port, _ = bait
    named = f"227 go (127,0,0,2,{port // 256},{port % 256})"
    with pytest.raises(ConnectionLost, match="--data-address-from-server"):
        script: Script = {"EPSV": refused, "PASV": lambda *_: named, "RETR": lambda *_: None}
        fetch(script, tmp_path / "file")  # the server waits, or it would be lost before the port was tried


def pasv_elsewhere(dialogue: Dialogue, _: str) -> str:
    dialogue.server.host, host = ELSEWHERE, dialogue.server.host
    port = dialogue.listen()
    dialogue.server.host = host
    return f"227 go (127,0,0,2,{port // 256},{port % 256})"


def test_another_host_is_followed_where_that_is_asked_for(tmp_path: Path) -> None:
    options = mpx.CopyOptions(retries=0, timeout_s=10, data_address_from_server=True)
    assert "EPSV" not in fetch({"PASV": pasv_elsewhere}, tmp_path / "file", options)


def test_listings_too(tmp_path: Path) -> None:
    with ScriptedServer({"EPSV": refused, "PASV": pasv_elsewhere}) as server:
        ended = run_mpx("list", f"{server.url}/folder")
        assert (ended.code, "--data-address-from-server" in ended.err) == (6, True), ended
        ended = run_mpx("list", "--data-address-from-server", f"{server.url}/folder")
        assert (ended.code, ended.out, ended.err) == (0, "file\n", "")


@pytest.mark.parametrize("port", [1, 22, 1023])
@pytest.mark.parametrize("from_server", [False, True])
def test_ports_of_other_services_are_refused(port: int, from_server: bool, tmp_path: Path) -> None:
    script: Script = {
        "EPSV": lambda *_: f"229 go (|||{port}|)",
        "PASV": lambda *_: f"227 go (127,0,0,1,{port // 256},{port % 256})",
    }
    options = mpx.CopyOptions(retries=0, data_address_from_server=from_server)
    with pytest.raises(ConnectionLost, match=f"port {port} for data.* below 1024"):
        fetch(script, tmp_path / "file", options)


@pytest.mark.peers
@pytest.mark.parametrize("from_server", [False, True])
@pytest.mark.parametrize("direction", ["up", "down"])
def test_a_stock_server_with_its_data_elsewhere(direction: str, from_server: bool, tmp_path: Path) -> None:
    """It names the other address and, as it listens at all, both lead there."""
    root, near, content = tmp_path / "served", tmp_path / "near", b"0123456789" * 1_000_003
    root.mkdir()
    (near if direction == "up" else root / "far").write_bytes(content)
    with StockServer(root, arguments=("-data-interface", ELSEWHERE)) as server:
        pair = (str(near), f"{server.url}far") if direction == "up" else (f"{server.url}far", str(near))
        mpx.copy(*pair, mpx.CopyOptions(data_address_from_server=from_server, retries=0))
    assert (root / "far").read_bytes() == near.read_bytes() == content
