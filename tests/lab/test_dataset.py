"""Runs of a dataset: they count, and hold what their recipe says.

In simulated time, as a busy machine delays what is judged.
"""

import os
from pathlib import Path
from statistics import mean, median

import pytest
from mpx_lab.dataset.draws import MIXES
from mpx_lab.dataset.links import Wan
from mpx_lab.dataset.load import Example, load_dataset
from mpx_lab.dataset.recipe import Own, Recipe, Stretch
from mpx_lab.dataset.run import Bench
from mpx_lab.record_reader import RecordedRun
from simulation import Run

from mpx.errors import Interrupted

LINK = Wan("test", 20_000_000, 0.02, 1.0)
SLOT = os.getpid()


MEASURE = """
    from pathlib import Path
    from mpx_lab.dataset.links import Wan
    from mpx_lab.dataset.recipe import Own, Recipe, Stretch
    from mpx_lab.dataset.run import Bench
    Bench().measure({recipe!r}, Path("{folder}"), 1)
"""


def measured(run: Run, recipe: Recipe, folder: Path) -> list[Example]:
    run(MEASURE.format(recipe=recipe, folder=folder / recipe.name))
    done = RecordedRun.open(folder / recipe.name)
    assert done.valid, done.about["validity"]["reasons"]
    return load_dataset(folder)


@pytest.mark.long
def test_our_own_copies_one_after_the_other(run: Run, tmp_path: Path) -> None:
    copies = tuple(Stretch("transfer", 4.0, own=Own(congestion, 4)) for congestion in ("bbr", "cubic"))
    bbr, cubic = measured(run, Recipe(LINK, "none", (), copies), tmp_path)
    assert (bbr.own_congestion, cubic.own_congestion, cubic.own_streams) == ("bbr", "cubic", 4)
    for each in (bbr, cubic):
        assert mean(bps for _, bps in each.goodput) == pytest.approx(0.95 * LINK.rate_bps, rel=0.1)
    queue_s = [median(p.rtt_s for p in each.single if p.rtt_s) - each.base_s for each in (bbr, cubic)]
    assert queue_s[1] > 0.3 * LINK.rtt_s  # of CUBIC's half a queue at least


def test_bursts_begin_with_the_series_and_take_turns(run: Run, tmp_path: Path) -> None:
    (each,) = measured(run, Recipe(LINK, "none", (), (Stretch("active", 10.0, profile="short"),)), tmp_path)
    quiet = [bps for t_s, bps in each.goodput if t_s % 5 > 4.5]
    busy = [bps for t_s, bps in each.goodput if 0.5 < t_s % 5 < 3.9]
    assert mean(quiet) < 0.2 * LINK.rate_bps < 0.6 * LINK.rate_bps < mean(busy)


@pytest.mark.long
def test_a_mix_is_there_as_its_label_says(run: Run, tmp_path: Path) -> None:
    nuisance = ("short-flows(load=0.05, of=20Mbit/s, largest=500kB, congestion=cubic)",)
    stretches = (Stretch("passive", 5.0, nuisance), Stretch("passive", 3.0))
    recipe = Recipe(LINK, "BC", MIXES["BC"], stretches, fills=True)
    each, quiet = measured(run, recipe, tmp_path)
    assert each.nuisance and not quiet.nuisance
    assert all(0.95 * 50 <= len(probes) <= 52 for probes in (each.single, each.paper))
    assert max(p.rtt_s for p in each.single if p.rtt_s) > LINK.rtt_s * 1.3
    streams = RecordedRun.open(tmp_path / recipe.name).rows("flows/mix-1.tcp.csv")
    assert {row["bbr_pacing_gain"] == "" for row in streams} == {False}


def test_it_ends_soon_when_it_is_told_to(lab_root: None, tmp_path: Path) -> None:
    bench = Bench()
    bench.stop.set()
    with pytest.raises(Interrupted):
        bench.measure(Recipe(LINK, "none", (), (Stretch("passive", 600.0),)), tmp_path / "run", SLOT)
    assert not (tmp_path / "run").exists()
