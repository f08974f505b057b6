"""How soon the switches apply a request to the controller: real Open vSwitch, paths of five hops.

    sudo .venv/3.11/bin/python bench/controller_paths.py [--quick]

Four disjoint paths of five links each. A path set is assigned and one stream put on each of its paths; the
time runs from the question to the answer, which comes when all eighteen switches have confirmed. Then a
stream is cut: packets go each millisecond over one path, and its carrier is lost at one link. How long
nothing arrives is what a transfer sees of it. Beside it, in this process, how long the choice among 64
switches takes.

Exits 1 if a choice takes more than 20 ms, the P99 from the question to the answer is above 50 ms, or nothing
arrives for more than 200 ms after any cut.
"""

import argparse
import contextlib
import random
import socket
import statistics
import struct
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

from figures import Verdict, machine, quantile
from harness import command, run
from mpx_controller.graph import Graph, Link, Port
from mpx_controller.path_sets.selection import SELECTORS
from mpx_lab.lab import Lab
from mpx_lab.namespace import inside
from mpx_lab.own_controller import OWN
from mpx_lab.steps import SWITCHES, netns_name
from mpx_lab.topology import Link as Cable
from mpx_lab.topology import Topology

from mpx.sdn_client import ControllerClient

PATHS, HOPS = 4, 5
CONFIRMED_S, REROUTED_S, CHOSEN_S = 0.050, 0.200, 0.020
API = "http://127.0.0.1:6680"  # as an operator does, in the namespace of the switches
PACKET_S = 0.001
STEADY_S, AFTER_S = 1.0, 2.0  # before and after the cut; the longest pause is looked for in both
ACK = 0x10
FOUND_S, LOOK_S, ANSWER_S = 30.0, 0.05, 10.0


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Measure and print."""
    quick = options.quick
    print(machine())
    measured = {"chosen": chosen()}
    with Lab.up(long_paths(), "bench-paths", controller=OWN) as lab:
        switches = netns_name(lab.id, SWITCHES)
        measured |= inside(switches, lambda: confirmed(lab, 30 if quick else 300))
        measured["rerouted"] = rerouted(lab, 3 if quick else 20)
    return measured


def judge(took_s: Mapping[str, Sequence[float]]) -> Iterator[Verdict]:
    """Hold the seconds that each thing took, again and again, against its limit."""
    worst_s = max(took_s["chosen"])
    limit = f"64 switches, 16 paths: chosen within {CHOSEN_S * 1e3:g} ms, always"
    yield Verdict(limit, spread(took_s["chosen"]), worst_s <= CHOSEN_S)
    p99_s = quantile(took_s["both"], 0.99)
    limit = f"{PATHS} paths of {HOPS} hops asked for and confirmed within {CONFIRMED_S * 1e3:g} ms, P99"
    yield Verdict(limit, spread(took_s["both"]), p99_s <= CONFIRMED_S)
    worst_s = max(took_s["rerouted"])
    limit = f"re-routed within {REROUTED_S * 1e3:g} ms of a carrier loss, always"
    yield Verdict(limit, spread(took_s["rerouted"]), worst_s <= REROUTED_S)


def long_paths() -> Topology:
    """Return four disjoint paths of five links between the first and the last of eighteen switches."""
    first, last = "s1", "s18"
    middle = [f"s{number}" for number in range(2, 18)]
    links: list[Cable] = []
    for path in range(PATHS):
        chain = [first, *middle[path * (HOPS - 1) : (path + 1) * (HOPS - 1)], last]
        links += [Cable(a, b) for a, b in pairwise(chain)]
    links += [Cable("src", first), Cable(last, "dst")]
    return Topology("long-paths", ("src",), ("dst",), tuple(links), (first, *middle, last), "four paths")


def confirmed(lab: Lab, times: int) -> dict[str, list[float]]:
    """Assign and place, again and again; return how long each took, and both together."""
    ends = [lab.host(name).addresses[0] for name in ("src", "dst")]
    took: dict[str, list[float]] = {"assigned": [], "placed": [], "both": []}
    for number in range(times):
        began_s = time.perf_counter()
        known = ask("POST", "/path-sets", {"source": ends[0], "sink": ends[1], "paths": PATHS})
        assigned_s = time.perf_counter()
        ports = [20_000 + PATHS * number + place for place in range(PATHS)]
        placed = ask("POST", f"/path-sets/{known['id']}/streams", {"ports": ports, "side": "source"})
        placed_s = time.perf_counter()
        assert sorted(placed["paths"]) == list(range(PATHS)), placed
        took["assigned"].append(assigned_s - began_s)
        took["placed"].append(placed_s - assigned_s)
        took["both"].append(placed_s - began_s)
        ask("DELETE", f"/path-sets/{known['id']}")
    for name, values in took.items():
        print(f"{name}: {spread(values)}")
    return took


def rerouted(lab: Lab, times: int) -> list[float]:
    """Lose the carrier of a link that packets go over; return how long none arrived."""
    ends = [lab.host(name).addresses[0] for name in ("src", "dst")]
    switches = netns_name(lab.id, SWITCHES)
    gaps = []
    for number in range(times):
        source, sink = 25_000 + number, 26_000

        known = inside(switches, partial(placed, ends, source))
        gaps.append(gap_s(lab, source, sink, "s6-s7"))
        inside(switches, partial(ask, "DELETE", f"/path-sets/{known}"))
        inside(switches, partial(wait_found, 2 * PATHS * HOPS))
    print(f"nothing arrives after a carrier loss: {spread(gaps)}")
    return gaps


def placed(ends: list[str], port: int) -> int:
    """Put a stream on the second path of a new set; return its number."""
    known = ask("POST", "/path-sets", {"source": ends[0], "sink": ends[1], "paths": PATHS})
    ask("POST", f"/path-sets/{known['id']}/streams", {"ports": [port], "side": "source", "path": 1})
    return int(known["id"])


def wait_found(links: int) -> None:
    """Return when the controller has all links again; raises RuntimeError where that takes too long."""
    until_s = time.monotonic() + FOUND_S
    while len(ask("GET", "/topology")["links"]) < links:
        if time.monotonic() > until_s:
            raise RuntimeError(f"the controller has not found all links again within {FOUND_S:g} s")
        time.sleep(LOOK_S)  # REST tells of no event


def ask(method: str, what: str, body: object = None) -> Any:
    """Ask the controller; raises ControllerError."""
    return ControllerClient(API, "", answer_s=ANSWER_S).ask(method, what, body)


def spread(values: Sequence[float]) -> str:
    """Return median, P99 and range in milliseconds."""
    low, high, most = (each * 1e3 for each in (min(values), max(values), quantile(values, 0.99)))
    return f"{statistics.median(values) * 1e3:.1f} ms, P99 {most:.1f} ({low:.1f} to {high:.1f})"


def gap_s(lab: Lab, source_port: int, sink_port: int, link: str) -> float:
    """Send a segment of TCP each millisecond, cut a link, mend it; return the longest pause at the sink.

    The segments belong to no connection, so that no timeout of TCP is part of what is measured.
    """
    ends = [lab.host(name).addresses[0] for name in ("src", "dst")]
    raw = [
        inside(
            lab.host(name).netns, partial(socket.socket, socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_TCP)
        )
        for name in ("src", "dst")
    ]
    segment = struct.pack("!HHIIBBHHH", source_port, sink_port, 1, 1, 5 << 4, ACK, 1024, 0, 0)
    arrived: list[float] = []
    ended = threading.Event()

    def send() -> None:
        due_s = time.monotonic()
        while not ended.is_set():
            raw[0].sendto(segment, (ends[1], 0))
            due_s += PACKET_S
            time.sleep(max(0.0, due_s - time.monotonic()))  # the rate of the probes

    def receive() -> None:
        raw[1].settimeout(0.1)
        while not ended.is_set():
            with contextlib.suppress(TimeoutError):
                packet = raw[1].recv(2048)
                if struct.unpack_from("!HH", packet, 20) == (source_port, sink_port):
                    arrived.append(time.monotonic())

    threads = [threading.Thread(target=each) for each in (send, receive)]
    for thread in threads:
        thread.start()
    time.sleep(STEADY_S)  # packets pass for so long before the link is cut
    before = len(arrived)
    lab.link(link).set_up(False)
    time.sleep(AFTER_S)  # what does not come back within that time has not been led around the cut
    ended.set()
    for thread in threads:
        thread.join()
    lab.link(link).set_up(True)
    for each in raw:
        each.close()
    if before < STEADY_S / PACKET_S / 4 or len(arrived) == before:
        raise RuntimeError(f"{before} segments arrived before the cut and {len(arrived) - before} after it")
    return max(b - a for a, b in pairwise(arrived))


def chosen(switches: int = 64, degree: int = 6, times: int = 30) -> list[float]:
    """Choose 16 paths in random meshes; return how long that takes."""
    took = []
    for seed in range(times):
        graph = mesh(random.Random(seed), switches, degree)
        began_s = time.perf_counter()
        SELECTORS["widest-apart"](graph, 1, switches, 16)
        took.append(time.perf_counter() - began_s)
    print(f"16 paths among {switches} switches chosen: {spread(took)}")
    return took


def mesh(rng: random.Random, switches: int, degree: int) -> Graph:
    """Return a connected random mesh of links of 1 to 100 Gbit/s."""
    pairs = {(number, number + 1) for number in range(1, switches)}
    while len(pairs) < switches * degree // 2:
        a, b = sorted(rng.sample(range(1, switches + 1), 2))
        pairs.add((a, b))
    used = dict.fromkeys(range(1, switches + 1), 0)
    links = []
    for a, b in sorted(pairs):
        used[a] += 1
        used[b] += 1
        ends = Port(a, used[a]), Port(b, used[b])
        rate_bps = rng.choice([1e9, 10e9, 100e9])
        links += [Link(ends[0], ends[1], rate_bps, 0.001), Link(ends[1], ends[0], rate_bps, 0.001)]
    return Graph.of(range(1, switches + 1), links)


if __name__ == "__main__":
    parser = command(__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the repetitions")
    run(parser, measure, judge)
