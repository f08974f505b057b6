"""The controller under load: packets from switches, many path sets, and path sets that come and go.

    .venv/3.11/bin/python bench/controller_load.py [--only packets,sets,churn] [--seconds 3600]

A controller as a process of its own, and switches that speak OpenFlow over sockets but forward nothing, so
that it alone is measured. *packets*: each of 64 switches tells of so many frames a second of one host (ARP),
in turn; beside them an echo request each 20 ms, whose answer tells how long a message waits. *sets*: 1,000
path sets with four streams each at once; then a link that all of them use is lost and comes back, and how
long callers wait meanwhile. *churn*: for `--seconds` sets are asked for, get streams, and are
given back; how much memory the controller has, every minute.

Exits 1 if a limit is not kept: 2000 packets a second are all looked at, and an echo request waits 50 ms at
most (P99); with more of them an echo waits 3 s at most; 1,000 path sets take 150 MB in all; a set is assigned
within 50 ms, its streams are placed within 150 ms (P99), and the last tenth take at most twice the time of
the first; beside the loss of a link callers wait 50 ms (P99) and 1 s at most; coming and going leaves no set,
and memory grows by a quarter at most after the first tenth of the time.
"""

import argparse
import json
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "tests"), str(ROOT / "tests" / "controller")]

from figures import Verdict, machine, quantile
from graphs import THESIS_A, plain
from harness import command, run
from mpx_controller.graph import Graph
from running_controller import Running, controller
from switches import address, arp_from
from wans import ENDS
from wire_switches import WireSwitch, wire_wan

from mpx.sdn_client import ControllerClient

PARTS = ("packets", "sets", "churn")
SWITCHES, RATES = 64, (500, 1000, 2000, 4000, 8000, 16000)
STEP_S, TICK_S, ECHO_S = 10.0, 0.01, 0.02
SETS, STREAMS = 1000, 4
ROUNDS_PER_S = 5.0
PATH_SETS = f"sets = {SETS}\nstreams = {SETS * STREAMS}\nlease_s = 3600"
CONFIG = f"[api]\nrequests_per_s = 100000\n[path_sets]\n{PATH_SETS}\n"
FOUND_S = 60.0
BORNE, ECHO_P99_S, ECHO_MOST_S = 2000, 0.05, 3.0
SETS_BYTES, ASSIGNED_S, PLACED_S, SLOWER = 150e6, 0.05, 0.15, 2.0
CALLER_P99_S, CALLER_MOST_S = 0.05, 1.0
GROWS = 1.25


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Measure the parts that were asked for."""
    print(machine(), flush=True)
    parts = options.only.split(",")
    measured: dict[str, Any] = {}
    if "packets" in parts:
        with steered(ring(SWITCHES), {"src": 1, "dst": SWITCHES}) as (running, switches):
            measured["packets"] = packets(running, switches)
    if "sets" in parts:
        with steered(THESIS_A, ENDS) as (running, switches):
            measured["sets"] = sets(running, switches)
    if "churn" in parts:
        with steered(THESIS_A, ENDS) as (running, _):
            measured["churn"] = churn(running, options.seconds)
    return measured


@dataclass(frozen=True)
class Step:
    """So many packets a second: offered, taken and looked at, and how long echo requests waited."""

    rate: int
    offered: float
    taken: float
    looked_at: float
    waits_s: Sequence[float]


@dataclass(frozen=True)
class Sets:
    """What many path sets took: memory in bytes, and seconds of each call; callers' by what happened."""

    memory_bytes: int
    took_s: Mapping[str, Sequence[float]]
    waits_s: Mapping[str, Sequence[float]]


@dataclass(frozen=True)
class Churn:
    """Memory in bytes, minute by minute and at the end, and path sets that were left."""

    memory_bytes: Sequence[int]
    left: int


def judge(measured: Mapping[str, Any]) -> Iterator[Verdict]:
    """Hold each part that was measured against its limits."""
    if "packets" in measured:
        yield from of_packets([Step(**step) for step in measured["packets"]])
    if "sets" in measured:
        yield from of_sets(Sets(**measured["sets"]))
    if "churn" in measured:
        yield from of_churn(Churn(**measured["churn"]))


def of_packets(steps: Sequence[Step]) -> Iterator[Verdict]:
    """Judge whether the load is handled, and whether a higher one does not delay others."""
    for step in steps:
        p99_s, most_s = quantile(step.waits_s, 0.99), max(step.waits_s)
        if step.rate <= BORNE:
            limit = f"{step.rate} packets a second: all looked at, echo within {ECHO_P99_S * 1e3:g} ms (P99)"
            kept = step.looked_at >= step.taken and step.taken >= step.offered and p99_s <= ECHO_P99_S
            yield Verdict(limit, f"{step.looked_at:.0f} of {step.taken:.0f}, {p99_s * 1e3:.1f} ms", kept)
        else:
            limit = f"{step.rate} packets a second: echo within {ECHO_MOST_S:g} s, always"
            yield Verdict(limit, f"{most_s:.2f} s", most_s <= ECHO_MOST_S)


def of_sets(found: Sets) -> Iterator[Verdict]:
    """Judge whether many path sets are slow, or slow down others."""
    yield Verdict(
        f"{SETS} path sets with {STREAMS} streams take at most {SETS_BYTES / 1e6:.0f} MB",
        f"{found.memory_bytes / 1e6:.1f} MB",
        found.memory_bytes <= SETS_BYTES,
    )
    for name, limit_s in (("assigned", ASSIGNED_S), ("placed", PLACED_S)):
        values = found.took_s[name]
        tenth = max(1, len(values) // 10)
        first, last = (statistics.median(some) for some in (values[:tenth], values[-tenth:]))
        p99_s = quantile(values, 0.99)
        yield Verdict(
            f"{name} within {limit_s * 1e3:g} ms (P99), the last tenth within {SLOWER:g} times the first",
            f"{p99_s * 1e3:.1f} ms, {last / first:.2f} times",
            p99_s <= limit_s and last <= SLOWER * first,
        )
    for what, waits_s in found.waits_s.items():
        p99_s, most_s = quantile(waits_s, 0.99), max(waits_s)
        yield Verdict(
            f"asked while {what}: within {CALLER_P99_S * 1e3:g} ms (P99), {CALLER_MOST_S:g} s at most",
            f"{p99_s * 1e3:.0f} ms, {most_s * 1e3:.0f} ms at most",
            p99_s <= CALLER_P99_S and most_s <= CALLER_MOST_S,
        )


def of_churn(found: Churn) -> Iterator[Verdict]:
    """Judge whether path sets that come and go leave anything."""
    settled = found.memory_bytes[len(found.memory_bytes) // 10]
    times = found.memory_bytes[-1] / settled
    yield Verdict(
        f"memory grows to at most {GROWS:g} times after the first tenth", f"{times:.2f}", times <= GROWS
    )
    yield Verdict("no path set is left", str(found.left), found.left == 0)


def ring(switches: int) -> Graph:
    """Return so many switches in a circle."""
    return plain(*((number, number % switches + 1) for number in range(1, switches + 1)))


@contextmanager
def steered(graph: Graph, hosts: dict[str, int]) -> Iterator[tuple[Running, dict[int, WireSwitch]]]:
    """Yield a controller that knows all switches and hosts."""
    with (
        tempfile.TemporaryDirectory() as folder,
        controller(Path(folder) / "state.json", 0, CONFIG) as running,
        wire_wan(running.port, graph, hosts) as switches,
    ):
        edges = sorted(f"{switch:x}:1000" for switch in hosts.values())
        until_s = time.monotonic() + FOUND_S
        while (seen := running.get("topology"))["edges"] != edges or len(seen["links"]) < len(graph.links):
            if time.monotonic() > until_s:
                sys.exit(f"the controller has not found the network within {FOUND_S:g} s")
            time.sleep(TICK_S)  # REST tells of no event
        for host, switch in hosts.items():
            switches[switch].frame_in(1000, arp_from(host))
        yield running, switches


def packets(running: Running, switches: dict[int, WireSwitch]) -> list[Step]:
    """Tell of frames, more a second with each step."""
    steps = []
    print("| packets a second, offered | taken | looked at | echo, ms: median, P99, most |")
    print("|---|---|---|---|", flush=True)
    frame = arp_from("src")
    order = list(switches.values())
    for rate in RATES:
        before = {name: running.metric(name) for name in ("frames_in_total", "frames_dropped_total")}
        waits_s: list[float] = []
        sent, echoes = 0, 0
        began_s = time.monotonic()
        while (now_s := time.monotonic()) < began_s + STEP_S:
            if now_s - began_s >= echoes * ECHO_S:
                order[echoes % len(order)].echo(partial(note_wait, waits_s, now_s))
                echoes += 1
            while sent < (now_s - began_s) * rate:
                order[sent % len(order)].frame_in(1000, frame)
                sent += 1
            time.sleep(TICK_S / 10)  # the rate of frames is the load
        took_s = time.monotonic() - began_s
        answered = threading.Event()
        for switch in order:  # who has answered the last has taken all before it
            answered.clear()
            switch.echo(answered.set)
            if not answered.wait(FOUND_S):
                sys.exit(f"at {rate} packets a second an echo was not answered within {FOUND_S:g} s")
        taken, dropped = (running.metric(name) - was for name, was in before.items())
        step = Step(rate, sent / took_s, taken / took_s, (taken - dropped) / took_s, waits_s)
        shown = ", ".join(f"{quantile(waits_s, share) * 1e3:.1f}" for share in (0.5, 0.99, 1))
        print(f"| {step.offered:.0f} | {step.taken:.0f} | {step.looked_at:.0f} | {shown} |", flush=True)
        steps.append(step)
    return steps


def note_wait(waits_s: list[float], asked_s: float) -> None:
    """Note how long ago something was asked."""
    waits_s.append(time.monotonic() - asked_s)


def sets(running: Running, switches: dict[int, WireSwitch]) -> Sets:
    """Have many path sets, each with streams, and lose a link of all."""
    client = ControllerClient(running.urls["rest"])
    print(f"memory before: {memory_bytes(running) / 1e6:.1f} MB")
    made: list[int] = []
    assigned, placed = [], []
    for number in range(SETS):
        known, took_s = timed(partial(client.assign, address("src"), address("dst"), 4))
        made.append(known.number)
        assigned.append(took_s)
        ports = [10_000 + STREAMS * number + place for place in range(STREAMS)]
        placed.append(timed(partial(client.place, known.number, ports, "source", str(number % 4)))[1])
    renewed = [timed(partial(client.renew, number))[1] for number in made]
    memory, took = memory_bytes(running), {"assigned": assigned, "placed": placed, "renewed": renewed}
    print(f"{SETS} path sets with {STREAMS} streams: memory {memory / 1e6:.1f} MB")
    for name, values in took.items():
        first, last = (statistics.median(some) * 1e3 for some in (values[:100], values[-100:]))
        most = quantile(values, 0.99) * 1e3
        print(f"{name}: median of the first 100 {first:.1f} ms, of the last {last:.1f} ms, P99 {most:.1f} ms")
    state, took_s = timed(partial(running.get, "path-sets"))
    print(
        f"all of them listed ({len(json.dumps(state)) / 1e6:.1f} MB of JSON): {took_s * 1e3:.0f} ms",
        flush=True,
    )
    lost, waited = THESIS_A.links[0].start, {}
    with ProcessPoolExecutor(1, get_context("spawn")) as caller:  # which the simulated switches do not delay
        caller.submit(asked, running.urls["rest"], 0.1).result()
        for what, up in (("nothing happens", None), ("a link of all is lost", False), ("it is back", True)):
            waits = caller.submit(asked, running.urls["rest"], STEP_S)
            if up is not None:
                switches[lost.switch].carrier(lost.number, up=up)
            waited[what] = waits_s = waits.result()
            p99_ms, most_ms = quantile(waits_s, 0.99) * 1e3, max(waits_s) * 1e3
            print(f"asked while {what}: P99 {p99_ms:.0f} ms, most {most_ms:.0f}", flush=True)
    return Sets(memory, took, waited)


def asked(url: str, seconds: float) -> list[float]:
    """Ask whether it runs for so long, a hundred times a second; return how long each answer took."""
    client = ControllerClient(url, "", answer_s=FOUND_S)
    client.ask("GET", "/healthz")  # the first imports what it needs
    until_s, waits_s = time.monotonic() + seconds, []
    while time.monotonic() < until_s:
        waits_s.append(timed(lambda: client.ask("GET", "/healthz"))[1])
        time.sleep(TICK_S)  # so often it is asked, beside the load
    return waits_s


def churn(running: Running, seconds: float) -> Churn:
    """Let sets come and go."""
    client = ControllerClient(running.urls["rest"])
    began_s = time.monotonic()
    rounds, minute = 0, 0
    memory: list[int] = []
    while (now_s := time.monotonic()) < began_s + seconds:
        if now_s - began_s >= minute * 60:
            memory.append(memory_bytes(running))
            print(f"after {minute} min, {rounds} sets: {memory[-1] / 1e6:.1f} MB", flush=True)
            minute += 1
        known = client.assign(address("src"), address("dst"), 4)
        first = 10_000 + rounds * STREAMS % 50_000
        for place in range(STREAMS):
            client.place(known.number, [first + place], "source", str(place))
        client.renew(known.number)
        client.feedback(known.number, "0", 4, 90e6, 0.01)
        client.remove(known.number, [first], "source")
        client.release(known.number)
        rounds += 1
        time.sleep(max(0.0, began_s + rounds / ROUNDS_PER_S - time.monotonic()))  # the rate is the load
    memory.append(memory_bytes(running))
    left = len(running.get("path-sets"))
    print(
        f"{rounds} sets with {rounds * STREAMS} streams in {seconds:.0f} s; at the end "
        f"{memory[-1] / 1e6:.1f} MB, {left} sets left"
    )
    return Churn(memory, left)


def timed(question: Callable[[], Any]) -> tuple[Any, float]:
    """Return the answer and how long it took, in seconds."""
    began_s = time.perf_counter()
    answer = question()
    return answer, time.perf_counter() - began_s


def memory_bytes(running: Running) -> int:
    """Return what the controller's process has in memory now."""
    lines = Path(f"/proc/{running.process.pid}/status").read_text().splitlines()
    (line,) = (line for line in lines if line.startswith("VmRSS"))
    return int(line.split()[1]) * 1024


if __name__ == "__main__":
    parser = command(__doc__)
    parser.add_argument("--only", default=",".join(PARTS))
    parser.add_argument("--seconds", type=float, default=3600.0, help="of coming and going")
    run(parser, measure, judge)
