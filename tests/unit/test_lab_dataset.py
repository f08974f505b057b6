"""What a dataset is made of, and how it is read: no lab is needed."""

import json
from collections import Counter
from pathlib import Path

import pytest
from mpx_lab.dataset.draws import (
    MIXES,
    PAPER_PIECE_S,
    PAPER_PIECES,
    PARTS,
    QUEUE_BDP,
    RATE_MBPS,
    RTT_MS,
    draw_links,
    recipes,
)
from mpx_lab.dataset.load import load_dataset, means_of_trains
from mpx_lab.traffic.schedule import phases
from mpx_lab.traffic.spec import parse

from mpx.errors import UsageError
from mpx.rtt_series import Probe


def test_the_same_seed_gives_the_same_runs_and_more_links_only_add_some() -> None:
    few, more = recipes(PARTS, 3, 7), recipes(PARTS, 5, 7)
    assert few == recipes(PARTS, 3, 7) and set(few) < set(more)
    assert not {recipe.wan for recipe in few if recipe.part != "paper"} & {
        recipe.wan for recipe in recipes(PARTS, 3, 8)
    }


def test_no_two_runs_have_the_same_name() -> None:
    names = Counter(recipe.name for recipe in recipes(PARTS, 20, 1))
    assert max(names.values()) == 1


def test_links_are_within_their_limits() -> None:
    for wan in draw_links(300, 1):
        assert RATE_MBPS[0] <= wan.rate_bps / 1e6 <= RATE_MBPS[1]
        assert RTT_MS[0] <= wan.rtt_s * 1e3 <= RTT_MS[1]
        assert QUEUE_BDP[0] <= wan.queue_bdp <= QUEUE_BDP[1]


def test_every_class_is_there_clean_and_beside_other_traffic_on_every_link() -> None:
    found = Counter((r.part, r.wan.id, r.mix, bool(r.nuisance)) for r in recipes(("passive", "active"), 4, 1))
    for wan in draw_links(4, 1):
        for mix in MIXES:
            assert found["passive", wan.id, mix, False] == found["active", wan.id, mix, False] == 1
            assert (found["passive", wan.id, mix, True], found["active", wan.id, mix, True]) == (2, 1)


def test_every_generator_is_one_that_the_lab_has() -> None:
    for recipe in recipes(PARTS, 30, 1):
        for text in (*recipe.streams, *recipe.nuisance, *recipe.described()["bursts"]):
            parse(text)


def test_the_papers_cell_is_an_hour_of_each_class_with_each_kind_of_probing() -> None:
    for active in (False, True):
        hours = Counter[str]()
        for recipe in recipes(("paper",), 1, 1):
            hours[recipe.mix] += recipe.seconds * (recipe.active is active)
        assert set(hours.values()) == {PAPER_PIECES * PAPER_PIECE_S} and set(hours) == set(MIXES)


def test_bursts_take_turns() -> None:
    cubic, bbr = phases(5, 10), phases(5, 20, 5)
    assert [next(cubic).on_s for _ in range(4)] == [0, 10, 20, 30]
    first, second = next(bbr), next(bbr)
    assert (first.on_s, first.off_s, second.on_s) == (5, 10, 25)


def test_a_train_is_one_probe_with_the_mean_of_what_came_back() -> None:
    probes = [Probe(1.0, 0.05), Probe(1.001, None), Probe(1.002, 0.07), Probe(2.0, None), Probe(2.001, None)]
    assert means_of_trains(probes) == [Probe(1.0, pytest.approx(0.06)), Probe(2.0, None)]


def test_what_did_not_count_is_not_loaded_and_times_begin_after_the_warm_up(tmp_path: Path) -> None:
    recipe = next(r for r in recipes(("active",), 1, 1) if r.mix == "BC")
    for name, valid in (("good", True), ("bad", False)):
        folder = tmp_path / name
        for subfolder in ("flows", "rtt"):
            (folder / subfolder).mkdir(parents=True)
        about = {"format": "mpx-lab-run-1", "status": "done", "validity": {"valid": valid}}
        (folder / "run.json").write_text(json.dumps({**about, "parameters": recipe.described()}))
        at_s = [recipe.warm_up_s + shift for shift in (-0.05, 0.05, 0.15)]
        lines = "".join(f"{t},{rtt},0.0\n" for t, rtt in zip(at_s, (0.1, 0.2, ""), strict=True))
        for file in ("single", "train"):
            (folder / "rtt" / f"{file}.csv").write_text(f"t_s,rtt_s,noise_s\n{lines}")
        bursts = f"0.0,0\n{recipe.warm_up_s},0\n{recipe.warm_up_s + recipe.seconds},{10**6}\n"
        (folder / "flows" / "burst-1.csv").write_text(f"t_s,bytes\n{bursts}")
        (folder / "flows" / "mix-1.csv").write_text(f"t_s,bytes\n{bursts}")
    (example,) = load_dataset(tmp_path)
    assert (example.run, example.mix, example.part, example.active) == ("good", "BC", "active", True)
    assert example.single == [Probe(pytest.approx(0.05), 0.2), Probe(pytest.approx(0.15), None)]
    assert len(example.goodput) == 10 * recipe.seconds
    assert sum(bps for _, bps in example.goodput) * 0.1 == pytest.approx(8e6)


def test_a_folder_without_a_run_that_counts_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="mpx lab dataset"):
        load_dataset(tmp_path)
    with pytest.raises(UsageError, match="no part"):
        recipes(("passiv",), 1, 1)
