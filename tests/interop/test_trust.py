"""Data connections: who is believed, which ports they use, and how streams are shared when some fail."""

import os
import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path

import pytest
from free_ports import free_ports
from interop.control_relay import ControlRelay
from mpx_command import copied, mpx, refused
from random_bytes import random_bytes
from sites import Site

import mpx as api
from mpx.endpoints.ftp.framing import BlockHeader
from mpx.endpoints.ftp.wire import parse_host_port
from mpx.engine.tuner import Decision, Sample
from mpx.transfer.congestion_plan import SERVER_CHOOSES
from mpx.units import counted

pytestmark = pytest.mark.peers
SIZE = 24_000_001
STRANGER = "127.0.0.2"
GARBAGE = b"GET / HTTP/1.1\r\nHost: somebody\r\n\r\n"
BEYOND_THE_END = BlockHeader(0, 1000, 1 << 50).pack() + bytes(1000)


@pytest.fixture
def content() -> bytes:
    return random_bytes(SIZE)


def port_of(site: Site) -> int:
    return int(site.url.split(":")[2].split("/")[0])


def through(relay: ControlRelay, site: Site) -> str:
    return site.url.replace(f":{port_of(site)}/", f":{relay.port}/")


class Strangers:
    """Connect to each port that a client listens on, before its server does."""

    def __init__(self) -> None:
        self.silent: list[socket.socket] = []
        self.met = 0

    def hear(self, line: bytes) -> bytes:
        if line.startswith(b"PORT"):
            address = parse_host_port(line.decode())
            for said in (b"", b"x", GARBAGE, BEYOND_THE_END, b"\xff" * 1000):
                for source in (STRANGER, "127.0.0.1"):
                    self.silent.append(socket.create_connection(address, source_address=(source, 0)))
                    self.silent[-1].sendall(said)
                    self.met += 1
        return line

    def close(self) -> None:
        for each in self.silent:
            each.close()


@pytest.mark.parametrize("options", [{"streams": 4}, {}], ids=["fixed", "tuned"])
def test_strangers_at_the_data_port(far: Site, here: Path, content: bytes, options) -> None:
    far.write("a", content)
    strangers = Strangers()
    with (
        closing(strangers),
        ControlRelay(port_of(far), to_server=strangers.hear) as relay,
    ):
        report = api.copy(f"{through(relay, far)}a", str(here / "b"), api.CopyOptions(**options))
    assert strangers.met >= 10
    assert (here / "b").read_bytes() == content
    assert set(report.notes) <= {SERVER_CHOOSES}
    assert report.checksum["result"] == "verified"


def naming(host: str) -> Callable[[bytes], bytes]:
    """Have a server name this host where data is to go."""

    def change(line: bytes) -> bytes:
        if not line.startswith(b"227"):
            return line
        numbers = line.split(b"(")[1].split(b")")[0].split(b",")
        return b"227 Entering Passive Mode (%s,%s,%s)\r\n" % (host.replace(".", ",").encode(), *numbers[4:])

    return change


def test_a_server_that_does_not_know_its_address(far: Site, here: Path, content: bytes) -> None:
    (here / "a").write_bytes(content)
    with ControlRelay(port_of(far), to_client=naming("0.0.0.0")) as relay:
        api.copy(str(here / "a"), f"{through(relay, far)}b")
        assert (far.folder / "b").read_bytes() == content
        copied(mpx("list", through(relay, far)))


def test_a_server_that_sends_nothing(stock: Site, here: Path, content: bytes) -> None:
    """It says that all is sent, and connects to nobody: then we connect to it."""
    stock.write("a", content)

    def no_eret(line: bytes) -> bytes:
        return b"NOOP\r\n" if line.startswith(b"ERET") else line

    with ControlRelay(port_of(stock), to_server=no_eret) as relay:
        report = api.copy(
            f"{through(relay, stock)}a", str(here / "b"), api.CopyOptions(timeout_s=5.0, max_sessions=2)
        )
        assert (here / "b").read_bytes() == content
        assert any("cannot connect to us" in note for note in report.notes), report.notes
        ended = mpx("copy", "--tuner", "paper", "--timeout", "5s", f"{through(relay, stock)}a", here / "c")
        copied(ended)
        assert "--tuner paper is not available: in MODE S" in ended.out
    assert (here / "c").read_bytes() == content


# --- ports -------------------------------------------------------------------------------------------


@pytest.fixture
def taken_port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as holder:
        yield holder.getsockname()[1]


def test_no_port_to_listen_on(stock: Site, here: Path, taken_port: int) -> None:
    stock.write("a", b"x")
    range_ = f"{taken_port}-{taken_port}"
    refused(mpx("copy", "--port-range", range_, stock.url_of("a"), here / "b"), 2, "no free port", "widen")
    assert os.listdir(here) == []


def test_no_port_to_connect_from(stock: Site, here: Path, taken_port: int) -> None:
    (here / "a").write_bytes(b"x")
    range_ = f"{taken_port}-{taken_port}"
    refused(mpx("copy", "--source-ports", range_, here / "a", stock.url), 2, "no free port", "widen")
    assert os.listdir(stock.folder) == []


@pytest.mark.parametrize("ports", [1, 2])
def test_few_ports_to_listen_on_are_enough(far: Site, here: Path, content: bytes, ports: int) -> None:
    """There are fewer sessions then; a port is free again once the connections to it are in."""
    far.write("a", content)
    first, last = free_ports(ports)
    options = api.CopyOptions(port_range=f"{first}-{last}", initial_streams=8, rate_bps=80e6)
    report = api.copy(far.url_of("a"), str(here / "b"), options)
    assert (here / "b").read_bytes() == content
    notes = [note for note in report.notes if note != SERVER_CHOOSES]
    assert all("port" in note for note in notes), notes
    assert notes[0].startswith(f"at most {counted(ports, 'session')} for data: ")


# --- sessions that the server does not let in ----------------------------------------------------------


class Fixed:
    """A tuner that wants so many streams and no others."""

    def __init__(self, streams: int) -> None:
        self._streams = streams

    def observe(self, now_s: float, samples: Mapping[str, Sample]) -> Sequence[Decision]:
        return [Decision(path, self._streams, "fixed by a test") for path in samples] if not now_s else []


def test_those_that_are_let_in_get_all_streams(stock: Site, here: Path, monkeypatch, content: bytes) -> None:
    monkeypatch.setattr("mpx.transfer.tuner_choice.tuner_for", lambda *_: Fixed(8))
    content *= 2
    stock.write("a", content)
    seen, asked = [], []

    def three_only(line: bytes) -> bytes:
        if line == b"MODE E\r\n":
            asked.append(line)
        return line if line != b"MODE E\r\n" or len(asked) <= 3 else b"MODE X\r\n"

    with ControlRelay(port_of(stock), to_server=three_only) as relay:
        report = api.copy(
            f"{through(relay, stock)}a",
            str(here / "b"),
            api.CopyOptions(
                rate_bps=30e6
            ),  # so slowly that a session might be left for another, in vain here
            on_progress=lambda progress: seen.append(progress.streams),
        )
    assert (here / "b").read_bytes() == content
    assert len(asked) >= 8  # by each session; the first has found out whether it can
    assert 8 in seen  # more are counted while new connections take over from old ones
    assert any("no further session" in note for note in report.notes), report.notes


def test_a_further_login_that_is_refused_costs_only_that_session(
    stock: Site, here: Path, content: bytes
) -> None:
    stock.write("a", content)
    logins: list[bytes] = []

    def full(line: bytes) -> bytes:
        if not line.startswith(b"USER"):
            return line
        logins.append(line)
        return line if len(logins) <= 3 else b"USER somebody-else\r\n"

    with ControlRelay(port_of(stock), to_server=full) as relay:
        report = api.copy(
            f"{through(relay, stock)}a", str(here / "b"), api.CopyOptions(initial_streams=8, rate_bps=200e6)
        )
    assert (here / "b").read_bytes() == content
    assert len(logins) > 3
    assert any("further session" in note for note in report.notes), report.notes


def test_a_server_that_refuses_several_connections_gets_one_for_each_session(
    stock: Site, here: Path, content: bytes
) -> None:
    stock.write("a", content)

    def no_parallelism(line: bytes) -> bytes:
        return b"OPTS NONSENSE x\r\n" if line.startswith(b"OPTS RETR") else line

    with ControlRelay(port_of(stock), to_server=no_parallelism) as relay:
        options = api.CopyOptions(streams=3, max_sessions=1, retries=0)
        report = api.copy(f"{through(relay, stock)}a", str(here / "b"), options)
    assert (here / "b").read_bytes() == content
    assert any("one connection for each session" in note for note in report.notes), report.notes


def test_the_rtt_is_measured_while_a_long_listing_goes_on(far: Site, eventually, monkeypatch) -> None:
    from mpx.engine.endpoint import Rtt
    from mpx.rtt.prober import Prober, beside_listing

    monkeypatch.setattr("mpx.rtt.prober.INTERVAL_S", 0.05)
    listed = threading.Event()
    listing = threading.Thread(target=listed.wait, daemon=True)
    listing.start()
    busy, another = far.open(writing=False), far.open(writing=False)
    sessions = beside_listing(busy, listing, lambda: another, has_let_go=lambda: False)
    probe = Prober("rtt", sessions, first=Rtt(99.0, None))
    probe.start()
    try:
        eventually(lambda: probe.measured.rtt.asked_s < 9)
        assert probe.measured.rtt.kernel_s > 0
    finally:
        listed.set()
        listing.join()
        probe.end()
        probe.join()
