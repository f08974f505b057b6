"""Folders of runs as a lab would have written them, for tests of what reads them."""

import csv
import itertools
import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from mpx_lab.dataset.generators import generators
from mpx_lab.dataset.recipe import Recipe
from mpx_lab.traffic.spec import GridFtp, Tcp, TcpSquare, parse

TICK_S = 0.1


def table(file: Path, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w", newline="") as lines:
        writer = csv.writer(lines, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(rows)


def write_run(folder: Path, recipe: Recipe, rtt_s: float = 0.05, noise_s: float = 0.0001) -> Path:
    """Write a run in which all went as planned: what is there at a time shares the link evenly."""
    flows = folder / "flows"
    flows.mkdir(parents=True)
    about = {"format": "mpx-lab-run-1", "status": "done", "parameters": recipe.described()}
    validity = {"valid": True, "reasons": []}
    (folder / "run.json").write_text(json.dumps({**about, "validity": validity}))
    ticks = [round(i * TICK_S, 6) for i in range(int(recipe.ends_s / TICK_S) + 1)]
    table(folder / "rtt" / "single.csv", ("t_s", "rtt_s", "noise_s"), [(t, rtt_s, noise_s) for t in ticks])
    train = [(t + i / 1000, rtt_s, noise_s) for t in ticks[::10] for i in range(10)]
    table(folder / "rtt" / "train.csv", ("t_s", "rtt_s", "noise_s"), train)
    planned = list(generators(recipe))
    from_s = {each.name: each.from_s + getattr(parse(each.spec), "after", 0.0) for each in planned}
    a_tick = recipe.link.rate_bps * 0.95 / 8 * TICK_S
    there = [sum(from_s[each.name] <= t <= each.until_s for each in planned) for t in ticks]
    for each in planned:
        spec, name, began_s = parse(each.spec), each.name, from_s[each.name]
        brought = [
            (t, int(a_tick / count) if began_s <= t <= each.until_s else 0)
            for t, count in zip(ticks, there, strict=True)
        ]
        table(flows / f"{name}.csv", ("t_s", "bytes"), brought)
        table(flows / f"{name}.phases.csv", ("t_s", "stream", "on"), [(began_s, 0, 1), (each.until_s, 0, 0)])
        told: dict[str, object] = {"began_s": began_s}
        streams = getattr(spec, "streams", 0)
        if isinstance(spec, Tcp | TcpSquare):
            told["connections"] = [
                {"stream": i, "congestion": spec.congestion, "opened_s": began_s, "closed_s": each.until_s}
                for i in range(streams)
            ]
        if isinstance(spec, Tcp | TcpSquare | GridFtp):
            acked = itertools.accumulate(count for _, count in brought)
            rows = [
                (t, i, spec.congestion, total // streams)
                for t, total in zip(ticks, acked, strict=True)
                for i in range(streams)
                if began_s <= t <= each.until_s
            ]
            table(flows / f"{name}.tcp.csv", ("t_s", "stream", "congestion", "bytes_acked"), rows)
        if isinstance(spec, GridFtp) and spec.dips:
            told_s = [t for t in ticks[::10] if began_s <= t <= each.until_s]
            table(flows / f"{name}.dips.csv", ("t_s", "share", "kept"), [(t, 0.5, 0.6) for t in told_s])
        (flows / f"{name}.json").write_text(json.dumps(told))
    return folder
