"""Measures wirefilter, the wire emulator of Debian's vde2, beside the lab's: the same link, in turns.

    python bench/lab_vde.py [--mbit N ...] [--runs N] [--seconds S]     (root; apt-get install vde2)

A link of 100, then of 300 Mbit/s of frame bytes, 30 ms each way, with a queue of one BDP: 60 ms. wirefilter
serves both devices itself (its plugs are taps), so there is no switch between. Its buffer counts what is on
its way too and gets that much more; its other values are the link's own. One process lets no frame out before
those that came earlier, whichever way they go; so a third kind has one for each way, by routes. `error` is as
in lab_fidelity.py; CPU is that of the emulators' own processes. Exits 1 if the lab's emulator, in the median,
is further than wirefilter from the rate with TCP, or from the delay of a full queue.
"""

import argparse
import os
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from figures import Spread, Verdict, machine
from harness import command, require_root, run
from lab_fidelity import at, shape
from lab_load import HOST, Running, echo, fill_with_tcp, offer_udp
from lab_pair import Pair, entered
from mpx_lab import state
from mpx_lab.emulator.link import LinkError

from mpx.errors import UsageError

NAME = "vde"
DELAY_S = 0.03
QUEUE_S = 2 * DELAY_S  # one BDP
TCP_WARM_S = 5.0
START_S = 10.0
QUEUE_DELAY, TCP_RATE = "UDP, 110 %: delay in the queue, ms", "TCP, one CUBIC stream: % of the rate"
RIGHT = {TCP_RATE: 100.0, QUEUE_DELAY: QUEUE_S * 1000}
EMULATOR = "emulator"
DEVICE_FRAMES = 10_000  # that wait in a device for being read; the lab's emulator takes as many
Kind = Callable[[Pair, int], AbstractContextManager[list[int]]]


class Figure(NamedTuple):
    """One line of the table, as one run saw it."""

    title: str
    wanted: str
    value: float


@contextmanager
def emulator(pair: Pair, rate_bps: int) -> Iterator[list[int]]:
    """Serve a pair with our link, which ends with the pair; give its process."""
    yield [pair.start(shape(rate_bps, DELAY_S), shape(rate_bps, DELAY_S)).pid]


@contextmanager
def both_ways(pair: Pair, rate_bps: int) -> Iterator[list[int]]:
    """Serve a pair with one wirefilter, as its manual has it; give its process."""
    with wirefilter(pair, rate_bps, 0) as pid:
        yield [pid]


@contextmanager
def each_way(pair: Pair, rate_bps: int) -> Iterator[list[int]]:
    """Serve a pair with two, the second for what B answers; give their processes."""
    with wirefilter(pair, rate_bps, 0) as there, wirefilter(pair, rate_bps, 1) as back:
        pair.answer_over(1)
        yield [there, back]


@contextmanager
def wirefilter(pair: Pair, rate_bps: int, number: int) -> Iterator[int]:
    """Serve link `wanN` with wirefilter; give its process. Raises LinkError if that ends."""
    near, far = f"near{number}", f"far{number}"
    plug = pair.folder / near  # the first colon is between both plugs, so this one is named by a file
    plug.write_text(f"tap://{near}\n")
    held_bytes = int(rate_bps * (QUEUE_S + DELAY_S) / 8)
    words = f"-v {plug}:tap://{far} -d {DELAY_S * 1000:g} -b {rate_bps // 8} -c {held_bytes}"
    with entered(pair.netns[0]):
        process = subprocess.Popen(
            ["wirefilter", *words.split()],
            stdin=subprocess.PIPE,  # its console
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env=state.environment(NAME),
            start_new_session=True,
        )
    with process, ExitStack() as ending:
        ending.callback(process.terminate)
        assert process.stderr is not None
        came, _, _ = select.select([process.stderr], [], [], START_S)
        said = process.stderr.readline().strip() if came else "no answer"
        if not said.endswith("starting..."):
            needs = "it needs /dev/net/tun and libvdeplug 4 with the plug 'tap'"
            raise LinkError(f"wirefilter does not start: {said or 'it ended at once'}; {needs}")
        with entered(pair.netns[0]):
            for device in (near, far):
                queue = f"link set {device} txqueuelen {DEVICE_FRAMES}"
                subprocess.run(["ip", *queue.split()], check=True)
        pair.adopt(near, far, number)
        try:
            yield process.pid
        finally:
            if process.poll() is not None:
                again = "measure again, or less with --mbit"
                raise LinkError(f"wirefilter ended by itself, with code {process.returncode}; {again}")


KINDS: dict[str, Kind] = {
    "emulator": emulator,
    "wirefilter": both_ways,
    "wirefilter for each way": each_way,
}


def cpu_s(pids: Sequence[int]) -> float:
    """Return the processor time that processes have used."""
    stats = [Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split() for pid in pids]
    return sum(int(fields[11]) + int(fields[12]) for fields in stats) / os.sysconf("SC_CLK_TCK")


def measure(kind: Kind, rate_bps: int, seconds: float) -> list[Figure]:
    """Load one link with one thing after the other."""
    with Pair(NAME) as pair, kind(pair, rate_bps) as pids:
        idle = sorted(Running(pair.netns[0], echo, HOST, seconds).result())
        used_s = [cpu_s(pids)]
        sent, room = offer_udp(pair, rate_bps * 0.95, seconds)
        used_s.append(cpu_s(pids))
        echoing = Running(pair.netns[0], echo, HOST, seconds)
        _, full = offer_udp(pair, rate_bps * 1.1, seconds)
        echoes = echoing.result()
        carried_bps, _ = fill_with_tcp(pair, TCP_WARM_S, seconds)
    errors = sorted(room.errors_s(rate_bps, DELAY_S))
    delays = [(came - sent) / 1e9 for sent, came in zip(full.sent_ns, full.came_ns, strict=True)]
    skip_s = seconds / 4
    return [
        Figure("UDP, 95 % offered: % of the rate", "95", room.rate_bps(skip_s) / rate_bps * 100),
        Figure("UDP, 95 %: frames lost, %", "0", (1 - len(room.numbers) / sent) * 100),
        Figure("UDP, 95 %: delay error P50, ms", "0", at(errors, 0.5) * 1000),
        Figure("UDP, 95 %: delay error P99, ms", "0", at(errors, 0.99) * 1000),
        Figure("UDP, 95 %: CPU, % of a core", "", (used_s[1] - used_s[0]) / seconds * 100),
        Figure("UDP, 110 %: % of the rate", "100", full.rate_bps(skip_s) / rate_bps * 100),
        Figure(QUEUE_DELAY, f"{QUEUE_S * 1000:g}", (late(delays) - DELAY_S) * 1000),
        Figure("UDP, 110 %: RTT, ms", f"{(QUEUE_S + 2 * DELAY_S) * 1000:g}", late(echoes) * 1000),
        Figure(TCP_RATE, "100", carried_bps / rate_bps * 100),
        Figure("idle: RTT error P50, ms", "0", (at(idle, 0.5) - 2 * DELAY_S) * 1000),
        Figure("idle: RTT error P99, ms", "0", (at(idle, 0.99) - 2 * DELAY_S) * 1000),
    ]


def late(values: Sequence[float]) -> float:
    """Return the median of the second half, in which the queue is full."""
    return at(sorted(values[len(values) // 2 :]), 0.5)


def compare(rate_bps: int, runs: int, seconds: float) -> dict[str, dict[str, list[float]]]:
    """Measure all kinds in turns and print a table; return the figures that are judged, by title and kind."""
    seen: dict[str, list[list[Figure]]] = {name: [] for name in KINDS}
    for _ in range(runs):
        for name, kind in KINDS.items():
            seen[name].append(measure(kind, rate_bps, seconds))
    print(f"\n| {rate_bps // 1_000_000} Mbit/s | wanted | " + " | ".join(seen) + " |")
    print("|" + "---|" * (2 + len(seen)))
    for number, (title, wanted, _) in enumerate(seen[EMULATOR][0]):
        cells = [f"{Spread([run[number].value for run in each]):.2f}" for each in seen.values()]
        print(f"| {title} | {wanted} | " + " | ".join(cells) + " |", flush=True)
    return {
        title: {
            name: [figure.value for run in each for figure in run if figure.title == title]
            for name, each in seen.items()
        }
        for title in RIGHT
    }


def judge(measured: Mapping[str, Mapping[str, Mapping[str, Sequence[float]]]]) -> Iterator[Verdict]:
    """Hold the lab's emulator against the better of the others, by figures that have one right value."""
    for mbit, by_title in measured.items():
        for title, seen in by_title.items():
            right = RIGHT[title]
            off = {
                name: Spread([abs(value - right) for value in values]).median for name, values in seen.items()
            }
            other = min(value for name, value in off.items() if name != EMULATOR)
            limit = f"{mbit} Mbit/s, {title}: no further from {right:g} than wirefilter"
            yield Verdict(limit, f"off by {off[EMULATOR]:.2f} against {other:.2f}", off[EMULATOR] <= other)


def measure_all(options: argparse.Namespace) -> dict[str, Any]:
    """Compare at each rate."""
    require_root()
    if shutil.which("wirefilter") is None:
        raise UsageError("wirefilter is not installed; run 'apt-get install vde2'")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # what was made is taken away
    print(machine("cubic (by route)"))
    print(f"median (min to max) of {options.runs} runs of {options.seconds:g} s")
    return {str(mbit): compare(mbit * 1_000_000, options.runs, options.seconds) for mbit in options.mbit}


if __name__ == "__main__":
    parser = command(__doc__)
    parser.add_argument("--mbit", type=int, nargs="+", default=[100, 300], help="rates (default: 100 300)")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=4.0, help="of each load in each run")
    run(parser, measure_all, judge)
