"""A run whose label may be false does not count, and says why."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from dataset_runs import table, write_run
from mpx_lab.dataset.draws import MIXES
from mpx_lab.dataset.labels import wrong_with
from mpx_lab.dataset.links import Wan
from mpx_lab.dataset.recipe import Own, Recipe, Stretch
from mpx_lab.record_reader import RecordedRun

LINK = Wan("1-1", 20_000_000, 0.02, 1.0)
PLAIN = Recipe(LINK, "BC", MIXES["BC"], (Stretch("passive", 10.0),), fills=True)
NUISANCE = ("short-flows(load=0.1, of=20Mbit/s)", "udp(rate=1Mbit/s)")
COPIES = tuple(Stretch("transfer", 10.0, own=Own(congestion, 4)) for congestion in ("bbr", "cubic"))
KINDS = {
    "passive": PLAIN,
    "none": Recipe(LINK, "none", (), PLAIN.stretches),
    "disturbed": replace(PLAIN, stretches=(Stretch("passive", 10.0, NUISANCE),)),
    "active": replace(PLAIN, stretches=(Stretch("active", 10.0, profile="short"),)),
    "transfer": replace(PLAIN, stretches=COPIES, ours_first=True),
    "application": Recipe(LINK, "application", ("tcp-square(on=1s, off=1s)",), PLAIN.stretches),
    "all": replace(
        PLAIN, stretches=(COPIES[0], *PLAIN.stretches, Stretch("active", 10.0, NUISANCE, "paper"), COPIES[1])
    ),
}


def wrong(folder: Path, recipe: Recipe) -> list[str]:
    return [reason.split(":")[0] for reason in wrong_with(recipe, RecordedRun.open(folder))]


def rewrite(file: Path, change: Callable[[list[str]], list[str] | None]) -> None:
    """Change the lines of a table; the values of each come as a list, None leaves one out."""
    head, *lines = file.read_text().splitlines()
    rows = [row for line in lines if (row := change(line.split(","))) is not None]
    table(file, head.split(","), rows)


@pytest.mark.parametrize("recipe", KINDS.values(), ids=KINDS)
def test_a_run_that_went_as_planned_has_nothing_against_it(recipe: Recipe, tmp_path: Path) -> None:
    assert wrong(write_run(tmp_path / "run", recipe), recipe) == []


@pytest.mark.parametrize(
    ("name", "value", "reasons"),
    [
        ("opened_s", PLAIN.begins_s[0] + 4.1, ["not begun"]),
        ("opened_s", PLAIN.begins_s[0] + 3.9, []),
        ("closed_s", PLAIN.series[0].until_s - 1, ["not begun"]),
        ("congestion", "cubic", ["other control"]),
    ],
    ids=["late", "a little late", "lost", "control"],
)
def test_a_stream_that_was_not_what_the_label_says(
    name: str, value: object, reasons: list[str], tmp_path: Path
) -> None:
    folder = write_run(tmp_path / "run", PLAIN)
    file = folder / "flows" / "mix-1.json"
    told = json.loads(file.read_text())
    told["connections"][0][name] = value
    file.write_text(json.dumps(told))
    assert wrong(folder, PLAIN) == reasons


def test_a_pattern_that_never_began(tmp_path: Path) -> None:
    recipe = KINDS["application"]
    folder = write_run(tmp_path / "run", recipe)
    (folder / "flows" / "mix-1.phases.csv").unlink()
    assert wrong(folder, recipe) == ["not begun"]


def test_a_mix_that_did_not_fill_the_link(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", PLAIN)
    for number, reasons in ((1, ["not filled", "silent"]), (2, ["not filled", "silent", "silent"])):
        rewrite(folder / "flows" / f"mix-{number}.csv", lambda row: [row[0], "0"])
        assert wrong(folder, PLAIN) == reasons
    idle = replace(PLAIN, fills=False)
    assert wrong(folder, idle) == []


def test_bursts_are_not_asked_to_be_gentle_with_the_mix(tmp_path: Path) -> None:
    """Before they begin the link is full; what they leave to others is not judged."""
    recipe = KINDS["active"]
    folder, begin_s = write_run(tmp_path / "run", recipe), recipe.series[0].from_s
    for number in (1, 2):
        rewrite(
            folder / "flows" / f"mix-{number}.csv",
            lambda row: [row[0], str(int(row[1]) * 2 if float(row[0]) < begin_s else 1)],
        )
    assert wrong(folder, recipe) == []


@pytest.mark.parametrize("file", ["single", "train"])
def test_probes_that_were_not_sent_or_waited(file: str, tmp_path: Path) -> None:
    folder, recipe = write_run(tmp_path / "run", PLAIN), PLAIN
    rewrite(folder / "rtt" / f"{file}.csv", lambda row: [row[0], row[1], "0.021"])
    assert wrong(folder, recipe) == ["probes waited"]
    rewrite(folder / "rtt" / f"{file}.csv", lambda row: None if float(row[0]) % 1 < 0.1 else [*row[:2], ""])
    assert wrong(folder, recipe) == ["not probed"]


@pytest.mark.parametrize(("late_s", "reasons"), [(0.15, []), (0.3, ["burst late"]), (None, ["burst late"])])
def test_bursts_that_came_late_or_never(late_s: float | None, reasons: list[str], tmp_path: Path) -> None:
    recipe = KINDS["active"]
    folder = write_run(tmp_path / "run", recipe)
    rewrite(
        folder / "flows" / "burst-1b.phases.csv",
        lambda row: None if late_s is None else [str(float(row[0]) + late_s), *row[1:]],
    )
    assert wrong(folder, recipe) == reasons


def test_a_copy_of_ours_that_was_another(tmp_path: Path) -> None:
    recipe = KINDS["transfer"]
    folder = write_run(tmp_path / "run", recipe)
    flows = folder / "flows"
    rewrite(flows / "transfer-2.tcp.csv", lambda row: [*row[:2], "bbr" if row[1] == "0" else row[2], row[3]])
    assert wrong(folder, recipe) == ["other copy"]
    ends_s = recipe.series[0].until_s
    rewrite(flows / "transfer-1.csv", lambda row: [row[0], row[1] if float(row[0]) < ends_s - 5.1 else "0"])
    rewrite(flows / "mix-1.csv", lambda row: [row[0], str(int(row[1]) * 2)])  # filled nevertheless
    assert wrong(folder, recipe) == ["not copying", "other copy"]


def test_flows_that_were_left_out(tmp_path: Path) -> None:
    recipe = KINDS["disturbed"]
    folder = write_run(tmp_path / "run", recipe)
    (folder / "flows" / "nuisance-1a.json").write_text('{"left_out": 3}')
    assert wrong(folder, recipe) == ["left out"]


def test_a_mix_of_too_many_flows_is_what_it_is_called(tmp_path: Path) -> None:
    recipe = KINDS["disturbed"]
    folder = write_run(tmp_path / "run", recipe)
    told = folder / "flows" / "mix-1.json"
    told.write_text(json.dumps({**json.loads(told.read_text()), "left_out": 3}))
    assert wrong(folder, recipe) == []
