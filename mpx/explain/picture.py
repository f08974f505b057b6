"""What is drawn of a copy, as values: curves over time, bars of what was in use, marks of decisions. Pure.

The page (page.py) and the picture for other programs (plot.py) draw the same.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from mpx.explain.path_story import told_stretches
from mpx.explain.record import CopyRecord
from mpx.explain.stretches import Stretch, last_attempt, of_path, steps, stretches
from mpx.intervals import Interval
from mpx.report import Event

MOST_MARKS = 24  # more would hide the curves
MOST_DRAWN = 8  # paths, as there are colours
SHORTEST_S = 1e-3  # of what is drawn: reports have times in milliseconds
POINTS = 160  # of a curve of goodput: what is shorter is noise of the measurement

Point = tuple[float, float | None]  # seconds since bytes began to flow, and a value; None: a gap


@dataclass(frozen=True, slots=True)
class Curve:
    """One curve; `colour` counts from 0, in the order of the paths."""

    label: str
    colour: int
    points: Sequence[Point]
    is_step: bool = False
    is_faint: bool = False


@dataclass(frozen=True, slots=True)
class Panel:
    """Curves with one scale; `unit`: of its values, empty for numbers of things."""

    title: str
    unit: str
    curves: Sequence[Curve]


@dataclass(frozen=True, slots=True)
class Bar:
    """What was in use, or was recognised, on a path, from when until when."""

    label: str
    stretches: Sequence[Stretch]


@dataclass(frozen=True, slots=True)
class Bars:
    """Bars of one kind, one for each path."""

    title: str
    bars: Sequence[Bar]


@dataclass(frozen=True, slots=True)
class Mark:
    """A decision: its number in the list of all, and when."""

    number: int
    t_s: float
    colour: int
    text: str


@dataclass(frozen=True, slots=True)
class Picture:
    """All of it, over the same time, 0 to `until_s`."""

    until_s: float
    panels: Sequence[Panel]
    bars: Sequence[Bars]
    marks: Sequence[Mark]


def picture(record: CopyRecord) -> Picture | None:
    """Return what can be drawn; None where the report has nothing over time."""
    paths = record.paths[:MOST_DRAWN]
    by_path = {path: list(of_path(record.intervals, path)) for path in paths}
    events = last_attempt(record.events)
    until_s = max([0.0, *(e.t_s for e in events), *(i.until_s for i in record.intervals)])
    if not paths or until_s < SHORTEST_S:
        return None
    panels = [
        Panel("Goodput of all paths", "Mbit/s", _goodput_of_all(by_path)),
        Panel("Goodput", "Mbit/s", _curves(by_path, _goodput) or _goodput_of_events(paths, events)),
        Panel("Streams", "", _streams(paths, events, by_path)),
        Panel("Round-trip time", "ms", _round_trips(by_path)),
    ]
    bars = [
        Bars("Congestion control", _bars(by_path, _congestions)),
        Bars("Background", _bars(by_path, told_stretches)),
    ]
    return Picture(
        until_s,
        [each for each in panels if each.curves],
        [each for each in bars if each.bars],
        marks(events, paths),
    )


def marks(events: Sequence[Event], paths: Sequence[str]) -> Sequence[Mark]:
    """Return the decisions to mark: of many, those that change more than the number of streams first."""
    colours = {path: at for at, path in enumerate(paths)}
    before: dict[str, Event] = {}
    ranked: list[tuple[int, Mark]] = []
    for number, event in enumerate(events, 1):
        last = before.get(event.path)
        before[event.path] = event
        if last is None or event.path not in colours:
            continue  # the start is no decision to look for
        is_rare = event.congestion != last.congestion or event.streams == last.streams
        ranked.append((0 if is_rare else 1, Mark(number, event.t_s, colours[event.path], event.reason)))
    first = sorted(ranked, key=lambda each: each[0])[:MOST_MARKS]
    return sorted((mark for _, mark in first), key=lambda mark: mark.number)


def _curves(
    by_path: dict[str, list[Interval]], points: Callable[[Sequence[Interval]], Sequence[Point]]
) -> Sequence[Curve]:
    found = [Curve(f"path {path}", at, points(each)) for at, (path, each) in enumerate(by_path.items())]
    return [each for each in found if any(value is not None for _, value in each.points)]


def _goodput(intervals: Sequence[Interval]) -> Sequence[Point]:
    """Return the goodput over some intervals at a time, Mbit/s, at the middle of each time."""
    together = max(1, round(2 * len(intervals) / POINTS))
    points: list[Point] = []
    for at in range(0, len(intervals), together):
        part = intervals[at : at + together]
        took_s = part[-1].until_s - part[0].from_s
        if took_s > 0:
            mbps = sum(each.arrived_bytes for each in part) * 8 / took_s / 1e6
            points.append(((part[0].from_s + part[-1].until_s) / 2, mbps))
    return points


def _goodput_of_all(by_path: dict[str, list[Interval]]) -> Sequence[Curve]:
    """Return the sum over several paths, whose intervals begin and end together."""
    if len(by_path) < 2:
        return []
    together: dict[float, Interval] = {}
    for intervals in by_path.values():
        for each in intervals:
            before = together.get(each.from_s)
            arrived = each.arrived_bytes + (before.arrived_bytes if before else 0)
            together[each.from_s] = replace(each, arrived_bytes=arrived)
    points = _goodput([together[from_s] for from_s in sorted(together)])
    return [Curve("all paths", 6, points)] if points else []


def _goodput_of_events(paths: Sequence[str], events: Sequence[Event]) -> Sequence[Curve]:
    """Return the goodput between decisions, of reports without intervals."""
    curves = []
    for at, path in enumerate(paths):
        mine = [event for event in events if event.path == path]
        points = [(e.t_s, after.goodput_bps / 1e6) for e, after in pairwise(mine)]
        if points:
            curves.append(Curve(f"path {path}", at, [*points, (mine[-1].t_s, points[-1][1])], is_step=True))
    return curves


def _streams(
    paths: Sequence[str], events: Sequence[Event], by_path: dict[str, list[Interval]]
) -> Sequence[Curve]:
    curves = []
    for at, path in enumerate(paths):
        found = steps([event for event in events if event.path == path], by_path[path])
        points: list[Point] = [(step.from_s, float(step.streams)) for step in found]
        if found:
            points.append((found[-1].until_s, float(found[-1].streams)))
            curves.append(Curve(f"path {path}", at, points, is_step=True))
    return curves


def _round_trips(by_path: dict[str, list[Interval]]) -> Sequence[Curve]:
    """Return the round-trip times in ms; where one path is drawn, the queue that data stood in too."""
    curves = list(_curves(by_path, lambda some: [(i.from_s, _ms(i.rtt_s)) for i in some]))
    if len(by_path) == 1:
        queues = _curves(by_path, lambda some: [(i.from_s, _ms(i.queue_s)) for i in some])
        if curves:
            curves = [Curve("round trip of a command", 0, curves[0].points)]
        curves += [Curve("queue that data stood in", 1, each.points, is_faint=True) for each in queues]
    return curves


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else 1000 * seconds


def _congestions(intervals: Sequence[Interval]) -> Sequence[Stretch]:
    return stretches(intervals, lambda each: each.congestion)


def _bars(
    by_path: dict[str, list[Interval]], found: Callable[[Sequence[Interval]], Sequence[Stretch]]
) -> Sequence[Bar]:
    label = "" if len(by_path) == 1 else "path "
    return [
        Bar(f"{label}{path}" if label else "", some)
        for path, intervals in by_path.items()
        if (some := found(intervals))
    ]
