"""A server of ours sends with the congestion control that it is told to; a stock one is not asked."""

import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from interop.stock_server import StockServer
from mpx_command import copied, mpx, refused, running
from mpx_lab.traffic.socket_table import SocketTable
from raw_client import CONTENT, RawClient, read_blocks

from mpx.endpoints.ftp.extensions import congestion as far_congestion
from mpx.endpoints.ftp.wire import format_host_port, parse_features
from mpx.net import congestion_control
from mpx.serve import Server
from mpx.serve.session import Limits

Eventually = Callable[..., None]
USABLE = congestion_control.usable_congestion()
ALL = Limits(congestion=USABLE)  # also where root runs the tests


def congestion_at(address: tuple[str, int]) -> set[str]:
    """With what the connections from that address are sent."""
    return {one.congestion for one in SocketTable().open() if one.local == address}


@pytest.fixture
def served(tmp_path: Path) -> Path:
    (tmp_path / "file").write_bytes(CONTENT)
    return tmp_path


def test_it_names_what_it_may_use(served: Path) -> None:
    with Server(served, limits=ALL) as server, RawClient(server.port) as client:
        told = parse_features(client.do("FEAT"))
    assert tuple(told[far_congestion.FEATURE].split()) == USABLE and len(USABLE) >= 2


def test_without_a_word_of_its_operator_it_sends_with_what_all_users_may_use(served: Path) -> None:
    permitted = congestion_control.permitted_congestion()
    with Server(served) as server, RawClient(server.port) as client:
        told = parse_features(client.do("FEAT")).get(far_congestion.FEATURE, "").split()
        may = {*permitted, default(server.port)}  # with that it would send anyway
        assert told == [name for name in USABLE if name in may]
        for name in set(USABLE) - may:
            assert client.do(f"OPTS RETR Congestion={name};").code == 504


def test_its_operator_says_what_clients_may_have_it_send_with(served: Path) -> None:
    words = ("serve", served, "--port", "0")
    with running(*words, "--congestion", "reno") as process:
        assert process.stdout
        port = int(process.stdout.readline().split(b"/")[2].split(b":")[1])
        with RawClient(port) as client:
            assert parse_features(client.do("FEAT"))[far_congestion.FEATURE] == "reno"
            assert client.do("OPTS RETR Congestion=reno;").code == 200
            assert client.do(f"OPTS RETR Congestion={(set(USABLE) - {'reno'}).pop()};").code == 504
    refused(mpx(*words, "--congestion", "nosuch"), 2, "nosuch")


def test_connections_that_are_kept_switch_with_the_next_retrieve(served: Path) -> None:
    with (
        Server(served, limits=ALL) as server,
        RawClient(server.port) as client,
        socket.create_server(("127.0.0.1", 0)) as at,
    ):
        assert client.do("MODE E").code == 200
        assert client.do(f"PORT {format_host_port(at.getsockname())}").code == 200
        data = None
        for name in (*USABLE, USABLE[0]):
            assert client.do(f"OPTS RETR Congestion={name};").code == 200
            client.send("ERET P 0 1000 file")
            data = data or at.accept()[0]
            assert read_blocks(data)[0] == [(0, CONTENT[:1000])]
            assert congestion_at(data.getpeername()) == {name}
            assert [client.reply().code for _ in range(2)][1] == 226
        assert data
        data.close()


@pytest.mark.parametrize("name", ["nosuch", "cubic bbr", "../cubic", "", "c" * 100, "\udcff"])
def test_what_it_may_not_use_is_refused_and_changes_nothing(served: Path, name: str) -> None:
    with Server(served, limits=ALL) as server, RawClient(server.port) as client:
        assert client.do(f"OPTS RETR Congestion={USABLE[-1]};").code == 200
        reply = client.do(f"OPTS RETR Congestion={name};")
        assert reply.code in (501, 504), reply
        reply, content = client.retrieve("RETR file")
        assert (reply.code, content) == (226, CONTENT)


def test_a_download_is_sent_as_asked(served: Path, tmp_path: Path, eventually: Eventually) -> None:
    """Slowly, so that its connections can be looked at; our own end has the kernel's default."""
    with Server(served, limits=ALL) as server:
        others = set(USABLE) - {default(server.port)}
        for name in others:
            words = ("--congestion", name, "--rate", "4Mbit/s", "--streams", "2")
            with running("copy", *words, f"{server.url}file", tmp_path / name) as copy:
                eventually(lambda name=name: name in congestions_of_data(server.port))
                assert copy.wait() == 0
            assert (tmp_path / name).read_bytes() == CONTENT
    assert others


def congestions_of_data(control: int) -> set[str]:
    """With what all connections are sent but for those to that port."""
    return {one.congestion for one in SocketTable().open() if control not in (one.local[1], one.peer[1])}


def default(port: int) -> str:
    with socket.create_connection(("127.0.0.1", port)) as plain:
        return congestion_control.congestion_of(plain)


def test_a_server_that_cannot_be_told_is_not_asked(served: Path) -> None:
    with StockServer(served) as stock:
        ended = mpx("copy", "--congestion", "reno", f"{stock.url}file", served / "here")
    assert "--congestion reno is not available: the server sends" in ended.out and "congctl" in ended.out
    copied(ended)
    assert (served / "here").read_bytes() == (served / "file").read_bytes()


def test_what_the_server_may_not_use_is_refused_before_anything(served: Path) -> None:
    with Server(served, limits=ALL) as server:
        ended = mpx("copy", "--congestion", "nosuch", f"{server.url}file", served / "here")
    refused(ended, 2, "may use only", USABLE[0], "modprobe tcp_nosuch")
    assert not (served / "here").exists()
