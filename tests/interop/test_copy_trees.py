"""Trees and lists of files: what goes where, and that all of it does, with its times and modes."""

import stat
import subprocess
from pathlib import Path

import pytest
from interop.trees import T0, TREE, names, timed
from mpx_command import copied, mpx, refused
from sites import Site, make

import mpx as api

pytestmark = pytest.mark.peers


def test_a_tree_becomes_dst_whether_or_not_it_exists(there: Site, here: Path) -> None:
    make(here / "tree/sub/file", 3)
    (here / "tree/empty").mkdir()
    for _ in range(2):
        api.copy(str(here / "tree"), there.url_of("a/b/dst"), TREE)
        assert names(there.folder) == [
            "a/",
            "a/b/",
            "a/b/dst/",
            "a/b/dst/empty/",
            "a/b/dst/sub/",
            "a/b/dst/sub/file",
        ]
    api.copy(f"{here}/tree/", there.url_of("a/b/dst/"), TREE)
    assert len(names(there.folder)) == 6
    api.copy(there.url_of("a/b/dst"), str(here / "down"), TREE)
    api.copy(there.url_of("a/b/dst/"), f"{here}/down/", TREE)
    assert names(here / "down") == ["empty/", "sub/", "sub/file"]


def test_a_file_goes_to_dst_or_into_it(there: Site, here: Path) -> None:
    make(here / "f", 3)
    there.write("folder/x")
    for dst in ("plain", "folder", "new/", "deep/er/name"):
        api.copy(str(here / "f"), there.url_of(dst))
    assert names(there.folder) == [
        "deep/", "deep/er/", "deep/er/name", "folder/", "folder/f", "folder/x", "new/", "new/f", "plain",
    ]  # fmt: skip
    (here / "in").mkdir()
    for dst in ("in", "in/g", "out/"):
        api.copy(there.url_of("plain"), f"{here}/{dst}")
    assert names(here) == ["f", "in/", "in/g", "in/plain", "out/", "out/plain"]


def test_several_go_into_dst_under_their_own_names(there: Site, here: Path) -> None:
    make(here / "a", 1)
    make(here / "x/b", 2)
    make(here / "tree/c", 3)
    api.copy([str(here / "a"), str(here / "x/b"), f"{here}/tree/"], there.url_of("new"), TREE)
    assert names(there.folder) == ["new/", "new/a", "new/b", "new/tree/", "new/tree/c"]
    api.copy([there.url_of("new/a"), there.url_of("new/tree")], str(here / "down"), TREE)
    assert names(here / "down") == ["a", "tree/", "tree/c"]


def test_two_of_one_name_are_an_error(there: Site, here: Path) -> None:
    make(here / "x/a")
    make(here / "y/a")
    with pytest.raises(api.UsageError, match="both become"):
        api.copy([str(here / "x/a"), str(here / "y/a")], there.url)
    with pytest.raises(api.UsageError, match="both become"):
        api.copy([str(here / "x"), f"{here}/./x/"], there.url, TREE)
    assert names(there.folder) == []


def test_several_into_a_file_are_an_error(there: Site, here: Path) -> None:
    make(here / "a")
    make(here / "b")
    there.write("file", b"kept")
    for sources, dst in (([here / "a", here / "b"], "file"), ([here / "a"], "file/")):
        with pytest.raises(api.DestinationError, match="not a folder"):
            api.copy([str(source) for source in sources], there.url_of(dst))
    assert (there.folder / "file").read_bytes() == b"kept"


def test_a_folder_needs_recursive(there: Site, here: Path) -> None:
    make(here / "tree/a")
    with pytest.raises(api.UsageError, match="-r"):
        api.copy(str(here / "tree"), there.url_of("x"))
    there.write("tree/a")
    with pytest.raises(api.UsageError, match="-r"):
        api.copy(there.url_of("tree"), str(here / "x"))
    assert not (here / "x").exists()


def test_a_source_without_a_name(there: Site, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(here / "a", 1)
    monkeypatch.chdir(here)
    api.copy(".", there.url_of("dst"), TREE)
    assert names(there.folder) == ["dst/", "dst/a"]
    with pytest.raises(api.UsageError, match="no name of its own"):
        api.copy(["..", "a"], there.url, TREE)


def test_from_file(there: Site, here: Path) -> None:
    for name in ("a", "b c", "d", "tree/e"):
        make(here / name, len(name))
    lines = f"{here}/a\n{here}/b c\tnew name\r\n\n{here}/d\tdeep/er/d\n{here}/tree"
    (here / "list").write_text(lines)
    copied(mpx("copy", "-r", "--from-file", here / "list", there.url_of("one")))
    copied(mpx("copy", "-r", "--from-file", "-", there.url_of("two"), stdin=lines.encode()))
    for folder in ("one", "two"):
        assert names(there.folder / folder) == [
            "a",
            "deep/",
            "deep/er/",
            "deep/er/d",
            "new name",
            "tree/",
            "tree/e",
        ]
    listed = "".join(f"{there.url_of('one/' + name)}\n" for name in ("a", "new name"))
    copied(mpx("copy", "--from-file", "-", here / "down", stdin=listed.encode()))
    assert names(here / "down") == ["a", "new name"]


def test_a_list_of_one_goes_into_dst_like_a_list_of_two(there: Site, here: Path) -> None:
    make(here / "a")
    copied(mpx("copy", "--from-file", "-", there.url_of("dst"), stdin=f"{here}/a".encode()))
    assert names(there.folder) == ["dst/", "dst/a"]


@pytest.mark.parametrize("target", ["/abs", "../up", "a/../../up", "."])
def test_targets_stay_below_dst(here: Path, target: str) -> None:
    make(here / "a")
    ended = mpx("copy", "--from-file", "-", here / "dst", stdin=f"{here}/a\t{target}".encode())
    refused(ended, 2, "below the destination")
    assert names(here) == ["a"]


def test_a_list_has_no_comments_as_names_may_begin_so(here: Path) -> None:
    make(here / "# a", 10)
    copied(mpx("copy", "--from-file", "-", here / "dst", stdin=b"# a\n", folder=here))
    assert names(here / "dst") == ["# a"]
    ended = mpx("copy", "--from-file", "-", here / "no", stdin=b"# a\n# of last year\n", folder=here)
    refused(ended, 2, "line 2 of standard input begins with #", "lists have no comments")


def test_lists_that_cannot_be_read(here: Path) -> None:
    refused(mpx("copy", "--from-file", here / "missing", here / "x"), 2, "missing")
    refused(mpx("copy", "--from-file", "-", here / "x"), 2, "no source")
    refused(mpx("copy", "--from-file", "-", here / "a", here / "x", stdin=b"b"), 2, "not both")
    refused(mpx("copy", "--from-file", "-", here / "x", stdin=b"a\0b\n"), 2, "NUL")


def test_a_list_of_many_and_a_huge_folder(there: Site, here: Path) -> None:
    for i in range(1200):
        make(here / f"big/{i}", i % 3)
    make(here / "one", 5)
    report = api.copy([str(here / "big"), str(here / "one")], there.url_of("dst"), TREE)
    assert report.files.moved == 1201
    assert len(names(there.folder)) == 1203
    report = api.copy(there.url_of("dst"), str(here / "down"), TREE)
    assert report.files.moved == 1201
    for i in range(0, 1200, 97):
        assert (here / f"down/big/{i}").read_bytes() == (here / f"big/{i}").read_bytes()


def test_many_small_files_with_contents(far: Site, here: Path) -> None:
    for i in range(300):
        make(here / f"up/{i % 7}/{i}", i * 37 % 5000)
    up = api.copy(str(here / "up"), far.url_of("tree"), TREE)
    down = api.copy(far.url_of("tree"), str(here / "down"), TREE)
    for report in (up, down):
        assert (report.files.moved, report.files.failed) == (300, 0)
        assert report.checksum["result"] == "verified"
    done = subprocess.run(["diff", "-r", here / "up", here / "down"], capture_output=True, check=False)
    assert done.stdout == b""


@pytest.mark.parametrize("files", [None, 1, 3])
def test_several_large_files_at_once(far: Site, here: Path, files: int | None) -> None:
    for i in range(6):
        make(here / f"up/{i}", 6_000_000 + i)
    make(here / "up/empty", 0)
    options = api.CopyOptions(recursive=True, files=files)
    api.copy(str(here / "up"), far.url_of("tree"), options)
    api.copy(far.url_of("tree"), str(here / "down"), options)
    done = subprocess.run(["diff", "-r", here / "up", here / "down"], capture_output=True, check=False)
    assert done.stdout == b""


# --- what is kept ---------------------------------------------------------------------------------


def test_times_and_modes_of_files_and_folders_are_kept(there: Site, here: Path) -> None:
    make(here / "up/sub/file", 3).chmod(0o640)
    make(here / "up/read-only", 3).chmod(0o444)
    (here / "up/empty").mkdir()
    (here / "up/sub").chmod(0o750)
    (here / "up/empty").chmod(0o705)
    for i, path in enumerate(sorted((here / "up").rglob("*"))):
        timed(path, T0 + i * 1000)
    timed(here / "up", T0 - 5)
    api.copy(str(here / "up"), there.url_of("dst"), TREE)
    api.copy(there.url_of("dst"), str(here / "down"), TREE)
    for path in [here / "up", *(here / "up").rglob("*")]:
        for other in (there.folder / "dst", here / "down"):
            copy = other / path.relative_to(here / "up")
            assert copy.stat().st_mtime == path.stat().st_mtime, copy
            assert stat.S_IMODE(copy.stat().st_mode) == stat.S_IMODE(path.stat().st_mode), copy


def test_read_only_folders_can_be_copied(there: Site, here: Path) -> None:
    make(here / "up/locked/file", 3)
    (here / "up/locked").chmod(0o555)
    api.copy(str(here / "up"), there.url_of("dst"), TREE)
    assert (there.folder / "dst/locked/file").stat().st_size == 3
    assert stat.S_IMODE((there.folder / "dst/locked").stat().st_mode) == 0o555
    (there.folder / "dst/locked").chmod(0o755)
    (here / "up/locked").chmod(0o755)
