"""What is at the destination already: when it is skipped; and what a dry run tells of it."""

import os
from pathlib import Path

import pytest
from interop.trees import T0, TREE, names, skips, timed
from mpx_command import copied, mpx
from sites import Site, make

import mpx as api

pytestmark = pytest.mark.peers


def test_overwrite_different(there: Site, here: Path) -> None:
    for name in ("same", "a second off", "later", "longer"):
        timed(make(here / name, 4), T0 + 0.25)
        api.copy(str(here / name), there.url)
    before = {name: (there.folder / name).read_bytes() for name in os.listdir(there.folder)}
    for name in before:
        make(here / name, 4)
    timed(here / "same", T0)
    timed(here / "a second off", T0 + 1)
    timed(here / "later", T0 + 2.5)
    timed(make(here / "longer", 5), T0)
    report = api.copy([str(here / name) for name in before], there.url)
    assert {name for name in before if (there.folder / name).read_bytes() != before[name]} == {
        "later",
        "longer",
    }
    assert (report.files.total, report.files.moved, report.files.skipped) == (4, 2, 2)
    assert (report.bytes.total, report.bytes.moved, report.bytes.skipped) == (17, 9, 8)
    assert set(skips(report)) == {"same", "a second off"}


@pytest.mark.parametrize(("overwrite", "moved"), [("always", 2), ("never", 1), ("different", 1)])
def test_overwrite(there: Site, here: Path, overwrite: str, moved: int) -> None:
    timed(make(here / "up/old", 4), T0)
    make(here / "up/new", 4)
    api.copy(str(here / "up/old"), there.url_of("dst/"))
    if overwrite == "never":
        timed(make(here / "up/old", 9), T0 + 99)
    report = api.copy(
        str(here / "up"), there.url_of("dst"), api.CopyOptions(recursive=True, overwrite=overwrite)
    )
    assert (report.files.moved, report.files.skipped) == (moved, 2 - moved)
    assert (there.folder / "dst/old").stat().st_size == 4


def test_a_second_run_moves_nothing(far: Site, here: Path) -> None:
    for i in range(30):
        make(here / f"up/{i % 3}/{i}", i)
    for _ in range(2):
        up = api.copy(str(here / "up"), far.url_of("tree"), TREE)
        down = api.copy(far.url_of("tree"), str(here / "down"), TREE)
    for report in (up, down):
        assert (report.files.total, report.files.moved, report.files.skipped) == (30, 0, 30)
        assert report.checksum["result"] == "nothing moved"
        assert report.status == "done"


def test_dry_run_does_nothing(there: Site, here: Path) -> None:
    make(here / "up/sub/new", 4)
    make(here / "up/old", 4)
    os.mkfifo(here / "up/fifo")
    api.copy(str(here / "up/old"), there.url_of("dst/"))
    before = names(there.folder)
    ended = mpx("copy", "-r", "--dry-run", here / "up", there.url_of("dst"))
    copied(ended)
    assert names(there.folder) == before
    assert "would copy " in ended.out
    assert "/up/sub/new to " in ended.out
    assert "/up/old: already up to date at the destination" in ended.out
    assert ended.out.count("not a regular file") == 1
    assert "/up/fifo: not a regular file" in ended.out
    assert "/dst/sub/new, 4 B\n" in ended.out
    assert ended.out.endswith("\ndry run: 1 of 3 files to copy, 4 B; nothing was copied\n")
    ended = mpx("copy", "-r", "--dry-run", there.url_of("dst"), here / "not" / "there")
    copied(ended)
    assert not (here / "not").exists()
    assert "/old to " in ended.out
    state = Path(os.environ["MPX_STATE_DIR"])
    assert [path for path in state.iterdir() if path.suffix == ".journal"] == []


def test_dry_run_of_many_tells_all(here: Path) -> None:
    for i in range(1500):
        make(here / f"up/{i}", 0)
    ended = mpx("copy", "-r", "--dry-run", here / "up", here / "dst")
    assert ended.out.count("would copy ") == 1501
    assert not (here / "dst").exists()
    assert mpx("copy", "-r", "-q", "--dry-run", here / "up", here / "dst").out == ""
