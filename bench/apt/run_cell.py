"""Runs one cell: builds a lab, starts the transfers one after another, and judges the run.

Goodput is what arrived, as the receiver's kernel counts it for each connection, so alike for every tool. A
run that was late, saturated, or lost frames anywhere but in the emulator's queue does not count.
"""

import contextlib
import re
import subprocess
import time
from pathlib import Path

from mpx_lab.judged import judged
from mpx_lab.lab import Lab
from mpx_lab.record import Run
from mpx_lab.shape import Direction
from mpx_lab.topology import Link as LabLink
from mpx_lab.topology import Topology
from mpx_lab.traffic.background import Background, RttProbe
from mpx_lab.traffic.udp_sender import DATAGRAM_BYTES

from apt.cell import RATE, RTT, Cell, Link
from apt.code import code
from apt.store import FAILED, INVALID, Store
from apt.transfer import ToolFailed, place, transfer

TRIES = 4  # until a run is valid
UDP_HEADERS_BYTES = 42  # Ethernet, IPv4, UDP
FULL_SHARE = 0.95  # of the bottleneck's rate: when it is reached the neighbours fill the link
LOOK_S = 1.0  # over which that is measured
COMES_UP_WITHIN_S = 20.0  # after which the transfers begin in any case


def measure(cell: Cell, store: Store, slot: int) -> None:
    """Run a cell until a run is valid and kept; raises RuntimeError when too many in a row were not.

    It also raises it when the code was changed meanwhile. A run whose
    tool failed is laid aside and tried again; one that met any other error is laid aside. What is left of an
    interrupted run in the same slot is removed.
    """
    for _ in range(TRIES):
        folder = store.begin(cell)
        try:
            _run(cell, folder, slot)
        except ToolFailed as error:
            store.fail(cell, str(error))
        except Exception as error:
            store.fail(cell, repr(error))
            raise
        else:
            if store.keep(cell) and not store.has(cell):
                raise RuntimeError(
                    f"{cell.name}: the code was changed since the row began; start the row again"
                )
            if store.has(cell):
                return
    where = f"{store.folder}/{cell.name}"
    raise RuntimeError(f"{cell.name}: no valid run in {TRIES}; look at {where}.*.{INVALID} and .{FAILED}")


def topology_of(cell: Cell) -> Topology:
    """Return two hosts and a link; for several transfers a pair of hosts each, on both sides of the link."""
    count = range(1, cell.transfers + 1)
    sources, sinks = tuple(f"src{i}" for i in count), tuple(f"dst{i}" for i in count)
    if cell.transfers == 1:
        return Topology("apt", sources, sinks, (_wan(cell, sources[0], sinks[0]),))
    cables = [LabLink(name, "left") for name in sources] + [LabLink("right", name) for name in sinks]
    return Topology("apt", sources, sinks, (_wan(cell, "left", "right"), *cables), ("left", "right"))


def _wan(cell: Cell, a: str, b: str) -> LabLink:
    """Return the bottleneck, without its losses: those are of one direction, see `_lose`."""
    link = cell.link
    return LabLink(
        a,
        b,
        "wan",
        rate_bps=link.rate_bps,
        delay_s=link.rtt_s / 2,
        queue_packets=None if link.policer else link.queue_packets,
        burst_bytes=link.burst_bytes,
        policer=link.policer,
        fair_queue=link.fair_queue,
    )


def _run(cell: Cell, folder: Path, slot: int) -> None:
    link = cell.link
    with place(slot) as root, Lab.up(topology_of(cell), f"apt-{slot}") as lab:
        for host in lab.hosts:
            host.set_route(congestion=link.congestion, window_bytes=link.window_bytes)
        run = Run(
            folder,
            cell.name,
            cell.described(),
            routes=lab.routes(),
            seeds={"wan": cell.repetition},
            versions=versions(),
        )
        with run, judged(lab, run), contextlib.ExitStack() as stack:
            source, sink = lab.host("src1"), lab.host("dst1")
            stack.enter_context(RttProbe("wan", source, sink, sink.addresses[0], run.rtt, run.epoch_s))
            if link.udp_share:
                payload_bps = (
                    link.rate_bps * link.udp_share * DATAGRAM_BYTES / (DATAGRAM_BYTES + UDP_HEADERS_BYTES)
                )
                spec = f"udp(rate={payload_bps:.0f}bit/s)"
                udp = Background(spec, "udp", source, sink, sink.addresses[0], run.flows, run.epoch_s)
                stack.enter_context(udp)
            other = sink.addresses[1]  # IPv6, as the tool's connections are recognised by their IPv4 address
            for name, spec in link.neighbours.items():
                stack.enter_context(Background(spec, name, source, sink, other, run.flows, run.epoch_s))
            if link.beside and cell.waits:
                _come_up(lab, link.rate_bps)
            _lose(lab, cell)
            tools = []
            for number in range(1, cell.transfers + 1):
                tools.append(stack.enter_context(transfer(cell.tool, number, lab, run, root, link.server)))
                began_s, last = time.monotonic(), number == cell.transfers
                if last and link.change:
                    tools[-1].wait_until(began_s + cell.seconds / 2)
                    _change(lab, link)
                tools[-1].wait_until(began_s + (cell.seconds if last else cell.every_s))
            for tool in tools:
                tool.wait_until(time.monotonic())


def _lose(lab: Lab, cell: Cell) -> None:
    """Lose frames in the direction of the data only, from now on; other frames in each repetition."""
    lab.link("wan").change(Direction.A_TO_B, loss=cell.link.loss, seed=cell.repetition)


def _change(lab: Lab, link: Link) -> None:
    wan = lab.link("wan")
    if link.change == RATE:
        wan.change(rate_bps=round(link.change_to))
    elif link.change == RTT:
        wan.change(delay_s=link.change_to / 2)
    else:
        wan.change(Direction.A_TO_B, loss=link.change_to)


def _come_up(lab: Lab, rate_bps: int) -> None:
    """Wait until the traffic that runs fills the bottleneck, at most COMES_UP_WITHIN_S."""
    wan, began_s = lab.link("wan"), time.monotonic()
    until_s, before = began_s, wan.stats().a_to_b.delivered.bytes
    while until_s - began_s < COMES_UP_WITHIN_S:
        time.sleep(LOOK_S)  # a link has no event for what it has carried
        from_s, until_s = until_s, time.monotonic()
        carried = wan.stats().a_to_b.delivered.bytes - before
        if carried * 8 / (until_s - from_s) >= FULL_SHARE * rate_bps:
            return
        before += carried


def versions() -> dict[str, str]:
    """Return which code measures and is measured, and which stock tools."""
    return {"code": code(), "globus-url-copy": _said(["globus-url-copy", "-version"])}


def _said(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return re.sub(r"\s+", " ", done.stdout + (done.stderr if not done.returncode else "")).strip()
