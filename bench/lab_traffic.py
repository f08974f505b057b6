"""On and off times and rates of each background generator, against what its text says. Needs root.

    .venv/3.11/bin/python bench/lab_traffic.py [--seconds 60] [--only udp]

In a lab of two hosts with 100 Mbit/s between them; what a killed run has left the next one removes. Times are
those of the sender's record; what arrived is counted by the receiver. A line each: kept or NOT kept / what /
measured. Exits 1 if an on or off time is off by more than 2 %, or a UDP rate by more than 2 %, or if a run
does not count (docs/lab-format.md).
"""

import argparse
import itertools
import json
import math
import resource
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
from figures import Verdict, machine
from harness import command, require_root, run
from mpx_lab.judged import judged
from mpx_lab.lab import Lab
from mpx_lab.record import Run
from mpx_lab.record_reader import RecordedRun
from mpx_lab.series import goodput_bps
from mpx_lab.topology import Link, Topology
from mpx_lab.traffic.background import Background
from mpx_lab.traffic.spec import ShortFlows, Spec, TcpSquare, Udp, UdpBursty, UdpSquare, parse

from mpx.errors import UsageError

RATE_BPS = 100_000_000
PATH = Topology(
    "path", ("src",), ("dst",), (Link("src", "dst", "wan", RATE_BPS, queue_bytes=RATE_BPS // 8 // 50),)
)
LAB_ID = "bench-traffic"
WITHIN = 0.02
GENERATORS = (
    "tcp(congestion=cubic, streams=4)",
    "tcp(congestion=bbr)",
    "tcp-square(congestion=cubic, on=10s, off=10s)",
    "short-flows(load=0.1, of=100Mbit/s, congestion=cubic)",
    "udp(rate=50Mbit/s)",
    "udp-square(rate=50Mbit/s, on=10s, off=10s)",
    "udp-bursty(rate=80Mbit/s, burst=1s, period=2s)",
    "udp-bursty(rate=80Mbit/s, burst=1s, period=5s)",
    "udp-bursty(rate=80Mbit/s, burst=1s, period=10s)",
    "gridftp(streams=4, congestion=cubic)",
)


def stretches(recorded: RecordedRun) -> tuple[list[float], list[float]]:
    """Return the whole on and off times; the last one was cut by the end of the run."""
    rows = recorded.rows("flows/bg.phases.csv")
    edges = [(float(row["t_s"]), row["on"] == "1") for row in rows][:-1]
    on = [after[0] - before[0] for before, after in itertools.pairwise(edges) if before[1]]
    off = [after[0] - before[0] for before, after in itertools.pairwise(edges) if not before[1]]
    return on, off


def wanted(spec: Spec) -> tuple[float, float] | None:
    """Return the on and off times a generator should have; None for one without a pattern."""
    if isinstance(spec, UdpBursty):
        return spec.burst, spec.period - spec.burst
    return (spec.on, spec.off) if isinstance(spec, UdpSquare | TcpSquare) else None


def least_s(text: str) -> float:
    """Return for how long a generator has to run at least: until a whole off time has been seen."""
    return 2 * sum(wanted(parse(text)) or ())


def measure_one(text: str, seconds: float, folder: Path) -> dict[str, Any]:
    """Run one generator; return why the run does not count, its times, and what arrived of what was sent."""
    spec = parse(text)
    with Lab.up(PATH, LAB_ID) as lab, Run(folder, text, {"seconds": seconds}) as run, judged(lab, run):
        source, sink = lab.hosts
        before = resource.getrusage(resource.RUSAGE_CHILDREN)  # the emulator's is not in it until it ends
        with Background(spec, "bg", source, sink, sink.addresses[0], run.flows, run.epoch_s):
            time.sleep(seconds)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    recorded = RecordedRun.open(folder)
    used_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    series, summary = recorded.goodput("bg"), json.loads((folder / "flows" / "bg.json").read_text())
    found: dict[str, Any] = {"reasons": recorded.about["validity"]["reasons"], "cpu": used_s / seconds}
    if pattern := wanted(spec):
        found["on_s"], found["off_s"] = stretches(recorded)
    if not isinstance(spec, Udp | UdpSquare | UdpBursty):
        return {**found, "bps": goodput_bps(series, series[0].t_s, series[-1].t_s)}
    on_s = sum(found["on_s"]) if pattern else summary["ended_s"] - summary["began_s"]
    end_s = math.inf
    if pattern:  # only whole stretches count: their bytes are those that came before the last began
        rows = recorded.rows("flows/bg.phases.csv")
        end_s = max(float(row["t_s"]) for row in rows[:-1] if row["on"] == "0") + 0.15
    arrived = sum(sample.size_bytes for sample in series if sample.t_s <= end_s)
    return {**found, "bps": arrived * 8 / on_s, "given_up": summary["datagrams_given_up"]}


def judge(measured: Mapping[str, Mapping[str, Any]]) -> Iterator[Verdict]:
    """Hold what each generator did against what its text says."""
    for text, found in measured.items():
        spec, reasons = parse(text), "; ".join(found["reasons"])
        yield Verdict(f"{text}: the run counts", reasons or "in time, nothing lost elsewhere", not reasons)
        if reasons:
            continue
        for key, due_s in zip(("on_s", "off_s"), wanted(spec) or (), strict=False):
            times = found[key]
            worst = max((abs(took / due_s - 1) for took in times), default=1.0)
            seen = f"{min(times, default=0):.4f} to {max(times, default=0):.4f} s ({len(times)} times)"
            limit = f"{text}: {key.removesuffix('_s')} for {due_s:g} s within {WITHIN:.0%}"
            yield Verdict(limit, seen, worst <= WITHIN)
        mbps, cpu = found["bps"] / 1e6, f"CPU {found['cpu']:.1%}"
        if isinstance(spec, Udp | UdpSquare | UdpBursty):
            limit = f"{text}: {spec.rate / 1e6:g} Mbit/s while on within {WITHIN:.0%}"
            seen = f"{mbps:.2f} Mbit/s arrived, {found['given_up']} datagrams given up, {cpu}"
            yield Verdict(limit, seen, abs(found["bps"] / spec.rate - 1) <= WITHIN)
        else:
            due = f", offers {spec.load * spec.of / 1e6:g}" if isinstance(spec, ShortFlows) else ""
            yield Verdict(f"{text}: brings something", f"{mbps:.1f} Mbit/s{due}, {cpu}", mbps > 0)


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Measure each generator that was asked for."""
    chosen = [text for text in GENERATORS if options.only in text]
    if options.seconds < (least := max(map(least_s, chosen), default=0.0)):
        raise UsageError(
            f"--seconds {options.seconds:g} is less than two periods of a pattern; {least:g} is enough"
        )
    require_root()
    print(machine())
    measured = {}
    for text in chosen:
        with tempfile.TemporaryDirectory(prefix="mpx-lab-") as folder:
            measured[text] = measure_one(text, options.seconds, Path(folder))
            print(f"{text}: {measured[text]['bps'] / 1e6:.1f} Mbit/s", flush=True)
    return measured


if __name__ == "__main__":
    parser = command(__doc__)
    parser.add_argument("--seconds", type=float, default=60, help="for each generator (default: %(default)s)")
    parser.add_argument("--only", default="", help="generators whose text holds this")
    run(parser, measure, judge)
