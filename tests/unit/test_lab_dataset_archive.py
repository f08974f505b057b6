"""A dataset that was kept small is the same dataset."""

import json
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest
from dataset_runs import write_run
from mpx_lab.dataset.archive import archive, main
from mpx_lab.dataset.draws import MIXES
from mpx_lab.dataset.links import Wan
from mpx_lab.dataset.load import load_dataset
from mpx_lab.dataset.recipe import Own, Recipe, Stretch
from mpx_lab.dataset.store import INVALID, NOISE, REASON, Dataset, noise_files, reasons_against

STRETCHES = (
    Stretch("passive", 10.0),
    Stretch("active", 10.0, profile="short"),
    Stretch("transfer", 10.0, own=Own("bbr", 4)),
    Stretch("dips", 10.0, own=Own("cubic", 1, dips=True)),
)
RECIPE = Recipe(Wan("1-1", 20_000_000, 0.02, 1.0), "BC", MIXES["BC"], STRETCHES, fills=True)


def measured(folder: Path) -> Path:
    """Write a dataset of one run that counts and two that do not."""
    run = write_run(folder / RECIPE.name, RECIPE)
    (run / "links").mkdir()
    (run / "links" / "wan.csv").write_text("much\n" * 1000)
    late = write_run(folder / f"{RECIPE.name}.1.{INVALID}", RECIPE) / "run.json"
    about = json.loads(late.read_text())
    late.write_text(json.dumps({**about, "validity": {"valid": False, "reasons": ["late"]}}))
    failed = folder / f"{RECIPE.name}.2.{INVALID}"
    failed.mkdir()
    (failed / REASON).write_text("failed: no lab\n")
    (folder / NOISE).mkdir()
    (folder / NOISE / "idle.json").write_text('{"series": []}')
    return folder


def unpacked(file: Path, to: Path) -> Path:
    with tarfile.open(file) as tar:
        tar.extractall(to, filter="data")
    return to


def test_unpacked_it_is_the_same_dataset(tmp_path: Path) -> None:
    before = measured(tmp_path / "before")
    assert archive(before, tmp_path / "kept.tar.xz") == 1
    after = unpacked(tmp_path / "kept.tar.xz", tmp_path / "after")
    assert load_dataset(after) == load_dataset(before)
    assert reasons_against(after) == reasons_against(before)
    assert [file.read_text() for file in noise_files(after)] == ['{"series": []}']
    assert Dataset(after).has(RECIPE) and Dataset(after).thrown_out() == 2
    names = {str(path.relative_to(after)) for path in after.rglob("*") if path.is_file()}
    assert f"{RECIPE.name}/links/wan.csv" not in names and f"{RECIPE.name}/flows/mix-1.tcp.csv" not in names


def test_it_is_the_same_bytes_each_time(tmp_path: Path) -> None:
    before = measured(tmp_path / "before")
    for name in ("a", "b"):
        archive(before, tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_what_other_archives_hold_is_left_out(tmp_path: Path) -> None:
    before = measured(tmp_path / "before")
    first, second = tmp_path / "first.tar.xz", tmp_path / "second.tar.xz"
    archive(before, first)
    other = replace(RECIPE, mix="C")
    write_run(before / other.name, other)
    assert main([str(before), str(second), str(first)]) == 0
    assert [path.name for path in unpacked(second, tmp_path / "added").iterdir()] == [other.name]
    after = unpacked(second, unpacked(first, tmp_path / "after"))
    assert load_dataset(after) == load_dataset(before)
    about = json.loads((before / RECIPE.name / "run.json").read_text())
    (before / RECIPE.name / "run.json").write_text(json.dumps({**about, "duration_s": 1.0}))
    assert archive(before, second, [first]) == 2  # measured anew
    assert main([str(before), str(first), str(first)]) == 1  # it would lose what it holds
    assert archive(before, tmp_path / "all", []) == 2
    cut = tmp_path / "cut"
    cut.write_bytes(first.read_bytes()[:-100])
    assert main([str(before), str(second), str(cut)]) == 1


def test_a_folder_that_cannot_be_read_or_written_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = measured(tmp_path / "before")
    assert main([str(before), str(tmp_path / "missing" / "kept.tar.xz")]) == 1
    assert "missing" in capsys.readouterr().err
    (before / RECIPE.name / "run.json").write_text("{")
    assert main([str(before), str(tmp_path / "kept.tar.xz")]) == 1
    assert "not the folder of a run" in capsys.readouterr().err
    (tmp_path / "none.tar.xz").write_text("no archive")
    assert main([str(before), str(tmp_path / "kept.tar.xz"), str(tmp_path / "none.tar.xz")]) == 1
    assert "archive:" in capsys.readouterr().err
