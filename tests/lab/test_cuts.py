"""A cut that was asked for is no loss of the machine: not in the emulator's account, and not on the hosts."""

import os
import signal
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from lab_pair import Pair, entered
from mpx_lab import namespace
from mpx_lab.emulator.link import LinkError
from mpx_lab.judged import take_stock, verdict
from mpx_lab.lab import Lab
from mpx_lab.steps import SWITCHES, netns_name
from mpx_lab.topologies import named
from mpx_lab.topology import Link, Topology
from wires import OPEN, Eventually, Wired, carriers, stopped

CUTS = 20
SEND_DROPS = 11  # which number of a device in /proc/net/dev
TWO_SWITCHES = Topology(
    "two-switches",
    ("src",),
    ("dst",),
    (Link("left", "right", "wan", delay_s=0.005), Link("src", "left"), Link("right", "dst")),
    ("left", "right"),
)


def test_what_the_kernel_drops_while_a_link_is_cut_is_no_loss_and_what_it_drops_later_is(
    pair: Pair, wired: Wired, eventually: Eventually
) -> None:
    link, wire = wired(OPEN)
    for _ in range(CUTS):
        link.set_up(False)
        enough = threading.Event()
        sender = threading.Thread(target=wire.flood, args=(enough,))
        sender.start()
        assert carriers(pair) == [False, False]  # who asks the kernel has it drop from then on
        link.set_up(True)
        enough.set()  # before the device is full
        sender.join()
    assert link.stats().a_to_b.device_dropped == 0
    wire.make_room()
    os.kill(link.pid, signal.SIGSTOP)
    eventually(stopped(link))
    wire.send(11_000, 60)  # the device has room for 10,000
    os.kill(link.pid, signal.SIGCONT)
    eventually(lambda: link.stats().a_to_b.device_dropped >= 1000)


def test_a_cut_that_fails_at_one_end_is_none_at_the_other(pair: Pair) -> None:
    link = pair.start(OPEN, OPEN)
    for name, new in (("wan0", "other"), ("other", "wan0")):
        with entered(pair.netns[1]):
            subprocess.run(["ip", "link", "set", name, "name", new], check=True)
        if new == "other":
            with pytest.raises(LinkError, match="the device wan0 is not where it was made, so neither"):
                link.set_up(False)
    assert carriers(pair) == [True, True]
    assert link.stats().up


def dropped(lab: Lab) -> int:
    """What the kernel dropped instead of sending it, at all devices of the lab."""

    def of_a_namespace() -> int:
        lines = Path("/proc/thread-self/net/dev").read_text().splitlines()[2:]
        return sum(int(line.partition(":")[2].split()[SEND_DROPS]) for line in lines)

    names = [*lab.topology.hosts, *([SWITCHES] if lab.topology.switches else [])]
    return sum(namespace.inside(netns_name(lab.id, name), of_a_namespace) for name in names)


class Datagrams:
    """Sends a thousand a second from one host to another, whatever becomes of them."""

    def __init__(self, lab: Lab) -> None:
        self._end = threading.Event()
        self._socket = namespace.inside(
            lab.host("src").netns, lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        )
        self._to = (lab.host("dst").addresses[0], 9)

    def _send(self) -> None:
        while not self._end.wait(0.001):
            with suppress(OSError):  # nobody answers for the address while the link is cut
                self._socket.sendto(bytes(1000), self._to)

    @contextmanager
    def running(self) -> Iterator[None]:
        thread = threading.Thread(target=self._send)
        thread.start()
        try:
            yield
        finally:
            self._end.set()
            thread.join()
            self._socket.close()


@pytest.mark.parametrize(
    ("topology", "name"),
    [(named("path"), "wan"), (TWO_SWITCHES, "wan"), (TWO_SWITCHES, "src-left")],
    ids=["direct link", "link between switches", "cable"],
)
def test_a_run_with_a_cut_counts(
    make_lab: Callable[..., Lab], eventually: Eventually, topology: Topology, name: str
) -> None:
    lab = make_lab(topology)
    wan, link, datagrams = lab.link("wan"), lab.link(name), Datagrams(lab)

    def delivered() -> int:
        return wan.stats().a_to_b.delivered.frames

    with datagrams.running():
        eventually(lambda: delivered() > 100)
        before, dropped_before = take_stock(lab), dropped(lab)
        link.set_up(False)
        eventually(lambda: dropped(lab) > dropped_before)  # within a second the kernel does so by itself
        link.set_up(True)
        at_end = delivered()
        eventually(lambda: delivered() > at_end + 100)
        after = take_stock(lab)
    reasons = verdict(before, after, [], {}).reasons
    assert [reason for reason in reasons if "late" not in reason] == []  # a busy machine may be late
