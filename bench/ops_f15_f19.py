"""OPS-F15 and F19: GridFTP and UDT beside files that are written over NFS, and these beside them.

NFS is a stand-in, `rpc` of mpx_lab.traffic: clients whose blocks are each answered, 16 under way, so each is
bound to 6.5 Mbit/s, the share of the link that the paper's had. What the rows should show: 16 streams keep at
least 0.7 of what they have alone beside 16 such clients (F15). Of twelve clients in three pairs a stream has
at least 2.5 times as much beside one CUBIC stream as beside GridFTP with 16 or UDT (F19a), and all together
fill the link to at least 0.8 (F19b).

100 Mbit/s, 128 ms, a queue of 0.75 products of bandwidth and delay, three runs (quick: one). UDT is libudt
(mpx_lab.traffic.udt), as the stock client goes on over TCP when it is asked for it.
"""

import statistics
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from apt.cell import Cell, Link
from apt.row import Results, ToolRow, by_link_and_tool
from apt.store import Result
from apt.tools import UDT
from figures import Verdict, median
from harness import run_row
from neighbours import mbps, median_of, read, theirs_bps, tool_bps, wan

RATE_BPS = 100_000_000
CLIENT = "rpc(streams={}, block=6500B, congestion=cubic)"
CLIENTS = {"quick": (0, 1, 4, 16), "full": (0, 1, 2, 4, 8, 16)}
TURNS = {"quick": 1, "full": 3}
PAIRS, EACH = 3, 4
ALONE, LIGHT, SIXTEEN = "mpx-idle", "plain-cubic", "guc-p16"
FOREGROUND, BACKGROUND = (SIXTEEN, UDT), (ALONE, LIGHT, "guc-p8", SIXTEEN, UDT)
SECONDS, FROM_S = 90.0, 30.0
_ours_bps = partial(tool_bps, from_s=FROM_S)
_theirs_bps = partial(theirs_bps, from_s=FROM_S)
KEEPS, TIMES, FILLS = 0.7, 2.5, 0.8


def link_of(clients: int) -> Link:
    """Return the link of F15 with so many clients."""
    return wan(RATE_BPS, 0.128, 0.75, CLIENT.format(clients) if clients else "")


PAIRED = wan(RATE_BPS, 0.128, 0.75, " + ".join([CLIENT.format(EACH)] * PAIRS))


class F15F19(ToolRow):
    """See the head of this file."""

    name = "ops-f15-f19"

    def cells(self, effort: str) -> Sequence[Cell]:
        """F15, then F19."""
        links = [(link_of(clients), tool) for clients in CLIENTS[effort] for tool in FOREGROUND]
        links += [(PAIRED, tool) for tool in BACKGROUND]
        return [
            Cell(link, tool, SECONDS, turn, waits=False)
            for turn in range(1, TURNS[effort] + 1)
            for link, tool in links
        ]

    def table(self, results: Results) -> Sequence[str]:
        """Goodput of both sides."""
        lines = ["| row | clients | beside | has, Mbit/s | a client has, Mbit/s |", "|---|---|---|---|---|"]
        for row, clients, link, tools in [
            *(("F15", clients, link_of(clients), FOREGROUND) for clients in CLIENTS["full"]),
            ("F19", PAIRS * EACH, PAIRED, BACKGROUND),
        ]:
            for tool in tools:
                if runs := results.get((link, tool), []):
                    each = mbps(runs, lambda run, n=clients: _theirs_bps(run) / n) if clients else "-"
                    lines.append(f"| {row} | {clients} | {tool} | {mbps(runs, _ours_bps)} | {each} |")
        return lines

    def read(self, run: Result) -> Any:
        """What both sides had, once it was steady."""
        return read(run, FROM_S)

    def draw(self, results: Results, axes: Any) -> None:
        """F19a: what a client has beside each."""
        rates = [median_of(results[PAIRED, tool], _theirs_bps) / PAIRS / EACH / 1e6 for tool in BACKGROUND]
        axes.bar(range(len(BACKGROUND)), rates)
        axes.set_xticks(range(len(BACKGROUND)), list(BACKGROUND))
        axes.set_ylabel("goodput of a client, Mbit/s")


def judge(stored: Mapping[str, Any]) -> Iterable[Verdict]:
    """Judge F15, F19a and F19b."""
    found = by_link_and_tool(stored)
    alone, beside = (median(found[link_of(n), SIXTEEN], "ours_bps") for n in (0, 16))
    share = beside / alone
    yield Verdict(f"F15: {KEEPS:.0%} of what it has alone", f"{share:.0%}", share >= KEEPS)
    light = median(found[PAIRED, LIGHT], "theirs_bps")
    for tool in (SIXTEEN, UDT):
        times = light / median(found[PAIRED, tool], "theirs_bps")
        yield Verdict(f"F19a: {TIMES} times what is left by {tool}", f"{times:.1f}", times >= TIMES)
    for tool in BACKGROUND[1:]:
        runs = [run["ours_bps"] + run["theirs_bps"] for run in found[PAIRED, tool]]
        used = statistics.median(runs) / RATE_BPS
        yield Verdict(f"F19b: {FILLS:.0%} filled beside {tool}", f"{used:.0%}", used >= FILLS)


if __name__ == "__main__":
    run_row(F15F19(), judge)
