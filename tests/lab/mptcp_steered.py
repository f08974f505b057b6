"""Labs whose host src makes four subflows of each connection: what its switches steer, what its links carry.

As a program it runs one of its cases in a folder, for machines with simulated time: the Multipath TCP of some
kernels stalls for good where a busy machine reads slowly (Linux 6.18 did, one connection in a hundred).
"""

import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from mptcp_hosts import Sender, receiver
from mpx_controller.cookies import Kind, cookie
from mpx_lab.lab import Lab
from mpx_lab.plan import SWITCHES, Controller, netns_name
from mpx_lab.topologies import named
from running_controller import Running, controller
from smoc.addresses import give_addresses, take_subflows

Eventually = Callable[..., None]
BETWEEN = ("s1-s2", "s1-s3", "s1-s4", "s1-s5")
ALL = [0, 1, 2, 3]
SHARE = 1_000_000  # bytes; what else is on a link is far less


def spreading(
    make_lab: Callable[..., Lab],
    running: Running,
    eventually: Eventually,
    at_the_end: ExitStack,
    folder: Path,
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


def eventually(condition: Callable[[], object]) -> None:
    """Return when the condition holds; fails when it does not in 200 s of simulated time."""
    until_s = time.monotonic() + 200
    while not condition():
        assert time.monotonic() < until_s, "the condition did not come true"
        time.sleep(0.05)


def over(running: Running) -> list[str]:
    """Return the second switch of each subflow's path."""
    return sorted(each["switches"][1] for each in subflows(running))


def until_they_end(folder: Path, at_the_end: ExitStack, make_lab: Callable[..., Lab]) -> None:
    """Subflows take different paths, until they finish or are killed."""
    with controller(folder / "state.json") as running:
        lab = spreading(make_lab, running, eventually, at_the_end, folder)
        sender = Sender(lab, "src", "dst")
        sender.send(1)
        eventually(lambda: len(subflows(running)) == 4)
        assert over(running) == ["2", "3", "4", "5"]
        assert len(steering(lab)) == 4 * (4 + 2 + 4)
        eventually(lambda: filled(lab, sender) == ALL)
        sender.end()
        eventually(lambda: not subflows(running))
        eventually(lambda: not steering(lab))
        assert running.metric("mptcp_joins_unknown_total") == 0

        killed = Sender(lab, "src", "dst")
        killed.send(1)
        eventually(lambda: len(steering(lab)) == 40)
        killed.kill()
        eventually(lambda: not steering(lab))


def cut_and_restart(folder: Path, at_the_end: ExitStack, make_lab: Callable[..., Lab]) -> None:
    """Subflows leave a link that is cut and come back to it; a restart of the controller changes nothing."""
    state = folder / "state.json"
    with controller(state) as running:
        port = running.port
        lab = spreading(make_lab, running, eventually, at_the_end, folder)
        sender = Sender(lab, "src", "dst")
        sender.send(1)
        eventually(lambda: len(subflows(running)) == 4)

        lab.link("s1-s4").set_up(False)
        eventually(lambda: set(over(running)) == {"2", "3", "5"})
        assert 2 not in filled(lab, sender)
        lab.link("s1-s4").set_up(True)
        eventually(lambda: over(running) == ["2", "3", "4", "5"])
        eventually(lambda: filled(lab, sender) == ALL)
        before, entries = subflows(running), steering(lab)
    eventually(lambda: filled(lab, sender) == ALL)
    with controller(state, port) as running:
        assert subflows(running) == before and steering(lab) == entries
        eventually(lambda: len(running.get("topology")["links"]) == 16)
        eventually(lambda: filled(lab, sender) == ALL)
        assert subflows(running) == before and steering(lab) == entries
        sender.end()
        eventually(lambda: not steering(lab))


CASES = {each.__name__: each for each in (until_they_end, cut_and_restart)}

if __name__ == "__main__":
    with ExitStack() as ends_last:

        def simulated(name: str, controller: Controller) -> Lab:
            return ends_last.enter_context(Lab.up(named(name), "mptcp", controller=controller))

        CASES[sys.argv[1]](Path(sys.argv[2]), ends_last, simulated)
