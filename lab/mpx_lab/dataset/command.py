"""`mpx lab dataset`."""

import os
from functools import partial
from pathlib import Path

import click

from mpx.errors import MpxError
from mpx_lab.dataset.draws import ALL_PARTS, PARTS, recipes


@click.command("dataset")
@click.argument("folder", type=click.Path(path_type=Path))
@click.option(
    "--part",
    "parts",
    multiple=True,
    type=click.Choice(ALL_PARTS),
    help=f"Measure only this part; may be repeated. Default: {', '.join(PARTS)}.",
)
@click.option(
    "--links", type=click.IntRange(1, 10_000), default=40, show_default=True, help="Number of random links."
)
@click.option(
    "--seed", type=int, default=1, show_default=True, help="Seed of the links and of all other random values."
)
@click.option(
    "--near",
    is_flag=True,
    help="Links of a campus or a city: round trips of 0.1 to 10 ms, queues of 5 to 50 ms.",
)
@click.option(
    "--at-once", type=click.IntRange(1, 32), help="How many links are measured at a time (default 8)."
)
@click.option(
    "--simulated", is_flag=True, help="Measure in simulated time, as many runs at once as there are cores."
)
@click.option(
    "--list",
    "only_list",
    is_flag=True,
    help="Only print how many runs are measured and how many are missing.",
)
def dataset_command(
    folder: Path,
    parts: tuple[str, ...],
    links: int,
    seed: int,
    near: bool,
    at_once: int | None,
    simulated: bool,
    only_list: bool,
) -> None:
    """Measure round-trip times beside known mixes of congestion control, on random links.

    Runs that are already in FOLDER are kept, so measuring may be interrupted at any time; those of an
    older recipe are measured again. More links add to what is there. What a run holds: docs/lab-format.md.
    """
    from mpx_lab.dataset.collect import collect, wall_s
    from mpx_lab.dataset.run import Bench
    from mpx_lab.dataset.simulated import SimulatedBench
    from mpx_lab.dataset.store import Dataset
    from mpx_lab.lab import require_root
    from mpx_lab.sigterm import sigterm_ends
    from mpx_lab.simulator.kernel import built_kernel

    at_once = at_once or (len(os.sched_getaffinity(0)) if simulated else 8)
    wanted = recipes(parts or PARTS, links, seed, near)
    dataset = Dataset(folder)
    missing = [recipe for recipe in wanted if not dataset.has(recipe)]
    stale = sum(map(dataset.is_stale, missing))
    hours = wall_s(missing, at_once) / 3600
    unit = "hours of simulated time" if simulated else "hours at least"
    click.echo(
        f"{len(wanted) - len(missing)} of {len(wanted)} runs are there, {dataset.thrown_out()} more did not "
        f"count, {stale} are of an older recipe; missing: {hours:.1f} {unit}"
    )
    if only_list or not missing:
        return
    require_root()
    say = partial(click.echo, err=True)
    with sigterm_ends(), dataset.alone():
        bench = SimulatedBench(built_kernel(say), links, seed, near) if simulated else Bench()
        failed = collect(dataset, missing, at_once, bench.measure, bench.stop.set, say)
    if failed:
        raise MpxError(
            f"{failed} of {len(missing)} runs were never valid (see {folder}/*.invalid); measure again on a "
            "quiet machine, or with fewer links at once"
        )
