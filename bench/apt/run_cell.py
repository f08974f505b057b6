"""Running one cell: a lab, the transfers that join one after another, and whether the run counts.

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
from mpx_lab.record import Route, Run
from mpx_lab.topology import Link as LabLink
from mpx_lab.topology import Topology
from mpx_lab.traffic.background import Background, RttProbe
from mpx_lab.traffic.udp_sender import DATAGRAM_BYTES

from apt.cell import Cell
from apt.store import Store
from apt.transfer import place, transfer

TRIES = 4  # until a run is valid
UDP_HEADERS_BYTES = 42  # Ethernet, IPv4, UDP
HERE = Path(__file__).resolve().parents[2]


def measure(cell: Cell, store: Store, slot: int) -> None:
    """Run a cell until a run is valid and kept; raises RuntimeError when too many in a row were not.

    What is left of an interrupted run in the same slot is removed.
    """
    for _ in range(TRIES):
        _run(cell, store.begin(cell), slot)
        store.keep(cell)
        if store.has(cell):
            return
    raise RuntimeError(f"{cell.name}: no valid run in {TRIES}; look at {store.folder}/{cell.name}.*.invalid")


def topology_of(cell: Cell) -> Topology:
    """Return two hosts and a link; for several transfers a pair of hosts each, on both sides of the link."""
    count = range(1, cell.transfers + 1)
    sources, sinks = tuple(f"src{i}" for i in count), tuple(f"dst{i}" for i in count)
    if cell.transfers == 1:
        return Topology("apt", sources, sinks, (_wan(cell, sources[0], sinks[0]),))
    cables = [LabLink(name, "left") for name in sources] + [LabLink("right", name) for name in sinks]
    return Topology("apt", sources, sinks, (_wan(cell, "left", "right"), *cables), ("left", "right"))


def _wan(cell: Cell, a: str, b: str) -> LabLink:
    """Return the bottleneck; each repetition loses other frames."""
    link = cell.link
    return LabLink(
        a,
        b,
        "wan",
        rate_bps=link.rate_bps,
        delay_s=link.rtt_s / 2,
        queue_packets=link.queue_packets,
        loss=link.loss,
        seed=cell.repetition,
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
            routes=[Route(host.name, None, link.congestion, link.window_bytes) for host in lab.hosts],
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
            if link.beside:  # over IPv6, since the tool's connections are known by their address
                other = sink.addresses[1]
                stack.enter_context(
                    Background(link.beside, "beside", source, sink, other, run.flows, run.epoch_s)
                )
            tools = []
            for number in range(1, cell.transfers + 1):
                began_s = time.monotonic()
                tools.append(stack.enter_context(transfer(cell.tool, number, lab, run, root)))
                last = number == cell.transfers
                tools[-1].wait_until(began_s + (cell.seconds if last else cell.every_s))
            for tool in tools:
                tool.wait_until(time.monotonic())


def versions() -> dict[str, str]:
    """Return which code of mpx is measured, and which stock tools."""
    return {"code": code(), "globus-url-copy": _said(["globus-url-copy", "-version"])}


def code() -> str:
    """Return what names the contents of mpx/ in the repository, with a + if they were changed since."""
    tree = _said(["git", "-C", str(HERE), "rev-parse", "--short", "HEAD:mpx"])
    changed = _said(["git", "-C", str(HERE), "status", "--porcelain", "mpx"])
    return f"{tree or 'unknown'}{'+' if changed else ''}"


def _said(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return re.sub(r"\s+", " ", done.stdout + (done.stderr if not done.returncode else "")).strip()
