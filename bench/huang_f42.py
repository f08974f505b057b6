"""HUANG-F4.2 and F4.3: time over latency and number of streams, on one path of 50 Mbit/s. Needs root.

    .venv/3.11/bin/python bench/huang_f42.py --effort full
    .venv/3.11/bin/mpx lab simulate .venv/3.11/bin/python bench/huang_f42.py     # on a busy machine

globus-url-copy to globus-gridftp-server, no controller; a queue of 1000 packets, as tc gives a link that is
told of none. With windows as the kernel tunes them, as in the thesis, and with windows of 84 kB, which is
what its a = 0.001495 stands for. What the row should show: the number of streams that is best grows with the
latency; one stream is the slowest at 40 ms and more (with 2 GB and tuned windows by 3 to 4 % only).
"""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from figures import Verdict, median
from harness import run_row
from huang.cell import CopyCell
from huang.rates import seconds
from huang.row import CopyResult, CopyRow, Results, by_cell, repeated
from mpx_lab.topology import Link, Topology

RATE_BPS = 50_000_000
QUEUE_PACKETS = 1000
LATENCIES_MS = {"quick": (0, 40, 100), "full": (0, 20, 40, 60, 80, 100)}
STREAMS = {"quick": (1, 2, 4, 7), "full": tuple(range(1, 9))}
WINDOWS = (None, 84_000)
NOISE = 0.001  # of the best: so much is as good
SLOWEST_FROM_MS = 40


def path_of(latency_ms: int) -> Topology:
    """Return two hosts with that latency between them, there and back together."""
    wan = Link("src", "dst", "wan", rate_bps=RATE_BPS, delay_s=latency_ms / 2e3, queue_packets=QUEUE_PACKETS)
    return Topology(f"v-{latency_ms}ms", ("src",), ("dst",), (wan,))


class F42(CopyRow):
    """See the head of this file."""

    name = "huang-f42"
    sizes_bytes = {"quick": 100_000_000, "full": 2_000_000_000}
    topologies = tuple(path_of(latency) for latency in LATENCIES_MS["full"])

    def cells(self, effort: str, size_bytes: int) -> Sequence[CopyCell]:
        """Each number of streams at each latency."""
        cells = [
            CopyCell(path_of(latency).name, 0, streams, size_bytes, window_bytes=window)
            for window in WINDOWS
            for latency in LATENCIES_MS[effort]
            for streams in STREAMS[effort]
        ]
        return repeated(cells, 1 if effort == "quick" else 10)

    def table(self, results: Results) -> Sequence[str]:
        """Times, as in the thesis; the best of each latency and those that are as good in bold."""
        streams = sorted({cell.streams for cell in results})
        lines = [f"| window | latency, ms | {' | '.join(map(str, streams))} |"]
        lines += [f"|---|---|{'---|' * len(streams)}"]
        for window, rows in _times(results).items():
            for latency, times in rows.items():
                good = _as_good(times)
                cells = [f"**{times[n]:.2f}**" if n in good else f"{times[n]:.2f}" for n in streams]
                lines.append(f"| {window or 'tuned'} | {latency} | {' | '.join(cells)} |")
        return lines

    def read(self, result: CopyResult) -> Any:
        """How long the copy took."""
        return {"seconds": result.copy.seconds}

    def draw(self, results: Results, axes: Any) -> None:
        """A line for each window and latency."""
        for window, rows in _times(results).items():
            for latency, times in rows.items():
                label = f"{latency} ms, window {window or 'tuned'}"
                axes.plot(list(times), list(times.values()), "o--" if window else "o-", label=label)
        axes.set(xlabel="streams", ylabel="seconds", ylim=(0, None))
        axes.legend(fontsize="small")


def judge(stored: Mapping[str, Any]) -> Iterable[Verdict]:
    """Say whether the best number grows, and one stream is slowest."""
    times = {cell: median(runs, "seconds") for cell, runs in by_cell(stored).items()}
    for window, rows in _by_window(times).items():
        where = f"window {window or 'tuned'}"
        best = {latency: min(_as_good(times)) for latency, times in rows.items()}
        grows = all(a <= b for a, b in itertools.pairwise(best.values())) and len(set(best.values())) > 1
        limit = f"{where}: the fewest streams that are best grow with the latency"
        yield Verdict(limit, f"{best}", grows)
        for latency, times in rows.items():
            if latency >= SLOWEST_FROM_MS:
                behind = times[1] / min(times.values()) - 1
                limit = f"{where}, {latency} ms: one stream is the slowest"
                slowest = max(times, key=lambda n, times=times: times[n])
                yield Verdict(limit, f"by {behind:.1%}", slowest == 1 and behind > NOISE)


def _times(results: Results) -> dict[int | None, dict[int, dict[int, float]]]:
    """Return the median time by window, by latency and by number of streams."""
    return _by_window({cell: seconds(runs).median for cell, runs in results.items()})


def _by_window(times: Mapping[CopyCell, float]) -> dict[int | None, dict[int, dict[int, float]]]:
    found: dict[int | None, dict[int, dict[int, float]]] = {}
    for cell, median_s in times.items():
        latency = int(cell.topology.removeprefix("v-").removesuffix("ms"))
        found.setdefault(cell.window_bytes, {}).setdefault(latency, {})[cell.streams] = median_s
    return found


def _as_good(times: dict[int, float]) -> list[int]:
    """Return the numbers of streams within the noise of the best."""
    least = min(times.values())
    return [n for n, each in times.items() if each <= least * (1 + NOISE)]


if __name__ == "__main__":
    run_row(F42(), judge)
