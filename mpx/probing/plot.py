"""The round-trip times (RTT) of a probe as a picture; the only part of `mpx probe` that needs matplotlib."""

from pathlib import Path

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from mpx.errors import UsageError
from mpx.probing.result import ProbeResult


def check_format(file: str) -> None:
    """Raise UsageError for a file whose name does not end in a known format."""
    known = FigureCanvasAgg.get_supported_filetypes()
    if Path(file).suffix.removeprefix(".").lower() not in known:
        raise UsageError(f"--plot {file}: no such format; end the name in .png, .svg or .pdf")


def draw(result: ProbeResult, file: str) -> None:
    """Draw the series into `file`; raises UsageError when that cannot be written."""
    figure = Figure(figsize=(9, 4), layout="constrained")
    axes = figure.add_subplot()
    answered = [(p.t_s, 1000 * p.rtt_s) for p in result.series if p.rtt_s is not None]
    lost = [p.t_s for p in result.series if p.rtt_s is None]
    if answered:
        axes.plot(*zip(*answered, strict=True), marker=".", linewidth=0.8, label="RTT")
    for i, t_s in enumerate(lost):
        axes.axvline(t_s, color="tab:red", linewidth=0.8, label="lost" if i == 0 else None)
    axes.set_xlabel("time (s)")
    axes.set_ylabel("RTT (ms)")
    axes.set_title(f"{result.target}, {result.way}", fontsize="medium", parse_math=False)
    if lost:
        axes.legend(loc="upper right")
    axes.grid(alpha=0.3)
    try:
        figure.savefig(file)
    except OSError as error:
        raise UsageError(f"cannot write {file}: {error.strerror}") from None
