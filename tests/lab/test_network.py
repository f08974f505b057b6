"""Real frames through labs: addresses, links that change, two labs at once."""

import json
import socket
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest
from mpx_command import mpx
from mpx_lab.lab import Lab
from mpx_lab.plan import plan
from mpx_lab.reach import wait_reachable
from mpx_lab.shape import Direction, Shape
from mpx_lab.state import LabError
from mpx_lab.steps import Controller, WaitReachable
from mpx_lab.topologies import named
from pairs import PAIRS
from sockets import connection
from traces import devices, traces

from mpx.errors import UsageError

Make = Callable[..., Lab]
Eventually = Callable[..., None]


@pytest.mark.parametrize("name", ["path", "two-links", "star"])
def test_every_host_reaches_every_other_when_up_returns(make_lab: Make, name: str) -> None:
    lab = make_lab(name)
    for host in lab.hosts:
        for face in lab.topology.interfaces(host.name):
            for address in face.addresses:
                other = next(one.name for one in lab.hosts if one.name != host.name)
                with connection(lab, other, host.name, address) as (near, far):
                    near.sendall(b"x")
                    assert far.recv(1) == b"x"


def test_many_bytes_arrive_whole_over_switches_and_nothing_is_lost_outside_the_queue(make_lab: Make) -> None:
    lab = make_lab(PAIRS)
    lengths: dict[str, int] = {}

    def send(near: socket.socket) -> None:
        near.sendall(bytes(5_000_000))
        near.shutdown(socket.SHUT_WR)

    def receive(pair: str) -> None:
        with connection(lab, f"src{pair}", f"dst{pair}") as (near, far):
            sender = threading.Thread(target=send, args=(near,))
            sender.start()
            lengths[pair] = sum(len(chunk) for chunk in iter(lambda: far.recv(1 << 16), b""))
            sender.join()

    pairs = [threading.Thread(target=receive, args=(pair,)) for pair in ("1", "2")]
    for pair in pairs:
        pair.start()
    for pair in pairs:
        pair.join()
    assert lengths == {"1": 5_000_000, "2": 5_000_000}
    stats = lab.link("wan").stats()
    assert stats.a_to_b.delivered.bytes > 10_000_000
    assert stats.a_to_b.dropped_queue.frames > 0  # so the queue was full, and this was no easy run
    assert lab.lost_elsewhere() == 0


def test_nothing_of_a_lab_is_seen_outside(make_lab: Make) -> None:
    def outside() -> tuple[set[str], str, str]:
        routes, addresses = Path("/proc/net/route").read_text(), Path("/proc/net/if_inet6").read_text()
        return devices(), routes, addresses

    before = outside()
    make_lab(PAIRS)
    assert outside() == before


def test_two_labs_with_the_same_addresses_do_not_meet(make_lab: Make) -> None:
    one, other = make_lab("path"), make_lab("path")
    with connection(one, "src", "dst") as (near, far), connection(other, "src", "dst") as (near2, far2):
        near.sendall(b"one")
        near2.sendall(b"other")
        assert (far.recv(10), far2.recv(10)) == (b"one", b"other")
        other.link("wan").set_up(False)
        near.sendall(b"again")
        assert far.recv(10) == b"again"
        other.down()
        near.sendall(b"still")
        assert far.recv(10) == b"still"
    assert one.status()["links"][0]["up"]


def test_a_link_changes_while_it_runs_and_status_says_so(make_lab: Make) -> None:
    lab = make_lab("path")
    link = lab.link("wan")
    link.change(rate_bps=130e6, delay_s=0.0225, queue_packets=100, loss=0.0001)
    way = {
        "rate_bps": 130_000_000,
        "delay_s": 0.0225,
        "queue_bytes": 151_400,
        "queue_packets": 100,
        "loss": 0.0001,
    }
    whole = {"name": "wan", "ends": ["src", "dst"], **way, "back": None, "up": True, "hindrances": []}
    assert lab.status()["links"] == [whole]
    link.change(Direction.B_TO_A, rate_bps=1_000_000)
    assert lab.status()["links"] == [{**whole, "back": {**way, "rate_bps": 1_000_000}}]
    link.change("b-to-a", rate_bps=130e6)
    assert lab.status()["links"] == [whole]
    with pytest.raises(UsageError, match="write 'a-to-b' or 'b-to-a'"):
        link.change("a_to_b", seed=3)


def test_a_seed_gives_each_direction_its_losses_and_a_link_of_that_seed_the_same(make_lab: Make) -> None:
    lab = make_lab(replace(PAIRS, links=(replace(PAIRS.links[0], seed=5), *PAIRS.links[1:])))
    link = lab.link("wan")

    def seeds() -> tuple[int, int]:
        stats = link.stats()
        return stats.a_to_b.shape.seed, stats.b_to_a.shape.seed

    built = seeds()
    assert built[0] != built[1]
    link.change(seed=9)
    assert len({*built, *seeds()}) == 4
    link.change(Direction.B_TO_A, seed=5)
    assert seeds()[1] == built[1]
    link.change(seed=5)
    assert seeds() == built
    with pytest.raises(UsageError, match="the seed of the link wan"):
        link.change(seed=-1)


def test_a_link_that_another_version_started_is_a_fault_of_the_lab(make_lab: Make) -> None:
    lab = make_lab("path")
    control = lab.folder / "wan.control"
    control.unlink()
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as other, ThreadPoolExecutor() as aside:
        other.bind(str(control))
        other.listen()
        served = aside.submit(answer_once, other, b'{"name": "wan"}')
        (fault,) = lab.faults()
        served.result()
    assert "link wan does not work" in fault and "another version of mpx" in fault


def answer_once(listening: socket.socket, answer: bytes) -> None:
    with listening.accept()[0] as asking:
        asking.recv(100)
        asking.send(answer)


def test_a_link_that_is_cut_drops_its_carrier_and_works_again_afterwards(make_lab: Make) -> None:
    lab = make_lab("path")
    with connection(lab, "src", "dst") as (near, far):
        lab.link("wan").set_up(False)
        assert not lab.status()["links"][0]["up"]
        for host in ("src", "dst"):
            shown = lab.host(host).run(["ip", "-br", "link", "show", "eth0"], capture_output=True, text=True)
            assert "NO-CARRIER" in shown.stdout
        near.sendall(b"waits")
        lab.link("wan").set_up(True)
        assert far.recv(5) == b"waits"


def test_a_cable_can_be_pulled_and_nothing_else(make_lab: Make) -> None:
    lab = make_lab(PAIRS)
    cable = lab.link("src1-left")
    with connection(lab, "src1", "dst1") as (near, far):
        cable.set_up(False)
        assert not next(link for link in lab.status()["links"] if link["name"] == "src1-left")["up"]
        near.sendall(b"waits")
        cable.set_up(True)
        assert far.recv(5) == b"waits"
    with pytest.raises(UsageError, match="plain cable"):
        cable.change(rate_bps=1_000_000)


def test_who_is_not_reached_is_told(make_lab: Make) -> None:
    lab = make_lab("path")
    lab.link("wan").change(loss=1.0)
    pairs = next(step.pairs for step in plan(lab.topology, lab.id) if isinstance(step, WaitReachable))
    with pytest.raises(LabError, match=r"within 0.3 s, nor do 3 others; if a link is to lose"):
        wait_reachable(pairs, 0.3)


def test_two_changes_of_the_same_direction_at_once_both_stay(make_lab: Make) -> None:
    lab = make_lab("path")
    changes = ({"rate_bps": 1_000_000}, {"delay_s": 0.5}, {"loss": 0.5}, {"queue_packets": 7}, {"seed": 9})
    for _ in range(20):
        lab.link("wan").change(rate_bps=None, delay_s=0.0, loss=0.0, queue_bytes=None, seed=1)
        first, _ = lab.topology.direction_seeds("wan", 1)
        assert lab.link("wan").stats().a_to_b.shape == Shape(seed=first)
        both = [threading.Thread(target=lab.link("wan").change, kwargs=change) for change in changes]
        for one in both:
            one.start()
        for one in both:
            one.join()
        seed, _ = lab.topology.direction_seeds("wan", 9)
        assert lab.link("wan").stats().a_to_b.shape == Shape(1_000_000, 0.5, None, 7, 0.5, seed)


def test_switches_find_another_way_when_a_link_is_cut(make_lab: Make) -> None:
    lab = make_lab("thesis-b")
    pairs = next(step.pairs for step in plan(lab.topology, lab.id) if isinstance(step, WaitReachable))
    for name in ("s1-s5", "s1-s2"):
        lab.link(name).set_up(False)
        wait_reachable(pairs, 30.0)
        lab.link(name).set_up(True)


def test_switches_obey_a_controller_outside(make_lab: Make, eventually: Eventually) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening, ExitStack() as connections:
        listening.settimeout(30)
        port = listening.getsockname()[1]
        lab = make_lab(PAIRS, controller=Controller("127.0.0.1", port, "http://127.0.0.1:1", None))
        for _ in lab.topology.switches:
            switch = connections.enter_context(listening.accept()[0])
            switch.settimeout(30)
            version, kind = switch.recv(8)[:2]
            assert (version >= 1, kind) == (True, 0)  # HELLO
            switch.sendall(bytes((1, 0, 0, 8, 0, 0, 0, 1)))  # HELLO of OpenFlow 1.0
        eventually(lambda: lab.status()["connected"] == {"left": True, "right": True})
        assert "  all switches are connected to the controller\n" in mpx("lab", "status", "--lab", lab.id).out
        told = lab.status()
        openflow = f"tcp:127.0.0.1:{port}"
        assert told["controller"] == {"openflow": openflow, "rest": "http://127.0.0.1:1", "xmlrpc": None}
        capacities = json.loads(Path(told["capacities"]).read_text())
        assert capacities[0]["a"] == {"switch": "left", "datapath_id": 1, "port": 1}
        assert capacities[0]["rate_bps"] == 100_000_000


def test_a_controller_that_does_not_answer_is_told_with_the_reason(
    make_lab: Make, eventually: Eventually
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    lab = make_lab(PAIRS, controller=Controller("127.0.0.1", port))
    eventually(lab.controller_failure)
    assert lab.status()["connected"] == {"left": False, "right": False}
    said = mpx("lab", "status", "--lab", lab.id).out
    line = next(line for line in said.splitlines() if "NOT connected" in line)
    assert "left, right" in line and f"127.0.0.1 port {port}: Connection refused" in line


@pytest.mark.parametrize("host", ["no such host", "a..b"])
def test_a_controller_on_a_host_that_is_not_known_is_refused(lab_id: str, host: str) -> None:
    with pytest.raises(UsageError, match=f"host '{host}' cannot be resolved"):
        Lab.up(PAIRS, lab_id, controller=Controller(host, 6653))
    assert not traces(lab_id)


def test_the_capacities_are_those_of_the_links_as_they_are_now(make_lab: Make) -> None:
    lab = make_lab(PAIRS)
    link, file = lab.link("wan"), Path(lab.status()["capacities"])
    before = json.loads(file.read_text())
    mode = file.stat().st_mode
    for number in range(1, 11):  # two who change it at once do not write over each other
        changes = ({"rate_bps": number * 1_000_000}, {"delay_s": number / 1000})
        with ThreadPoolExecutor() as at_once:
            list(at_once.map(lambda change: link.change(**change), changes))
        wan, *others = json.loads(file.read_text())
        assert wan == {**before[0], "rate_bps": number * 1_000_000, "delay_s": number / 1000}
        assert others == before[1:]
    assert file.stat().st_mode == mode


def test_a_scaled_lab_says_so(make_lab: Make) -> None:
    told = make_lab("path", scale=0.5).status()
    assert told["scale"] == 0.5
    assert told["links"][0]["rate_bps"] == 100_000_000
    assert told["links"][0]["queue_bytes"] == 750_000
    assert told["links"][0]["delay_s"] == 0.03


def test_sources_come_before_sinks_with_all_addresses(make_lab: Make) -> None:
    assert make_lab("two-links").status()["hosts"] == [
        {"name": "src", "addresses": ["10.0.0.1", "fd00::1", "10.0.1.1", "fd00:0:0:1::1"]},
        {"name": "dst", "addresses": ["10.0.0.2", "fd00::2", "10.0.1.2", "fd00:0:0:1::2"]},
    ]


def test_hosts_have_large_buffers_and_forget_what_earlier_connections_learned(make_lab: Make) -> None:
    host = make_lab("path").host("src")
    files = [f"/proc/sys/net/ipv4/{name}" for name in ("tcp_wmem", "tcp_rmem", "tcp_no_metrics_save")]
    told = host.run(["cat", *files], capture_output=True, text=True)
    wmem, rmem, no_metrics = told.stdout.splitlines()
    assert (wmem.split()[2], rmem.split()[2], no_metrics) == ("512000000", "512000000", "1")


def test_a_lab_that_runs_is_not_built_again(make_lab: Make) -> None:
    lab = make_lab("path")
    with pytest.raises(LabError, match="is up already"):
        Lab.up(named("dumbbell"), lab.id)
    assert not lab.faults()
