"""The reasons of decisions in words, for the log and for event streams."""

from collections.abc import Mapping

from mpx.units import counted, format_duration, format_rate
from mpx_controller.graph import Graph, Link, switches_of
from mpx_controller.path_sets.path_set import PathSet, SetPath, StreamKey
from mpx_controller.path_sets.prediction import thesis_a

MOST_LINKS = 4  # that are named as a cause

CurrentPaths = Mapping[
    StreamKey, int | None
]  # on which path of its set each stream is; None: on none of them


def why_these(known: PathSet, selection: str, asked: int) -> str:
    """Return why a path set has these paths, and so many."""
    start = known.ends.source_port.switch
    if not known.paths[0].path:
        return f"one path, as both hosts are at switch {start:x}"
    carried = sum(path.rate_bps for path in known.paths)
    more = max(0.0, known.max_flow_bps / carried - 1) if carried > 0 else 0.0
    bound = f", as many as were asked for; more would add at most {100 * more:.0f}%"
    if asked == 0 or len(known.paths) < asked:
        bound = f"; more would add at most {100 * more:.0f}%"
    return (
        f"{selection} chose {counted(len(known.paths), 'path')} for {format_rate(carried)} "
        f"(max-flow {format_rate(known.max_flow_bps)}){bound}"
    )


def why_so_many(known: PathSet, place: int, bytes_per_stream: float) -> str:
    """Return how many streams one of its paths is believed to need, and why (huang, equation 4.8)."""
    path = known.paths[place]
    if not path.path:
        return f"{named(known, place)}: one stream"
    a = thesis_a(bytes_per_stream)
    return (
        f"{named(known, place)}: n = max(1, a B R) = {path.streams} with a = {a:.3g} for each Mbit/s and ms, "
        f"B = {format_rate(path.rate_bps)}, R = {format_duration(path.rtt_s)}; bottleneck group {path.group}"
    )


def where_they_are(known: PathSet, paths: CurrentPaths) -> str:
    """Return streams by the path that each is on."""
    by_path: dict[int | None, list[str]] = {}
    for key, place in paths.items():
        by_path.setdefault(place, []).append(f"{key.side}:{key.port}")
    return "; ".join(f"{' '.join(keys)} on {named(known, place)}" for place, keys in by_path.items())


def why_moved(
    known: PathSet, was: CurrentPaths, now: CurrentPaths, lost: list[Link], found: list[Link]
) -> str:
    """Return where streams go now, and which links have been lost or found since; empty where none moves."""
    moved = {key: place for key, place in now.items() if key in was and was[key] != place}
    if not moved:
        return ""
    causes = [*_links(lost, "gone"), *_links(found, "there again")]
    return f"{where_they_are(known, moved)}, as {' and '.join(causes) or 'links have changed'}"


def changes(before: Graph, after: Graph) -> tuple[list[Link], list[Link]]:
    """Return the links that were lost, and those that were found."""
    was, now = ({(link.start, link.end): link for link in graph.links} for graph in (before, after))
    return [was[ends] for ends in was.keys() - now.keys()], [now[ends] for ends in now.keys() - was.keys()]


def named(known: PathSet, place: int | None) -> str:
    """Return e.g. `path 0 (1-2-6)`."""
    if place is None:
        return "no path of the set"
    return f"path {place} ({_switches(known.paths[place], known.ends.source_port.switch)})"


def _switches(path: SetPath, start: int) -> str:
    return "-".join(f"{each:x}" for each in switches_of(path.path, start))


def _links(links: list[Link], are: str) -> list[str]:
    if not links:
        return []
    names = sorted(str(link) for link in links)
    more = f" and {len(names) - MOST_LINKS} more" if len(names) > MOST_LINKS else ""
    return [f"{', '.join(names[:MOST_LINKS])}{more} {'is' if len(names) == 1 else 'are'} {are}"]
