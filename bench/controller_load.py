"""What the controller stands: packets that switches tell it of, many path sets, and coming and going.

    .venv/3.11/bin/python bench/controller_load.py [--only packets,sets,churn] [--seconds 3600]

A controller as a process of its own, and switches that speak OpenFlow over sockets but forward nothing, so
that it alone is measured. *packets*: each of 64 switches tells of so many frames a second of one host (ARP),
in turn; beside them an echo request each 20 ms, whose answer tells how long a message waits. *sets*: 1,000
path sets with four streams each at once; then a link that all of them use is lost and comes back, and how
long callers wait meanwhile. *churn*: for `--seconds` sets are asked for, get streams, and are
given back; how much memory the controller has, every minute.
"""

import argparse
import json
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any
from urllib.request import urlopen

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "tests"), str(ROOT / "tests" / "controller")]

from figures import machine
from graphs import THESIS_A, plain
from mpx_controller.graph import Graph
from running_controller import Running, controller
from switches import address, arp_from
from wans import ENDS
from wire_switches import WireSwitch, wire_wan

from mpx.controller_client import ControllerClient

PARTS = ("packets", "sets", "churn")
SWITCHES, RATES = 64, (500, 1000, 2000, 4000, 8000, 16000)
STEP_S, TICK_S, ECHO_S = 10.0, 0.01, 0.02
SETS, STREAMS = 1000, 4
ROUNDS_PER_S = 5.0
PATH_SETS = f"sets = {SETS}\nstreams = {SETS * STREAMS}\nlease_s = 3600"
CONFIG = f"[api]\nrequests_per_s = 100000\n[path_sets]\n{PATH_SETS}\n"
FOUND_S = 60.0


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default=",".join(PARTS))
    parser.add_argument("--seconds", type=float, default=3600.0, help="of coming and going")
    options = parser.parse_args()
    print(machine(), flush=True)
    asked = options.only.split(",")
    if "packets" in asked:
        with steered(ring(SWITCHES), {"src": 1, "dst": SWITCHES}) as (running, switches):
            packets(running, switches)
    if "sets" in asked:
        with steered(THESIS_A, ENDS) as (running, switches):
            sets(running, switches)
    if "churn" in asked:
        with steered(THESIS_A, ENDS) as (running, _):
            churn(running, options.seconds)


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
        while (told := running.get("topology"))["edges"] != edges or len(told["links"]) < len(graph.links):
            if time.monotonic() > until_s:
                sys.exit(f"the controller has not found the network within {FOUND_S:g} s")
            time.sleep(TICK_S)
        for host, switch in hosts.items():
            switches[switch].frame_in(1000, arp_from(host))
        yield running, switches


def packets(running: Running, switches: dict[int, WireSwitch]) -> None:
    """Tell of frames, more a second with each step."""
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
            time.sleep(TICK_S / 10)
        took_s = time.monotonic() - began_s
        answered = threading.Event()
        for switch in order:  # who has answered the last has taken all before it
            answered.clear()
            switch.echo(answered.set)
            answered.wait(FOUND_S)
        taken, dropped = (running.metric(name) - was for name, was in before.items())
        waits_s.sort()
        shown = ", ".join(f"{waits_s[int(share * (len(waits_s) - 1))] * 1e3:.1f}" for share in (0.5, 0.99, 1))
        print(
            f"| {sent / took_s:.0f} | {taken / took_s:.0f} | {(taken - dropped) / took_s:.0f} | {shown} |",
            flush=True,
        )


def note_wait(waits_s: list[float], asked_s: float) -> None:
    """Note how long ago something was asked."""
    waits_s.append(time.monotonic() - asked_s)


def sets(running: Running, switches: dict[int, WireSwitch]) -> None:
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
    print(f"{SETS} path sets with {STREAMS} streams: memory {memory_bytes(running) / 1e6:.1f} MB")
    for name, values in (("assigned", assigned), ("placed", placed), ("renewed", renewed)):
        first, last = (statistics.median(some) * 1e3 for some in (values[:100], values[-100:]))
        most = sorted(values)[int(0.99 * SETS)] * 1e3
        print(f"{name}: median of the first 100 {first:.1f} ms, of the last {last:.1f} ms, P99 {most:.1f} ms")
    state, took_s = timed(partial(running.get, "path-sets"))
    print(
        f"all of them listed ({len(json.dumps(state)) / 1e6:.1f} MB of JSON): {took_s * 1e3:.0f} ms",
        flush=True,
    )
    lost = THESIS_A.links[0].start
    with ProcessPoolExecutor(1, get_context("spawn")) as caller:  # whom our switches do not hold up
        caller.submit(asked, running.urls["rest"], 0.1).result()
        for what, up in (("nothing happens", None), ("a link of all is lost", False), ("it is back", True)):
            waits = caller.submit(asked, running.urls["rest"], STEP_S)
            if up is not None:
                switches[lost.switch].carrier(lost.number, up=up)
            waits_s = sorted(waits.result())
            p99_s = waits_s[int(0.99 * len(waits_s))]
            print(f"asked while {what}: P99 {p99_s * 1e3:.0f} ms, most {waits_s[-1] * 1e3:.0f}", flush=True)


def asked(url: str, seconds: float) -> list[float]:
    """Ask whether it runs for so long, a hundred times a second; return how long each answer took."""
    until_s, waits_s = time.monotonic() + seconds, []
    while time.monotonic() < until_s:
        waits_s.append(timed(lambda: urlopen(f"{url}/healthz", timeout=FOUND_S).read())[1])
        time.sleep(TICK_S)
    return waits_s


def churn(running: Running, seconds: float) -> None:
    """Let sets come and go."""
    client = ControllerClient(running.urls["rest"])
    began_s = time.monotonic()
    rounds, minute = 0, 0
    shown: list[float] = []
    while (now_s := time.monotonic()) < began_s + seconds:
        if now_s - began_s >= minute * 60:
            shown.append(memory_bytes(running) / 1e6)
            print(f"after {minute} min, {rounds} sets: {shown[-1]:.1f} MB", flush=True)
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
        time.sleep(max(0.0, began_s + rounds / ROUNDS_PER_S - time.monotonic()))
    print(
        f"{rounds} sets with {rounds * STREAMS} streams in {seconds:.0f} s; at the end "
        f"{memory_bytes(running) / 1e6:.1f} MB, {len(running.get('path-sets'))} sets left"
    )


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
    main()
