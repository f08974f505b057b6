"""Draws a picture as SVG, to stand in a page whose styles have its colours (style.py). Pure.

All text is escaped here: nothing that a report holds becomes markup.
"""

from collections.abc import Iterator, Sequence
from html import escape

from mpx.explain.axis import ticks, time_label, time_ticks, value_label
from mpx.explain.picture import Bar, Bars, Curve, Mark, Panel, Picture, Point

WIDTH, LEFT, RIGHT = 960, 76, 16
INNER = WIDTH - LEFT - RIGHT
TOP, BOTTOM = 44, 34  # above the first panel: numbers of decisions and its title; below: the times
PANEL, TITLE = 140, 44  # heights: of a panel, and between two of them
BAR, ROW, BARS_TITLE = 18, 22, 30
LETTER = 6.8  # the width of one, about
NUMBER_APART = 16  # numbers of marks nearer than this would overlap
MOST_LABEL = 30  # letters


def svg(picture: Picture) -> str:
    """Return the picture."""
    panels_end = TOP + len(picture.panels) * (PANEL + TITLE) - TITLE
    bars_height = sum(BARS_TITLE + ROW * len(bars.bars) for bars in picture.bars)
    bottom = panels_end + bars_height + 8
    height = bottom + BOTTOM
    parts = [
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" xmlns="http://www.w3.org/2000/svg">',
        "<title>What happened over time</title>",
        *_times(picture, bottom),
    ]
    parts += _marks(picture.marks, picture.until_s, bottom)
    legend: list[str] = []
    for place, panel in enumerate(picture.panels):
        parts += _panel(panel, picture.until_s, TOP + place * (PANEL + TITLE))
        names = [curve.label for curve in panel.curves]
        if len(names) > 1 and names != legend:
            parts += _legend(panel.curves, TOP + place * (PANEL + TITLE) - 8)
            legend = names
    y = panels_end
    for bars in picture.bars:
        parts += _bars(bars, picture.until_s, y + BARS_TITLE)
        y += BARS_TITLE + ROW * len(bars.bars)
    return "\n".join([*parts, "</svg>"])


def _x(t_s: float, until_s: float) -> float:
    return LEFT + INNER * min(1.0, t_s / until_s)


def _text(kind: str, x: float, y: float, text: str, anchor: str = "start") -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _line(kind: str, x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def _times(picture: Picture, bottom: float) -> Iterator[str]:
    """Yield the axis at the bottom, and what of it stands in each panel."""
    yield _line("axis", LEFT, bottom, WIDTH - RIGHT, bottom)
    for t_s in time_ticks(picture.until_s, 10):
        x = _x(t_s, picture.until_s)
        for place in range(len(picture.panels)):
            top = TOP + place * (PANEL + TITLE)
            yield _line("grid", x, top, x, top + PANEL)
        yield _line("axis", x, bottom, x, bottom + 4)
        yield _text("tick", x, bottom + 18, time_label(t_s, picture.until_s), "middle")


def _marks(marks: Sequence[Mark], until_s: float, bottom: float) -> Iterator[str]:
    """Yield a line for each decision, with its number where there is room."""
    last_x = -2.0 * NUMBER_APART
    for mark in marks:
        x = _x(mark.t_s, until_s)
        yield f"<g><title>{mark.number}: {escape(mark.text)}</title>"
        yield _line("mark", x, TOP - 26, x, bottom)
        if x - last_x >= NUMBER_APART:
            yield _text("number", x, TOP - 30, str(mark.number), "middle")
            last_x = x
        yield "</g>"


def _panel(panel: Panel, until_s: float, top: float) -> Iterator[str]:
    values = [value for curve in panel.curves for _, value in curve.points if value is not None]
    scale = ticks(1.02 * max(values, default=0.0), 4, is_whole=not panel.unit)
    bottom, highest = top + PANEL, scale[-1]
    yield _text("title", LEFT, top - 8, f"{panel.title}, {panel.unit}" if panel.unit else panel.title)
    for value in scale:
        y = bottom - PANEL * value / highest
        yield _line("grid", LEFT, y, WIDTH - RIGHT, y)
        yield _text("tick", LEFT - 8, y + 4, value_label(value), "end")
    for curve in panel.curves:
        yield from _curve(curve, until_s, bottom, highest)


def _kind(curve: Curve) -> str:
    return f"curve c{curve.colour}{' faint' if curve.is_faint else ''}"


def _curve(curve: Curve, until_s: float, bottom: float, highest: float) -> Iterator[str]:
    for part in _unbroken(curve.points):
        places = [(_x(t_s, until_s), bottom - PANEL * min(1.0, value / highest)) for t_s, value in part]
        ((x, y), *others) = places
        if not others:
            yield f'<circle class="dot c{curve.colour}" cx="{x:.1f}" cy="{y:.1f}" r="2.5"/>'
            continue
        words = [f"M{x:.1f} {y:.1f}"]
        words += [f"H{x:.1f}V{y:.1f}" if curve.is_step else f"L{x:.1f} {y:.1f}" for x, y in others]
        yield f'<path class="{_kind(curve)}" d="{"".join(words)}"/>'


def _unbroken(points: Sequence[Point]) -> Iterator[list[tuple[float, float]]]:
    """Yield the parts of a curve between its gaps."""
    part: list[tuple[float, float]] = []
    for t_s, value in points:
        if value is not None:
            part.append((t_s, value))
        elif part:
            yield part
            part = []
    if part:
        yield part


def _legend(curves: Sequence[Curve], y: float) -> Iterator[str]:
    """Yield the names of curves, from the right, as far as there is room beside the title."""
    x = float(WIDTH - RIGHT)
    for curve in reversed(curves):
        label = cut(curve.label)
        x -= LETTER * len(label)
        if x < LEFT + 220:
            return
        yield _text("tick", x, y, label)
        yield _line(_kind(curve), x - 24, y - 4, x - 6, y - 4)
        x -= 40


def _bars(bars: Bars, until_s: float, top: float) -> Iterator[str]:
    yield _text("title", LEFT, top - 6, bars.title)
    for place, bar in enumerate(bars.bars):
        yield from _bar(bar, until_s, top + place * ROW)


def _bar(bar: Bar, until_s: float, top: float) -> Iterator[str]:
    if bar.label:
        yield _text("tick", LEFT - 8, top + 13, cut(bar.label, 9), "end")
    yield f'<rect class="empty" x="{LEFT}" y="{top}" width="{INNER}" height="{BAR}"/>'
    for stretch in bar.stretches:
        x, end = _x(stretch.from_s, until_s), _x(stretch.until_s, until_s)
        since, until = (time_label(round(t_s, 1), until_s) for t_s in (stretch.from_s, stretch.until_s))
        yield f"<g><title>{escape(stretch.what)}, {since} to {until}</title>"
        place = f'x="{x:.1f}" y="{top}" width="{max(1.0, end - x):.1f}" height="{BAR}"'
        yield f'<rect class="bar {kind_of(stretch.what)}" {place}/>'
        if LETTER * len(stretch.what) + 6 <= end - x:
            yield _text("in", (x + end) / 2, top + 13, stretch.what, "middle")
        yield "</g>"


def kind_of(what: str) -> str:
    """Return the class of a bar: a colour for each congestion control and each group of backgrounds."""
    if what in ("none", "unknown"):
        return what
    return "bbr" if what.startswith(("B", "bbr")) else "cubic" if what in ("C", "CC", "cubic") else "other"


def cut(text: str, most: int = MOST_LABEL) -> str:
    """Return a text of no more than so many letters."""
    return text if len(text) <= most else text[: most - 1] + "…"
