"""What becomes what: targets of a list must not lie within one another."""

from pathlib import Path

import pytest
from sites import make

import mpx as api

TREE = api.CopyOptions(recursive=True)


@pytest.mark.parametrize("targets", [("x", "x/y"), ("x", "x/deep/er/y"), ("x/", "x/y"), ("x", "./x//y")])
@pytest.mark.parametrize("is_reversed", [False, True])
def test_a_target_within_that_of_a_folder(
    targets: tuple[str, str], is_reversed: bool, tmp_path: Path
) -> None:
    make(tmp_path / "folder/y")
    make(tmp_path / "file")
    pairs = [(str(tmp_path / "folder"), targets[0]), (str(tmp_path / "file"), targets[1])]
    sources, named = zip(*(pairs[::-1] if is_reversed else pairs), strict=True)
    with pytest.raises(api.UsageError, match=r"inside the target of .*; copy them separately"):
        api.copy(list(sources), str(tmp_path / "dst"), TREE, targets=list(named))
    assert not (tmp_path / "dst").exists()


def test_targets_beside_one_another(tmp_path: Path) -> None:
    make(tmp_path / "folder/y", 3)
    make(tmp_path / "file", 4)
    sources = [str(tmp_path / name) for name in ("folder", "file", "file")]
    report = api.copy(sources, str(tmp_path / "dst"), TREE, targets=["x", "xy", "d/y"])
    assert report.files.moved == 3
    assert (tmp_path / "dst/d/y").read_bytes() == (tmp_path / "file").read_bytes()
    assert (tmp_path / "dst/x/y").read_bytes() == (tmp_path / "folder/y").read_bytes()
