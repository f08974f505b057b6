"""Whether the label of a run is true: the mix was present, probes were sent, bursts were on time.

`judged` checks that the machine was on time; this checks that what was planned is what happened.
"""

import json
from collections.abc import Iterator
from typing import Any

from mpx_lab.dataset.generators import BURST, COPY, MIX, generators
from mpx_lab.dataset.recipe import Own, Recipe, Series
from mpx_lab.record_reader import RecordedRun
from mpx_lab.series import bytes_between, goodput_bps, quantile
from mpx_lab.traffic.spec import Tcp, parse

LATE_S = 4.0  # by which a stream may open late: two SYNs may be lost in a full queue
BURST_LATE_S = 0.2
BEFORE_S = 10.0
FILLED = 0.6  # of the link, as payload; a lone CUBIC stream with a short queue may leave a quarter free
PROBED = 0.95  # of the probes that are due; those of the last second may lack an answer
NOISE_S = 0.02  # which is subtracted, so it matters little until probes are sent late as well
COPIED_BYTES = 20_000  # in 5 s; fewer may be those of the control connection
PROBES_A_SECOND = {"single": 10, "train": 10}


def wrong_with(recipe: Recipe, run: RecordedRun) -> Iterator[str]:
    """Yield why a run that has ended does not count, each reason as `KIND: what was seen`."""
    ends_s = recipe.series[-1].until_s
    for number, (spec, planned_s) in enumerate(zip(recipe.streams, recipe.begins_s, strict=True), 1):
        yield from _mix(run, f"{MIX}-{number}", spec, planned_s, ends_s)
    for number, series in enumerate(recipe.series, 1):
        if recipe.fills:
            yield from _filled(recipe, run, series)
        yield from _probed(run, series)
        if series.stretch.own:
            yield from _copied(run, f"{COPY}-{number}", series.stretch.own, series)
    for each in generators(recipe):
        if each.name.startswith(BURST):
            after_s = getattr(parse(each.spec), "after", 0.0)
            yield from _burst(run, each.name, each.from_s + after_s)
    for name in run.flows():
        left_out = _summary(run, name).get("left_out", 0)
        if left_out and not name.startswith(
            MIX
        ):  # the mix "short flows" has its label also where some were left out
            yield f"left out: {left_out} flows of {name}, as too many were open"


def _mix(run: RecordedRun, name: str, spec: str, planned_s: float, ends_s: float) -> Iterator[str]:
    """Its streams began, and those that never pause were open to the end."""
    first_s = min((float(row["t_s"]) for row in _rows(run, name, "phases")), default=None)
    parsed = parse(spec)
    if not isinstance(parsed, Tcp):
        has_begun = first_s is not None or bool(_rows(run, name, "flows"))
        if not has_begun or (first_s is not None and first_s > planned_s + LATE_S):
            yield f"not begun: {name} did not begin within {LATE_S:g} s of its time"
        return
    connections = _summary(run, name).get("connections", [])
    there = [
        one for one in connections if one["opened_s"] <= planned_s + LATE_S and one["closed_s"] >= ends_s
    ]
    if len(there) < parsed.streams:
        yield f"not begun: {len(there)} of {parsed.streams} streams of {name} were open all the time"
    elif any(one["congestion"] != parsed.congestion for one in there):
        yield f"other control: a stream of {name} used another congestion control than {parsed.congestion}"


def _filled(recipe: Recipe, run: RecordedRun, series: Series) -> Iterator[str]:
    """The mix filled the link, else probes do not see it. Checked before bursts, which may slow it."""
    from_s, until_s = series.from_s, series.until_s
    if series.stretch.bursts:
        from_s, until_s = from_s - BEFORE_S, from_s
    brought_bps = sum(goodput_bps(run.goodput(name), from_s, until_s) for name in run.flows())
    share = brought_bps / recipe.link.rate_bps
    if share < FILLED:
        yield f"not filled: {share:.0%} of the link was used from {from_s:.0f} to {until_s:.0f} s"
    for name in run.flows():
        if name.startswith(MIX) and not bytes_between(run.goodput(name), series.from_s, series.until_s):
            yield f"silent: {name} received nothing in the series from {series.from_s:.0f} s on"


def _probed(run: RecordedRun, series: Series) -> Iterator[str]:
    for name, a_second in PROBES_A_SECOND.items():
        sent = [probe for probe in run.probes(name) if series.from_s <= probe.t_s < series.until_s]
        share = len(sent) / (a_second * series.stretch.seconds)
        if share < PROBED:
            yield f"not probed: only {share:.0%} of the probes of '{name}' were sent"
        noises = [probe.noise_s for probe in sent if probe.noise_s is not None]
        if noises and (noise_s := quantile(noises, 0.99)) > NOISE_S:
            yield f"probes waited: 1% of those of '{name}' did for over {noise_s * 1e3:.1f} ms"


def _copied(run: RecordedRun, name: str, own: Own, series: Series) -> Iterator[str]:
    """Our own copy was under way, with the streams and the congestion control of its label."""
    rows = [row for row in _rows(run, name, "tcp") if series.from_s <= float(row["t_s"]) < series.until_s]
    streams = {row["stream"] for row in rows if row["congestion"] == own.congestion}
    if len(streams) < own.streams:
        yield f"other copy: only {len(streams)} of {own.streams} streams of {name} used {own.congestion}"
    for edge_s in (series.from_s, series.until_s - 5):
        if bytes_between(run.goodput(name), edge_s, edge_s + 5) < COPIED_BYTES:
            yield f"not copying: {name} received nothing from {edge_s:.0f} s on"


def _burst(run: RecordedRun, name: str, planned_s: float) -> Iterator[str]:
    begun = [float(row["t_s"]) for row in _rows(run, name, "phases") if row["on"] == "1"]
    if not begun or abs(begun[0] - planned_s) > BURST_LATE_S:
        yield f"burst late: {name} did not begin at {planned_s:.1f} s"


def _summary(run: RecordedRun, name: str) -> dict[str, Any]:
    """Return the summary that a generator wrote at its end; empty where it ended too early."""
    file = run.folder / "flows" / f"{name}.json"
    summary: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
    return summary


def _rows(run: RecordedRun, name: str, kind: str) -> list[dict[str, str]]:
    file = f"flows/{name}.{kind}.csv"
    return run.rows(file) if (run.folder / file).exists() else []
