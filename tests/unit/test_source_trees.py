"""A folder that is swapped for a link while its tree is read: nothing of where the link leads is taken."""

import os
from pathlib import Path

import pytest

from mpx import CopyOptions, copy
from mpx.endpoints.local.endpoint import LocalEndpoint
from mpx.engine.endpoint import FileInfo
from mpx.errors import MpxError, PartialFailure, SourceError
from mpx.files.source_trees import SourceTrees
from mpx.location import Location


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A tree that is named by a link, with folders in it; and what is not to be read."""
    (tmp_path / "real/a/b").mkdir(parents=True)
    (tmp_path / "real/a/b/file").write_bytes(b"public")
    (tmp_path / "secret/b").mkdir(parents=True)
    (tmp_path / "secret/b/file").write_bytes(b"secret")
    (tmp_path / "tree").symlink_to("real")
    return tmp_path / "tree"


def swap(folder: Path, secret: Path) -> None:
    folder.rename(folder.with_name(f"{folder.name}-aside"))
    folder.symlink_to(secret)


def test_what_is_below_is_read_by_no_link(tree: Path) -> None:
    trees = SourceTrees()
    trees.add(f"{tree}/")
    end = LocalEndpoint(Location("file", str(tree)), writing=False, trees=trees)
    assert [name for name, _ in end.entries(str(tree))] == ["a"]
    assert [name for name, _ in end.entries(str(tree / "a/b"))] == ["file"]
    assert os.read(trees.open(str(tree / "a/b/file"), os.O_RDONLY), 9) == b"public"
    swap(tree / "a", tree.with_name("secret"))
    for name in ("a", "a/b"):
        with pytest.raises(SourceError, match="symbolic link"):
            list(end.entries(str(tree / name)))
    with pytest.raises(OSError, match="symbolic link"):
        trees.open(str(tree / "a/b/file"), os.O_RDONLY)
    assert os.read(trees.open(str(tree.with_name("secret") / "b/file"), os.O_RDONLY), 9) == b"secret"


@pytest.mark.parametrize("links", ["keep", "skip"])
@pytest.mark.parametrize(("folder", "last_listed"), [("a", "."), ("a/b", "a"), ("a", "a/b"), ("a/b", "a/b")])
def test_a_copy_of_a_tree_that_is_swapped_once_it_is_listed(
    tree: Path, links: str, folder: str, last_listed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the folder itself is listed, or when all is listed and the file is still to be read."""
    listed = LocalEndpoint.entries

    def entries(end: LocalEndpoint, name: str) -> "list[tuple[str, FileInfo | MpxError]]":
        found = list(listed(end, name))
        if name.rstrip("/") == str(tree / last_listed) and not (tree / folder).is_symlink():
            swap(tree / folder, tmp_path / ("secret" if folder == "a" else "secret/b"))
        return found

    monkeypatch.setattr(LocalEndpoint, "entries", entries)
    with pytest.raises((PartialFailure, SourceError), match="symbolic link"):
        copy(f"{tree}/", str(tmp_path / "copied"), CopyOptions(recursive=True, links=links))
    assert not any(path.is_file() for path in (tmp_path / "copied").rglob("*"))


def test_links_are_followed_where_that_is_asked_for(tree: Path, tmp_path: Path) -> None:
    (tree / "c").symlink_to(tmp_path / "secret")
    copy(str(tree), str(tmp_path / "copied"), CopyOptions(recursive=True))
    assert (tmp_path / "copied/c/b/file").read_bytes() == b"secret"
