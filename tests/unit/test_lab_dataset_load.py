"""Reading a dataset: series with their labels, each on its own clock, and goodput as its sender knows it."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from dataset_runs import write_run
from mpx_lab.dataset.acknowledged import acknowledged
from mpx_lab.dataset.draws import MIXES
from mpx_lab.dataset.links import Wan
from mpx_lab.dataset.load import load_dataset
from mpx_lab.dataset.recipe import Own, Recipe, Stretch
from mpx_lab.series import Sample

from mpx.errors import UsageError

LINK = Wan("1-1", 20_000_000, 0.02, 1.0)
UDP = ("udp(rate=1Mbit/s)",)
PASSIVE = Recipe(LINK, "BC", MIXES["BC"], (Stretch("passive", 10.0, UDP),), fills=True)
ACTIVE = Recipe(LINK, "none", (), (Stretch("active", 10.0, profile="short"),))
OURS = tuple(Stretch("transfer", 10.0, own=Own(congestion, 4)) for congestion in ("bbr", "cubic"))
TRANSFER = Recipe(LINK, "none", (), OURS)


def test_a_series_begins_when_the_mix_has_settled(tmp_path: Path) -> None:
    write_run(tmp_path / PASSIVE.name, PASSIVE, rtt_s=0.06, noise_s=0.002)
    (found,) = load_dataset(tmp_path)
    assert (found.run, found.link, found.mix, found.part) == (PASSIVE.name, "1-1", "BC", "passive")
    assert (found.nuisance, found.profile, found.own_streams) == ("udp(rate=1Mbit/s)", "", 0)
    assert len(found.single) == 100 and len(found.paper) == 100 and found.goodput == []
    assert 0 <= found.single[0].t_s < 0.1 and found.single[-1].t_s < 10
    assert found.single[3].rtt_s == pytest.approx(0.058)  # without what the machine added


def test_what_did_not_count_or_is_stale_is_not_loaded(tmp_path: Path) -> None:
    for name in ("good", "bad", f"{PASSIVE.name}.1.stale", f"{PASSIVE.name}.1.invalid"):
        write_run(tmp_path / name, PASSIVE)
    file = tmp_path / "bad" / "run.json"
    about = json.loads(file.read_text())
    file.write_text(json.dumps({**about, "validity": {"valid": False, "reasons": ["late"]}}))
    assert [each.run for each in load_dataset(tmp_path)] == ["good"]


def test_the_base_is_the_least_that_any_run_of_the_link_saw(tmp_path: Path) -> None:
    for number, rtt_s in enumerate((0.05, 0.031, 0.04)):
        write_run(tmp_path / f"a{number}", PASSIVE, rtt_s=rtt_s, noise_s=0.0)
    write_run(tmp_path / "b", replace(PASSIVE, link=replace(LINK, id="1-2")), rtt_s=0.045, noise_s=0.0)
    bases = {each.run: each.base_s for each in load_dataset(tmp_path)}
    assert bases == {"a0": 0.031, "a1": 0.031, "a2": 0.031, "b": 0.045}


def test_what_dips_told_is_on_the_clock_of_the_series(tmp_path: Path) -> None:
    ours = tuple(Stretch("dips", 10.0, own=Own(congestion, 4, dips=True)) for congestion in ("bbr", "cubic"))
    recipe = Recipe(LINK, "none", (), ours)
    write_run(tmp_path / recipe.name, recipe)
    first, second = load_dataset(tmp_path)
    for found in (first, second):
        assert len(found.responses) == 10
        assert {(response.share, response.kept) for response in found.responses} == {(0.5, 0.6)}
        assert all(0 <= response.t_s < 10 for response in found.responses)
    write_run(tmp_path / TRANSFER.name, TRANSFER)
    assert [list(each.responses) for each in load_dataset(tmp_path) if each.part == "transfer"] == [[], []]


def test_bursts_are_told_together(tmp_path: Path) -> None:
    """At first there is one, then each has a half."""
    write_run(tmp_path / ACTIVE.name, ACTIVE)
    (found,) = load_dataset(tmp_path)
    assert found.profile == "short" and len(found.goodput) == 100
    for from_s, until_s in ((0.3, 1.8), (2.3, 9)):
        rates = [bps for t_s, bps in found.goodput if from_s < t_s < until_s]
        assert sum(rates) / len(rates) == pytest.approx(0.95 * LINK.rate_bps, rel=0.05)


def test_each_series_has_what_was_beside_the_mix_and_nothing_else(tmp_path: Path) -> None:
    recipe = Recipe(LINK, "none", (), (*PASSIVE.stretches, *ACTIVE.stretches, *OURS))
    write_run(tmp_path / recipe.name, recipe)
    found = load_dataset(tmp_path)
    assert [each.part for each in found] == ["passive", "active", "transfer", "transfer"]
    assert [each.nuisance for each in found] == [*UDP, "", "", ""]
    assert [each.profile for each in found] == ["", "short", "", ""]
    assert [bool(each.goodput) for each in found] == [False, True, True, True]
    for each in found[1:]:
        late = [bps for t_s, bps in each.goodput if t_s > 3]
        assert sum(late) / len(late) == pytest.approx(0.95 * LINK.rate_bps, rel=0.05)


def test_a_run_with_our_own_copies_has_a_series_for_each(tmp_path: Path) -> None:
    write_run(tmp_path / TRANSFER.name, TRANSFER)
    first, second = load_dataset(tmp_path)
    assert (first.own_congestion, second.own_congestion) == ("bbr", "cubic")
    for each in (first, second):
        assert (each.run, each.own_streams, len(each.single)) == (TRANSFER.name, 4, 100)
        rates = [bps for _, bps in each.goodput]
        assert sum(rates[5:]) / len(rates[5:]) == pytest.approx(0.95 * LINK.rate_bps, rel=0.05)


def test_a_rate_stands_for_the_time_before_it() -> None:
    """Two streams; the first is cut and comes back, after a pause, as a new connection."""
    rows = [
        {"t_s": "1.00", "stream": "0", "bytes_acked": "100"},
        {"t_s": "1.0001", "stream": "1", "bytes_acked": "10"},
        {"t_s": "1.10", "stream": "0", "bytes_acked": "300"},
        {"t_s": "1.1001", "stream": "1", "bytes_acked": "10"},
        {"t_s": "5.00", "stream": "0", "bytes_acked": "50"},
    ]
    assert acknowledged(rows) == [
        Sample(0.9, 0),
        Sample(1.0, 110),
        Sample(1.1, 200),
        Sample(pytest.approx(4.9), 0),
        Sample(5.0, 50),
    ]
    assert acknowledged([]) == []


def test_a_folder_without_a_run_that_counts_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="mpx lab dataset"):
        load_dataset(tmp_path)


@pytest.mark.parametrize(
    ("file", "damaged"),
    [
        ("rtt/single.csv", b"\xff\xfe\x00nothing that is text"),
        ("rtt/single.csv", b"t_s,rtt_s,noise_s\nfoo,bar,baz\n"),
        ("rtt/single.csv", b"t_s,rtt_s,noise_s\n"),
        ("rtt/single.csv", None),
        ("rtt/train.csv", None),
        (
            "run.json",
            b'{"format": "mpx-lab-run-1", "status": "done", "parameters": {}, "validity": {"valid": true}}',
        ),
    ],
)
def test_a_damaged_run_is_named(file: str, damaged: bytes | None, tmp_path: Path) -> None:
    write_run(tmp_path / "whole", PASSIVE)
    run = write_run(tmp_path / "hurt", PASSIVE)
    if damaged is None:
        (run / file).unlink()
    else:
        (run / file).write_bytes(damaged)
    with pytest.raises(UsageError, match=f"the run in {run} cannot be read.*remove that folder"):
        load_dataset(tmp_path)


def test_a_series_that_was_cut_off_is_refused(tmp_path: Path) -> None:
    run = write_run(tmp_path / "hurt", PASSIVE)
    lines = (run / "rtt" / "single.csv").read_text().splitlines(keepends=True)
    (run / "rtt" / "single.csv").write_text("".join(lines[: len(lines) // 2]))
    with pytest.raises(UsageError, match=r"series of 10 s has \d+ of 100 probes"):
        load_dataset(tmp_path)
