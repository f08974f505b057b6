"""Plots the round-trip times (RTT) of a probe; the only part of `mpx probe` that needs matplotlib."""

from pathlib import Path

from matplotlib.figure import Figure

from mpx.files.atomic_file import whole
from mpx.probing.result import ProbeResult
from mpx.text import shown


def draw(result: ProbeResult, file: str) -> None:
    """Plot the series to `file`, whose suffix is the format; raises UsageError where that fails."""
    figure = Figure(figsize=(9, 4), layout="constrained")
    axes = figure.add_subplot()
    answered = [(p.t_s, 1000 * p.rtt_s) for p in result.series if p.rtt_s is not None]
    lost = [p.t_s for p in result.series if p.rtt_s is None]
    if answered:
        axes.plot(*zip(*answered, strict=True), marker=".", linewidth=0.8, label="RTT")
    for i, t_s in enumerate(lost):
        axes.axvline(t_s, color="tab:red", linewidth=0.8, label="lost" if i == 0 else None)
    if result.goodput:
        bursts = axes.twinx()
        at_s, bps = [t_s for t_s, _ in result.goodput], [bps for _, bps in result.goodput]
        bursts.fill_between(at_s, bps, color="tab:orange", alpha=0.3, linewidth=0)
        bursts.set_ylabel("goodput of the bursts (bit/s)")
    axes.set_xlabel("time (s)")
    axes.set_ylabel("RTT (ms)")
    axes.set_title(shown(f"{result.target}, {result.way.name}"), fontsize="medium", parse_math=False)
    if lost:
        axes.legend(loc="upper right")
    axes.grid(alpha=0.3)
    with whole(file) as out:
        figure.savefig(out, format=Path(file).suffix[1:].lower())
