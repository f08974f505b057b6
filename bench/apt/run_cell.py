"""Running one cell: a lab of two hosts and one link, a stock server at one end, the tool at the other.

Goodput is counted where the bytes arrive, for every tool alike: at the receiver's interface, without the UDP,
times the payload share of a full frame. A run that was late or lost frames anywhere but in the emulator's queue
is thrown away and repeated.
"""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mpx_lab.emulator.accounting import LinkStats
from mpx_lab.lab import Lab
from mpx_lab.lab_host import LabHost
from mpx_lab.topology import Link as LabLink
from mpx_lab.topology import Topology

from apt.cell import PAYLOAD_SHARE, Cell, Link
from apt.tools import command_of, is_mpx

TICK_S = 0.1
TRIES = 4  # until a run is valid
FIRST_BYTES = 40_000  # more than any conversation before the data
BEGINS_WITHIN_S = 60.0
SOURCE_BYTES = 50 * 10**9  # the paper's; a hole, so it takes no room
LATE_S = 0.0003  # the 99th percentile of lateness in a valid run


class InvalidRun(Exception):
    """The run says more about this machine than about the tool."""


def run_cell(cell: Cell) -> dict[str, Any]:
    """Return what a valid run gave, as the store keeps it; raises InvalidRun when there was none."""
    thrown_out: list[str] = []
    for _ in range(TRIES):
        try:
            return {**_run(cell), "thrown_out": thrown_out}
        except InvalidRun as why:
            thrown_out.append(str(why))
    raise InvalidRun(f"{cell.name}: no valid run in {TRIES}: {'; '.join(thrown_out)}")


def topology_of(link: Link) -> Topology:
    """Return the lab's topology of a link: two hosts and nothing else."""
    wan = LabLink(
        "src", "dst", "wan",
        rate_bps=link.rate_bps, delay_s=link.rtt_s / 2, queue_packets=link.queue_packets, loss=link.loss,
    )
    return Topology("apt", ("src",), ("dst",), (wan,))


def _run(cell: Cell) -> dict[str, Any]:
    lab_id = f"apt-{threading.get_native_id()}"
    with (
        contextlib.ExitStack() as stack,
        Lab.up(topology_of(cell.link), lab_id) as lab,
    ):
        folder = Path(tempfile.mkdtemp(prefix="mpx-apt-", dir="/dev/shm"))
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        folder.chmod(0o777)
        source, destination = lab.host("src"), lab.host("dst")
        for host in (source, destination):
            host.set_route(congestion=cell.link.congestion, window_bytes=cell.link.window_bytes)
        url, server = stack.enter_context(stock_server(destination, folder))
        with (folder / "source").open("wb") as file:
            file.truncate(SOURCE_BYTES)
        report = folder / "report.json"
        command = command_of(cell.tool, str(folder / "source"), f"{url}{folder}/target", str(report))
        before = lab.link("wan").stats()
        raw = _watch(source, server, command, cell, folder)
        after = lab.link("wan").stats()
        _check(after)
        timeline = json.loads(report.read_text())["timeline"] if is_mpx(cell.tool) else []
        return {**_series(raw), "streams": _streams(timeline), "reasons": [event["reason"] for event in timeline], "link": _told(before, after)}


@contextlib.contextmanager
def stock_server(host: LabHost, folder: Path) -> Iterator[tuple[str, int]]:
    """Run a stock server on a host of the lab, and yield its URL without a path, and its process."""
    command = ["globus-gridftp-server", "-aa", "-anonymous-user", "nobody", "-p", "0"]
    command += ["-control-interface", host.addresses[0], "-data-interface", host.addresses[0]]
    command += ["-home-dir", str(folder), "-l", str(folder / "server.log")]
    with host.popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            said = process.stdout.readline()
            yield f"ftp://{host.addresses[0]}:{said.rsplit(':', 1)[1].strip()}", process.pid
        finally:
            process.terminate()


def _watch(
    source: LabHost, server: int, command: list[str], cell: Cell, folder: Path
) -> list[tuple[float, int]]:
    """Return (time, bytes that TCP brought to the destination) every tick until the cell's time is over."""
    environment = {**os.environ, "MPX_STATE_DIR": str(folder / "state")}
    samples: list[tuple[float, int]] = []
    began_s: float | None = None
    with (folder / "tool.log").open("w+") as log, source.popen(command, env=environment, stdout=log, stderr=log) as tool:
        try:
            start = time.monotonic()
            received = _received(server)
            while began_s is None or time.monotonic() < began_s + cell.seconds + TICK_S:
                now = time.monotonic()
                samples.append((now, _received(server) - received))
                if began_s is None and samples[-1][1] > FIRST_BYTES:
                    began_s = samples[-2][0] if len(samples) > 1 else now
                if tool.poll() is not None or (began_s is None and now > start + BEGINS_WITHIN_S):
                    log.seek(0)
                    raise RuntimeError(f"{cell.name}: {' '.join(command)} ended or did not begin: {log.read()[-2000:]}")
                time.sleep(max(0.0, samples[0][0] + len(samples) * TICK_S - time.monotonic()))
        finally:
            tool.send_signal(signal.SIGINT)
            try:
                tool.wait(20)
            except subprocess.TimeoutExpired:
                tool.kill()
    return [(t, n) for t, n in samples if t >= (began_s or 0.0)]


def _received(pid: int) -> int:
    """Return the bytes of frames that came to the interfaces of a process' namespace."""
    lines = Path(f"/proc/{pid}/net/dev").read_text().splitlines()[2:]
    rows = {name.strip(): counters.split() for name, _, counters in (line.partition(":") for line in lines)}
    return sum(int(counters[0]) for name, counters in rows.items() if name != "lo")


def _check(after: LinkStats) -> None:
    """Raise InvalidRun unless the emulator was in time and lost nothing but at its queue and by chance."""
    for direction in (after.a_to_b, after.b_to_a):
        if direction.late.quantile_s(0.99) > LATE_S:
            raise InvalidRun(f"P99 of lateness {direction.late.quantile_s(0.99) * 1e3:.2f} ms")
        if direction.dropped_elsewhere:
            raise InvalidRun(f"{direction.dropped_elsewhere} frames lost outside the queue")


def _series(raw: list[tuple[float, int]]) -> dict[str, Any]:
    began_s, first = raw[0]
    return {
        "series": {
            "t_s": [round(t - began_s, 4) for t, _ in raw],
            "bytes": [round((n - first) * PAYLOAD_SHARE) for _, n in raw],
        }
    }


def _streams(timeline: list[dict[str, Any]]) -> list[tuple[float, int]]:
    began_s = timeline[0]["t_s"] if timeline else 0.0
    return [(event["t_s"] - began_s, event["streams"]) for event in timeline]


def _told(before: LinkStats, after: LinkStats) -> dict[str, Any]:
    there = after.a_to_b
    return {
        "late_p50_s": there.late.quantile_s(0.5),
        "late_p99_s": there.late.quantile_s(0.99),
        "late_max_s": there.late.max_ns / 1e9,
        "frames": there.delivered.frames,
        "dropped_queue": there.dropped_queue.frames,
        "dropped_loss": there.dropped_loss.frames,
        "emulator_cpu_s": after.cpu_s - before.cpu_s,
    }
