"""The card of a model: the data it was made of, so that it can be reproduced."""

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mpx_lab.dataset.links import NEAR
from mpx_lab.dataset.load import Example
from mpx_lab.dataset.recipe import RECIPES
from mpx_lab.dataset.store import noise_files, reasons_against, runs_of
from mpx_lab.record_reader import RecordedRun

# Of a recipe: link, mix, turn.
NAME = re.compile(r"(?:(?:near-)?-?\d+-\d+|(paper))-(.+)-\d+(?:-dips|-long|-passive)?")


def data_of(folder: Path, examples: Sequence[Example]) -> dict[str, Any]:
    """Return the contents of a dataset: runs, hours, links, and rejected runs by reason."""
    series: dict[str, Counter[str]] = defaultdict(Counter)
    for example in examples:
        series[example.part][example.mix] += 1
    seconds = sum(example.single[-1].t_s - example.single[0].t_s for example in examples if example.single)
    return {
        "commands": commands(examples),
        "recipes": RECIPES,
        "digest": digest(folder),
        "measured with": sorted({measured_with(run) for run in runs_of(folder)}),
        "links": len({example.link for example in examples}),
        "runs": len({example.run for example in examples}),
        "series": {part: dict(sorted(mixes.items())) for part, mixes in sorted(series.items())},
        "noise of hosts": [file.stem for file in noise_files(folder)],
        "hours": round(seconds / 3600, 2),
        "thrown out": thrown_out(folder),
    }


def commands(examples: Sequence[Example]) -> list[str]:
    """Return the commands that measure such a dataset.

    Names of links are SEED-NUMBER, and NEAR before it where they are near; the paper's is another.
    """
    most: dict[tuple[str, str], int] = {}
    for example in examples:
        seed, dash, number = example.link.rpartition("-")
        if dash and number.isdecimal():
            is_alone = example.run.endswith("-passive")
            part = "dips" if example.part == "dips" else "passive" if is_alone else "links"
            most[part, seed] = max(most.get((part, seed), 0), int(number))
    order = ("links", "dips", "passive")
    found = [
        f"mpx lab dataset FOLDER --part {part} --links {links} --seed {seed.removeprefix(NEAR)}"
        + (" --near" if seed.startswith(NEAR) else "")
        for (part, seed), links in sorted(most.items(), key=lambda item: (order.index(item[0][0]), item))
    ]
    is_there = any(example.part == "paper" for example in examples)
    return [*found, *(["mpx lab dataset FOLDER --part paper"] if is_there else [])]


def measured_with(run: RecordedRun) -> str:
    """Return the version of the code that measured a run, its kernel, and whether time was simulated."""
    versions, machine = run.about.get("versions", {}), run.about.get("machine", {})
    time = ", simulated time" if machine.get("simulated") else ""
    return f"mpx_lab {versions.get('mpx_lab', 'unknown')}, Linux {machine.get('kernel', 'unknown')}{time}"


def digest(folder: Path) -> str:
    """Return a SHA-256 sum of the names, probes and rate pulses of all runs that count, and of all noise."""
    found = hashlib.sha256()
    for run in runs_of(folder):
        found.update(f"{run.folder.name}\n".encode())
        for file in (run.folder / "rtt" / "single.csv", *sorted(run.folder.glob("flows/*.dips.csv"))):
            found.update(hashlib.sha256(file.read_bytes()).digest())
    for file in noise_files(folder):
        found.update(hashlib.sha256(file.read_bytes()).digest())
    return found.hexdigest()


def thrown_out(folder: Path) -> dict[str, dict[str, int]]:
    """Return how many runs did not count, by mix and reason; one may have several reasons."""
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for name, reasons in reasons_against(folder):
        parts = NAME.fullmatch(name)
        what = " ".join(filter(None, parts.groups())) if parts else name
        for reason in {reason.split(":")[0] for reason in reasons}:
            found[reason][what] += 1
    return {reason: dict(sorted(counts.items())) for reason, counts in sorted(found.items())}
