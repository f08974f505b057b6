"""`mpx probe` over emulated links: long ones, lossy ones, and hosts that nothing reaches."""

import json
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from mpx_lab.lab import Lab
from mpx_lab.namespace import inside
from mpx_lab.topology import Topology, wan

from mpx.endpoints.ftp.session import ClientSession, SessionOptions
from mpx.location import Location
from mpx.rtt.method import Method
from mpx.rtt.methods.choose import Chosen, choose
from mpx.rtt.methods.handshake import HandshakeMethod
from mpx.rtt.methods.icmp import IcmpMethod
from mpx.rtt.methods.session import SessionMethod
from mpx.rtt.runner import Run
from mpx.rtt.schedule import single, trains
from mpx.rtt.series import Probe, summary
from mpx.serve import Server

RTT_S = 0.3
ROUNDING_S = 1e-4  # of clocks that are read one after the other
LONG = Topology("long", ("src",), ("dst",), (wan("src", "dst", 50_000_000, RTT_S),))
V4, V6 = "10.0.0.2", "fd00::2"
PING_RANGE = "/proc/sys/net/ipv4/ping_group_range"
IGNORE_ECHO = "/proc/sys/net/ipv4/icmp_echo_ignore_all"


@pytest.fixture
def lab(make_lab: Callable[..., Lab]) -> Lab:
    return make_lab(LONG)


@pytest.fixture(params=[V4, V6])
def address(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


@pytest.fixture
def server(lab: Lab, tmp_path: Path, address: str) -> Iterator[Server]:
    """`mpx serve` at the far host."""
    allowed = ["10.0.0.0/8"] if address == V4 else ["fd00::/8"]
    with inside(
        lab.host("dst").netns,
        lambda: Server(tmp_path, host=address, insecure=True, allow_from=allowed),
    ) as serving:
        yield serving


def choose_from(lab: Lab, host: str, port: int) -> Chosen:
    return inside(lab.host("src").netns, lambda: choose(host, [(host, port)], lambda: False))


def permit_icmp(lab: Lab, is_permitted: bool) -> None:
    groups = "0 2147483647" if is_permitted else "1 0"
    lab.host("src").run(["sh", "-c", f"echo {groups} > {PING_RANGE}"], check=True)


def ran(lab: Lab, way: Method, due: list[float]) -> list[Probe]:
    run = Run(way)
    inside(lab.host("src").netns, lambda: run.go(due, lambda: False))
    return run.probes()


def assert_long(probes: list[Probe], most: int) -> None:
    """All came back although three or more were always under way, and none was quicker than the link."""
    told = summary(probes)
    assert told.lost == 0
    assert 1 <= told.sent <= most
    assert told.min_s is not None
    assert told.min_s >= RTT_S - ROUNDING_S


def test_many_echoes_under_way(lab: Lab, server: Server, address: str) -> None:
    chosen = choose_from(lab, address, server.port)
    with chosen.opened:
        assert chosen.reason == "the server announces it"
        assert_long(ran(lab, chosen.method, single(2.0)), 20)
        assert_long(ran(lab, chosen.method, trains(2.0)), 20)


def test_many_questions_under_way_on_a_session(lab: Lab, server: Server, address: str) -> None:
    here, location = lab.host("src").netns, Location("ftp", "/", address, server.port)
    with inside(here, lambda: ClientSession(location, SessionOptions())) as session:
        session.greet()
        way = SessionMethod(session)
        assert_long(ran(lab, way, single(2.0)), 20)
        assert_long(ran(lab, way, trains(2.0)), 20)
        noise = way.noise()
        assert noise.rtt_s is not None
        assert noise.is_estimate
        assert noise.rtt_s < RTT_S  # the network is not in it


def test_many_handshakes_under_way(lab: Lab, server: Server, address: str) -> None:
    for port, is_open in ((server.port, True), (server.port - 1, False)):
        with closing(HandshakeMethod((address, port))) as way:
            assert_long(ran(lab, way, single(2.0)), 20)
            assert way.is_open is is_open


@pytest.mark.parametrize("is_permitted", [False, True])
def test_icmp_with_and_without_privilege(lab: Lab, address: str, is_permitted: bool) -> None:
    permit_icmp(lab, is_permitted)
    with closing(inside(lab.host("src").netns, lambda: IcmpMethod(address))) as way:
        assert way.name == f"ICMP echo ({'unprivileged' if is_permitted else 'raw'} socket)"
        assert_long(ran(lab, way, single(2.0)), 20)


def test_what_the_link_loses_is_told(lab: Lab, server: Server, address: str) -> None:
    link = lab.link("wan")
    chosen = choose_from(lab, address, server.port)
    with chosen.opened:
        link.change(loss=0.1)
        told = summary(ran(lab, chosen.method, single(6.0)))
    stats = link.stats()
    assert told.sent <= 60
    assert 0 < told.lost <= stats.a_to_b.dropped_loss.frames + stats.b_to_a.dropped_loss.frames


def test_a_session_does_not_see_what_the_link_loses_and_tells_what_it_sent_again(
    lab: Lab, server: Server, address: str
) -> None:
    here, location = lab.host("src").netns, Location("ftp", "/", address, server.port)
    with inside(here, lambda: ClientSession(location, SessionOptions())) as session:
        session.greet()
        way = SessionMethod(session)
        assert way.retransmissions == 0
        lab.link("wan").change(loss=0.2)
        ran(lab, way, single(6.0))
        lab.link("wan").change(loss=0.0)
        assert way.retransmissions > 0
        assert not way.sees_loss


# --- the command -----------------------------------------------------------------------------------


def probe(lab: Lab, *words: str, without: tuple[str, ...] = ()) -> "subprocess.CompletedProcess[str]":
    command = [*without, sys.executable, "-m", "mpx", "probe", "--json", "--window", "1s", *words]
    done: subprocess.CompletedProcess[str] = lab.host("src").run(command, capture_output=True, text=True)
    return done


def test_a_host_by_name_where_nothing_listens(lab: Lab) -> None:
    done = probe(lab, "dst")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["way"]["name"] == "TCP handshake (port 2811)"
    assert told["rtt"]["min_s"] >= RTT_S - ROUNDING_S


def test_a_noise_that_is_not_to_be_had_is_not_none(lab: Lab) -> None:
    """Here as this host does not answer itself; once it was said to be 0, after five minutes."""
    permit_icmp(lab, True)
    deaf, filling = inside(lab.host("dst").netns, full_port)
    with deaf, filling:
        lab.host("src").run(["sh", "-c", f"echo 1 > {IGNORE_ECHO}"], check=True)
        done = probe(lab, f"{V4}:{deaf.getsockname()[1]}")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["way"]["kind"], told["way"]["noise_s"], told["lost"]) == ("icmp", None, 0)
    assert "loopback" in told["way"]["noise_how"]


def full_port() -> tuple[socket.socket, socket.socket]:
    """A port whose queue is full: the kernel leaves what it has no room for unanswered."""
    listening = socket.socket()
    listening.bind((V4, 0))
    listening.listen(0)
    return listening, socket.create_connection(listening.getsockname())


def test_a_host_that_is_silent(lab: Lab) -> None:
    lab.link("wan").change(loss=1.0)
    done = probe(lab, V4)
    assert (done.returncode, done.stdout) == (6, "")
    assert done.stderr.startswith("mpx: cannot reach 10.0.0.2: ")
    assert "TCP port 2811: no answer; ICMP echo: no answer" in done.stderr
    assert "firewall" in done.stderr


def test_a_host_that_is_silent_where_icmp_is_not_permitted(lab: Lab) -> None:
    lab.link("wan").change(loss=1.0)
    permit_icmp(lab, False)
    done = probe(lab, V4, without=("setpriv", "--bounding-set=-net_raw"))
    assert done.returncode == 6
    assert "ICMP echo is not permitted to this user" in done.stderr
    assert "ping_group_range" in done.stderr


def test_a_host_that_no_way_leads_to(lab: Lab) -> None:
    done = probe(lab, "192.0.2.1")
    assert done.returncode == 6
    assert "Network is unreachable" in done.stderr
