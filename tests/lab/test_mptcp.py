"""Connections of Multipath TCP that Linux makes, in a real Open vSwitch: which links their subflows take."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from mptcp_hosts import Sender, receiver
from mpx_command import command
from mpx_controller.cookies import Kind, cookie
from mpx_lab.lab import Lab
from mpx_lab.plan import SWITCHES, Controller, netns_name
from running_controller import Running, controller
from sites import make
from smoc.addresses import give_addresses, take_subflows

Make = Callable[..., Lab]
Eventually = Callable[..., None]
BETWEEN = ("s1-s2", "s1-s3", "s1-s4", "s1-s5")
SHARE = 1_000_000  # bytes; what else is on a link is far less


@pytest.fixture
def at_the_end() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def spreading(
    make_lab: Make, running: Running, eventually: Eventually, at_the_end: ExitStack, folder: Path
) -> Lab:
    """Return a lab with a receiver at dst, whose host src makes three more subflows of each connection."""
    lab = make_lab("thesis-a", controller=Controller("127.0.0.1", running.port))
    capacities = folder / "capacities.json"
    capacities.unlink(missing_ok=True)
    capacities.symlink_to(lab.status()["capacities"])
    give_addresses(lab, "src", 4)
    take_subflows(lab, "dst")
    at_the_end.callback(receiver(lab, "dst").kill)
    eventually(lambda: len(running.get("topology")["links"]) == 16)

    def spoken() -> bool:
        refused = f"import socket; socket.socket().connect_ex(({lab.host('src').address_of('dst')!r}, 9))"
        lab.host("src").run([sys.executable, "-c", refused], check=True)
        return len(running.get("topology")["hosts"]) == 2

    eventually(spoken)
    return lab


def steering(lab: Lab) -> list[str]:
    """Return the entries of subflows that the switches hold, without their counters."""
    found = []
    for switch in lab.topology.switches:
        target = f"unix:{lab.folder}/ovs/{switch}.mgmt"
        words = ["ip", "netns", "exec", netns_name(lab.id, SWITCHES), "ovs-ofctl", "-O", "OpenFlow13"]
        asked = [*words, "dump-flows", target, f"cookie={cookie(Kind.MPTCP):#x}/{0xFFFFFF << 40:#x}"]
        lines = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.splitlines()
        found += [f"{switch} {line[line.index('priority=') :]}" for line in lines if "tp_src=" in line]
    return sorted(found)


def carried(lab: Lab) -> list[int]:
    """Return the bytes that each of the four links has carried from src to dst."""
    return [lab.link(name).stats().a_to_b.delivered.bytes for name in BETWEEN]


def filled(lab: Lab, sender: Sender, count: int = 12 * SHARE) -> list[int]:
    """Return the places of the links that what a connection sends goes over."""
    before = carried(lab)
    assert sender.send(count) >= 1
    return [n for n, (was, now) in enumerate(zip(before, carried(lab), strict=True)) if now - was >= SHARE]


def subflows(running: Running) -> list[dict[str, Any]]:
    return [each for connection in running.get("mptcp") for each in connection["subflows"]]


def test_subflows_take_different_paths_until_they_end(
    make_lab: Make, eventually: Eventually, at_the_end: ExitStack, tmp_path: Path
) -> None:
    with controller(tmp_path / "state.json") as running:
        lab = spreading(make_lab, running, eventually, at_the_end, tmp_path)
        sender = Sender(lab, "src", "dst")
        sender.send(1)
        eventually(lambda: len(subflows(running)) == 4)
        assert sorted(each["switches"][1] for each in subflows(running)) == ["2", "3", "4", "5"]
        assert len(steering(lab)) == 4 * (4 + 2 + 4)
        eventually(lambda: filled(lab, sender) == [0, 1, 2, 3])
        sender.end()
        eventually(lambda: not subflows(running))
        eventually(lambda: not steering(lab))
        assert running.metric("mptcp_joins_unknown_total") == 0

        killed = Sender(lab, "src", "dst")
        killed.send(1)
        eventually(lambda: len(steering(lab)) == 40)
        killed.kill()
        eventually(lambda: not steering(lab))


@pytest.mark.long
@pytest.mark.parametrize("restart", [False, True])
def test_a_cut_and_a_restart_in_the_middle(
    make_lab: Make, eventually: Eventually, at_the_end: ExitStack, tmp_path: Path, restart: bool
) -> None:
    state = tmp_path / "state.json"
    with controller(state) as running:
        port = running.port
        lab = spreading(make_lab, running, eventually, at_the_end, tmp_path)
        sender = Sender(lab, "src", "dst")
        sender.send(1)
        eventually(lambda: len(subflows(running)) == 4)

        lab.link("s1-s4").set_up(False)
        eventually(lambda: {each["switches"][1] for each in subflows(running)} == {"2", "3", "5"})
        assert 2 not in filled(lab, sender)
        lab.link("s1-s4").set_up(True)
        eventually(lambda: {each["switches"][1] for each in subflows(running)} == {"2", "3", "4", "5"})
        eventually(lambda: filled(lab, sender) == [0, 1, 2, 3])
        if not restart:
            sender.end()
            return
        # A busy machine may lose sight of a link for a while.
        eventually(lambda: {each["switches"][1] for each in subflows(running)} == {"2", "3", "4", "5"})
        before, entries = subflows(running), steering(lab)
    eventually(lambda: filled(lab, sender) == [0, 1, 2, 3])
    with controller(state, port) as running:
        eventually(lambda: subflows(running) == before)
        eventually(lambda: len(running.get("topology")["links"]) == 16)
        eventually(lambda: steering(lab) == entries)  # some had no packet for 10 s if the start took so long
        eventually(lambda: filled(lab, sender) == [0, 1, 2, 3])
        eventually(lambda: subflows(running) == before and steering(lab) == entries)
        sender.end()
        eventually(lambda: not steering(lab))


def test_a_copy_and_back_over_four_paths_with_one_stream(
    make_lab: Make, eventually: Eventually, at_the_end: ExitStack, tmp_path: Path
) -> None:
    served, report = tmp_path / "served", tmp_path / "report.json"
    served.mkdir()
    make(tmp_path / "file", 40 * SHARE)
    with controller(tmp_path / "state.json") as running:
        lab = spreading(make_lab, running, eventually, at_the_end, tmp_path)
        give_addresses(lab, "dst", 4)
        host = lab.host("dst").addresses[0]
        words = ("serve", served, "--writable", "--host", host, "--insecure", "--allow-from", "10.0.0.0/24")
        server = lab.host("dst").popen(command(*words), stdout=subprocess.PIPE, text=True)
        at_the_end.callback(server.wait)
        at_the_end.callback(server.kill)
        assert server.stdout is not None and "serves" in server.stdout.readline()
        for names in ((tmp_path / "file", f"ftp://{host}/file"), (f"ftp://{host}/file", tmp_path / "back")):
            before = [lab.link(name).stats() for name in BETWEEN]
            words = ("copy", "-q", "--transport", "mptcp", "--streams", "1", "--report", report, *names)
            lab.host("src").run(command(*words), check=True, timeout=90)
            after = [lab.link(name).stats() for name in BETWEEN]
            carried = [
                now.a_to_b.delivered.bytes
                + now.b_to_a.delivered.bytes
                - was.a_to_b.delivered.bytes
                - was.b_to_a.delivered.bytes
                for was, now in zip(before, after, strict=True)
            ]
            assert min(carried) > SHARE, carried
            (stream,) = json.loads(report.read_text())["mptcp"]
            assert stream == {"in_use": True, "subflows": 4}
        sums = {file.read_bytes() for file in (tmp_path / "file", served / "file", tmp_path / "back")}
        assert len(sums) == 1
        eventually(lambda: not steering(lab))
