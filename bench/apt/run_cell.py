"""Running one cell: a lab, a stock server at one end for each transfer, the tool at the other.

Goodput is what arrived, as the receiver's kernel counts it for each connection, so alike for every tool. A
run that was late, saturated, or lost frames anywhere but in the emulator's queue does not count.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from mpx_lab.counters import increase, read_counters
from mpx_lab.lab import Lab
from mpx_lab.record import Route, Run
from mpx_lab.stock_server import stock_server
from mpx_lab.topology import Link as LabLink
from mpx_lab.topology import Topology
from mpx_lab.traffic.background import Background, RttProbe, Watched
from mpx_lab.validity import judge, link_facts

from apt.cell import FRAME_BYTES, Cell
from apt.store import Store
from apt.tools import command_of

TRIES = 4  # until a run is valid
UDP_BYTES = 1472  # of payload in a full frame
SOURCE_BYTES = 50 * 10**9  # the paper's; a hole, so it takes no room
ENDS_WITHIN_S = 20.0


def measure(cell: Cell, store: Store) -> None:
    """Run a cell until a run is valid and kept; raises RuntimeError when too many in a row were not."""
    for _ in range(TRIES):
        _run(cell, store.begin(cell))
        store.keep(cell)
        if store.has(cell):
            return
    raise RuntimeError(f"{cell.name}: no valid run in {TRIES}; look at {store.folder}/{cell.name}.*.invalid")


def topology_of(cell: Cell) -> Topology:
    """Return two hosts and a link; for several transfers a pair of hosts each, on both sides of the link."""
    link = cell.link
    shape = {"rate_bps": link.rate_bps, "delay_s": link.rtt_s / 2, "queue_packets": link.queue_packets}
    count = range(1, cell.transfers + 1)
    sources, sinks = tuple(f"src{i}" for i in count), tuple(f"dst{i}" for i in count)
    if cell.transfers == 1:
        wan = LabLink(sources[0], sinks[0], "wan", loss=link.loss, **shape)
        return Topology("apt", sources, sinks, (wan,))
    wan = LabLink("left", "right", "wan", loss=link.loss, **shape)
    cables = [LabLink(name, "left") for name in sources] + [LabLink("right", name) for name in sinks]
    return Topology("apt", sources, sinks, (wan, *cables), ("left", "right"))


def _run(cell: Cell, folder: Path) -> None:
    link = cell.link
    with Lab.up(topology_of(cell), f"apt-{threading.get_native_id()}") as lab:
        for host in lab.hosts:
            host.set_route(congestion=link.congestion, window_bytes=link.window_bytes)
        routes = [Route(host.name, None, link.congestion, link.window_bytes) for host in lab.hosts]
        shown = lab.link("wan")
        with Run(folder, cell.name, cell.described(), routes=routes) as run, contextlib.ExitStack() as stack:
            lost_before, before = _counters(lab), shown.stats()
            source, sink = lab.hosts[0], lab.host("dst1")
            stack.enter_context(RttProbe("wan", source, sink, sink.addresses[0], run.rtt, run.epoch_s))
            if link.udp_share:
                payload_bps = link.rate_bps * link.udp_share * UDP_BYTES / FRAME_BYTES
                udp = Background(
                    f"udp(rate={payload_bps:.0f}bit/s)",
                    "udp",
                    source,
                    sink,
                    sink.addresses[0],
                    run.flows,
                    run.epoch_s,
                )
                stack.enter_context(udp)
            for number in range(1, cell.transfers + 1):
                began_s = time.monotonic()
                tool = stack.enter_context(_transfer(cell, number, lab, run))
                last = number == cell.transfers
                tool.wait_for_s(began_s + (cell.seconds if last else cell.every_s))
            after = shown.stats()
            facts = [
                link_facts("wan a-to-b", before.a_to_b, after.a_to_b),
                link_facts("wan b-to-a", before.b_to_a, after.b_to_a),
            ]
            run.validity = judge(facts, run.cpu.uses, increase(lost_before, _counters(lab)))
        shutil.copy(lab.folder / "wan.csv", run.links / "wan.csv")


class Tool:
    """A tool that copies, and what it says."""

    def __init__(self, process: "subprocess.Popen[bytes]", log: Path) -> None:
        self._process = process
        self._log = log

    def wait_for_s(self, until_s: float) -> None:
        """Let it work until a time of the monotonic clock; raises RuntimeError if it ends before."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(max(0.0, until_s - time.monotonic()))
            raise RuntimeError(f"{self._process.args!r} ended: {self._log.read_text()[-2000:]}")

    def interrupt(self) -> None:
        """End it as a user does."""
        self._process.send_signal(signal.SIGINT)
        try:
            self._process.wait(ENDS_WITHIN_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


@contextlib.contextmanager
def _transfer(cell: Cell, number: int, lab: Lab, run: Run) -> Iterator[Tool]:
    """Copy from one host to another until the end of the block."""
    source, sink = lab.host(f"src{number}"), lab.host(f"dst{number}")
    watched = Watched(
        f"transfer-{number}", source, source.addresses[0], sink, sink.addresses[0], run.flows, run.epoch_s
    )
    folder = Path(tempfile.mkdtemp(prefix="mpx-apt-", dir="/dev/shm"))
    try:
        folder.chmod(0o777)
        with (folder / "source").open("wb") as file:
            file.truncate(SOURCE_BYTES)
        log = folder / "tool.log"
        with stock_server(sink, folder) as url, watched, log.open("wb") as out:
            report = run.folder / f"report-{number}.json"
            command = command_of(cell.tool, str(folder / "source"), f"{url}{folder}/target", str(report))
            environment = {**os.environ, "MPX_STATE_DIR": str(folder / "state")}
            tool = Tool(source.popen(command, env=environment, stdout=out, stderr=out), log)
            try:
                yield tool
            finally:
                tool.interrupt()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _counters(lab: Lab) -> dict[str, int]:
    """Return what was lost on the hosts, host by host, and at the switches."""
    lost = {
        f"{host.name} {where}": count for host in lab.hosts for where, count in read_counters(host).items()
    }
    return {**lost, "switches": lab.lost_elsewhere()}
