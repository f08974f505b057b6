"""Folders of runs as a lab would have written them, for tests of what reads them."""

import csv
import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from mpx_lab.dataset.recipe import Recipe
from mpx_lab.dataset.run import generators
from mpx_lab.traffic.spec import GridFtp, Tcp, TcpSquare, parse

TICK_S = 0.1


def table(file: Path, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w", newline="") as lines:
        writer = csv.writer(lines, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(rows)


def write_run(folder: Path, recipe: Recipe, rtt_s: float = 0.05, noise_s: float = 0.0001) -> Path:
    """Write a run in which all went as planned: what lasts shares the link evenly, bursts are as strong."""
    flows = folder / "flows"
    flows.mkdir(parents=True)
    about = {"format": "mpx-lab-run-1", "status": "done", "parameters": recipe.described()}
    validity = {"valid": True, "reasons": []}
    (folder / "run.json").write_text(json.dumps({**about, "validity": validity}))
    ticks = [round(i * TICK_S, 6) for i in range(int(recipe.ends_s / TICK_S) + 1)]
    table(folder / "rtt" / "single.csv", ("t_s", "rtt_s", "noise_s"), [(t, rtt_s, noise_s) for t in ticks])
    train = [(t + i / 1000, rtt_s, noise_s) for t in ticks[::10] for i in range(10)]
    table(folder / "rtt" / "train.csv", ("t_s", "rtt_s", "noise_s"), train)
    until_s = {f"transfer-{number}": copy.until_s for number, copy in enumerate(recipe.ours, 1)}
    lasting = len(recipe.streams) + len(recipe.nuisance) + bool(recipe.ours)
    a_tick = int(recipe.link.rate_bps * 0.95 / 8 * TICK_S / max(1, lasting))
    for each in generators(recipe):
        spec, name = parse(each.spec), each.name
        from_s = each.from_s + getattr(spec, "after", 0.0)
        ends_s = until_s.get(name, recipe.ends_s)
        table(flows / f"{name}.csv", ("t_s", "bytes"), [(t, a_tick * (from_s <= t <= ends_s)) for t in ticks])
        table(flows / f"{name}.phases.csv", ("t_s", "stream", "on"), [(from_s, 0, 1), (ends_s, 0, 0)])
        told: dict[str, object] = {"began_s": from_s}
        streams = getattr(spec, "streams", 0)
        if isinstance(spec, Tcp | TcpSquare):
            told["connections"] = [
                {"stream": i, "congestion": spec.congestion, "opened_s": from_s, "closed_s": ends_s}
                for i in range(streams)
            ]
        if isinstance(spec, Tcp | TcpSquare | GridFtp):
            rows = [
                (t, i, spec.congestion, int((t - from_s) / TICK_S) * a_tick // streams)
                for t in ticks
                for i in range(streams)
                if from_s <= t <= ends_s
            ]
            table(flows / f"{name}.tcp.csv", ("t_s", "stream", "congestion", "bytes_acked"), rows)
        (flows / f"{name}.json").write_text(json.dumps(told))
    return folder
