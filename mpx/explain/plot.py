"""Draws a picture with matplotlib, for papers and slides; the only part of `mpx explain` that needs it."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from matplotlib.figure import Figure

from mpx.explain.axis import time_label, time_ticks
from mpx.explain.drawing import cut, kind_of
from mpx.explain.picture import Bars, Mark, Panel, Picture
from mpx.explain.style import BARS_LIGHT, CURVES_LIGHT
from mpx.files.atomic_file import whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH_IN, PANEL_IN, ROW_IN = 10.0, 1.7, 0.28


def plot(picture: Picture, file: str) -> None:
    """Write the picture to `file`, whose suffix is the format; raises UsageError where that fails."""
    heights = [PANEL_IN] * len(picture.panels)
    heights += [ROW_IN * (len(bars.bars) + 1) for bars in picture.bars]
    figure = Figure(figsize=(WIDTH_IN, sum(heights) + 1), layout="constrained")
    rows = figure.subplots(len(heights), 1, sharex=True, squeeze=False, height_ratios=heights)[:, 0]
    for axes, panel in zip(rows, picture.panels, strict=False):
        _panel(axes, panel)
        _marks(axes, picture.marks)
    for axes, bars in zip(rows[len(picture.panels) :], picture.bars, strict=True):
        _bars(axes, bars, picture.until_s)
    times = time_ticks(picture.until_s, 10)
    rows[-1].set_xlim(0, picture.until_s)
    rows[-1].set_xticks(times, [time_label(t_s, picture.until_s) for t_s in times])
    with whole(file) as out:
        figure.savefig(out, format=Path(file).suffix[1:].lower(), dpi=150)


def _panel(axes: "Axes", panel: Panel) -> None:
    for curve in panel.curves:
        axes.plot(
            [t_s for t_s, _ in curve.points],
            [float("nan") if value is None else value for _, value in curve.points],
            drawstyle="steps-post" if curve.is_step else "default",
            linestyle="--" if curve.is_faint else "-",
            linewidth=1.0 if curve.is_faint else 1.4,
            color=CURVES_LIGHT[curve.colour],
            label=cut(curve.label).replace("$", r"\$"),
        )
    title = f"{panel.title}, {panel.unit}" if panel.unit else panel.title
    axes.set_title(title, loc="left", fontsize="medium", fontweight="bold")
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    if len(panel.curves) > 1:
        axes.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=8, frameon=False, fontsize="small")


def _marks(axes: "Axes", marks: Sequence[Mark]) -> None:
    for mark in marks:
        axes.axvline(mark.t_s, color="0.6", linewidth=0.8, linestyle=":", zorder=0)


def _bars(axes: "Axes", bars: Bars, until_s: float) -> None:
    for place, bar in enumerate(bars.bars):
        for stretch in bar.stretches:
            axes.barh(
                place,
                stretch.length_s,
                left=stretch.from_s,
                height=0.8,
                color=BARS_LIGHT[kind_of(stretch.what)],
            )
            if stretch.length_s > 0.02 * until_s * max(1, len(stretch.what) // 2):
                axes.text(
                    (stretch.from_s + stretch.until_s) / 2,
                    place,
                    stretch.what,
                    ha="center",
                    va="center",
                    fontsize="small",
                    parse_math=False,
                )
    axes.set_yticks(range(len(bars.bars)), [cut(bar.label, 9).replace("$", r"\$") for bar in bars.bars])
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(bars.bars) - 0.5, -0.5)
    axes.set_title(bars.title, loc="left", fontsize="medium", fontweight="bold")
    axes.spines[["top", "right", "left"]].set_visible(False)
