"""Trees and lists of files: what goes where, what is left alone, what is kept, what fails alone."""

import os
import socket
import stat
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from mpx_command import copied, mpx, refused
from sites import Site, make, opened

import mpx as api

pytestmark = pytest.mark.peers
Lines = Callable[..., api.Report]
TREE = api.CopyOptions(recursive=True)
T0 = 1_500_000_000


@pytest.fixture(params=["local", "stock server", "mpx serve"])
def there(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Site]:
    """Where to copy to, or from."""
    with opened(request.param, tmp_path) as site:
        yield site


def names(folder: Path) -> list[str]:
    """Everything below a folder, folders with a slash."""
    return sorted(
        str(path.relative_to(folder)) + ("/" if path.is_dir() and not path.is_symlink() else "")
        for path in folder.rglob("*")
    )


def failures(caught: pytest.ExceptionInfo[api.MpxError]) -> dict[str, str]:
    report = caught.value.report
    assert report is not None
    return {Path(entry["name"]).name: entry["error"] for entry in report.failures}


def skips(report: api.Report) -> dict[str, str]:
    return {Path(entry["name"]).name: entry["reason"] for entry in report.skipped}


# --- what goes where -------------------------------------------------------------------------------


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


def test_a_thousand_small_files_with_contents(far: Site, here: Path) -> None:
    for i in range(1000):
        make(here / f"up/{i % 7}/{i}", i * 37 % 5000)
    up = api.copy(str(here / "up"), far.url_of("tree"), TREE)
    down = api.copy(far.url_of("tree"), str(here / "down"), TREE)
    for report in (up, down):
        assert (report.files.moved, report.files.failed) == (1000, 0)
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


# --- what is there already -------------------------------------------------------------------------


def timed(path: Path, modified_s: float) -> Path:
    os.utime(path, (modified_s, modified_s))
    return path


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
    assert "/up/old alone: the same at the destination" in ended.out
    assert "/up/fifo alone: not a regular file" in ended.out
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


# --- what is kept ----------------------------------------------------------------------------------


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


# --- links and things that are no files -------------------------------------------------------------


def tangle(root: Path) -> None:
    """Make a tree with every kind of link."""
    make(root / "file", 5)
    make(root / "sub/inner", 6)
    (root / "to file").symlink_to("file")
    (root / "to folder").symlink_to("sub")
    (root / "sub/up to file").symlink_to("../file")
    (root / "dangling").symlink_to("nowhere/at all")
    (root / "itself").symlink_to("itself")
    (root / "sub/loop").symlink_to("..")
    (root / "sub/dot").symlink_to(".")
    (root / "absolute").symlink_to(root / "file")


LINKS = {"to file", "to folder", "up to file", "dangling", "itself", "loop", "dot", "absolute"}


def test_links_are_followed(there: Site, here: Path) -> None:
    tangle(here / "up")
    report = api.copy(str(here / "up"), there.url_of("dst"), TREE)
    expected = [
        "absolute", "file", "sub/", "sub/inner", "sub/up to file",
        "to file", "to folder/", "to folder/inner", "to folder/up to file",
    ]  # fmt: skip
    assert names(there.folder / "dst") == expected
    assert set(skips(report)) == {"dangling", "itself", "loop", "dot"}
    assert "leads nowhere" in skips(report)["dangling"]
    assert not any(path.is_symlink() for path in (there.folder / "dst").rglob("*"))


def test_links_at_the_source_are_followed(there: Site, here: Path) -> None:
    tangle(there.folder / "src")
    there.hand_over()
    if not there.resolves_links and there.url.startswith("ftp"):
        (there.folder / "src/absolute").unlink()  # leads out of what this server serves
        (there.folder / "src/absolute").symlink_to("file")
    report = api.copy(there.url_of("src"), str(here / "down"), TREE)
    expected = [
        "absolute", "file", "sub/", "sub/inner", "sub/up to file",
        "to file", "to folder/", "to folder/inner", "to folder/up to file",
    ]  # fmt: skip
    assert names(here / "down") == expected
    assert set(skips(report)) == {"dangling", "itself", "loop", "dot"}


def test_links_are_skipped(there: Site, here: Path) -> None:
    tangle(here / "up")
    options = api.CopyOptions(recursive=True, links="skip")
    report = api.copy(str(here / "up"), there.url_of("dst"), options)
    assert names(there.folder / "dst") == ["file", "sub/", "sub/inner"]
    assert set(skips(report)) == LINKS
    tangle(there.folder / "src")
    there.hand_over()
    report = api.copy(there.url_of("src"), str(here / "down"), options)
    assert names(here / "down") == ["file", "sub/", "sub/inner"]
    assert set(skips(report)) == LINKS


def test_links_are_kept(here: Path) -> None:
    tangle(here / "up")
    options = api.CopyOptions(recursive=True, links="keep")
    for _ in range(2):
        api.copy(str(here / "up"), str(here / "dst"), options)
    for path in (here / "up").rglob("*"):
        copy = here / "dst" / path.relative_to(here / "up")
        assert copy.is_symlink() == path.is_symlink()
        if path.is_symlink():
            assert copy.readlink() == path.readlink()


def test_kept_links_from_a_server(far: Site, here: Path) -> None:
    tangle(far.folder / "src")
    far.hand_over()
    api.copy(far.url_of("src"), str(here / "down"), api.CopyOptions(recursive=True, links="keep"))
    kept = {
        str(p.relative_to(here / "down")): str(p.readlink())
        for p in (here / "down").rglob("*")
        if p.is_symlink()
    }
    outside = str(far.folder / "src/file")
    assert kept == {
        "to file": "file",
        "to folder": "sub",
        "sub/up to file": "../file",
        "dangling": "nowhere/at all",
        "itself": "itself",
        "sub/loop": "..",
        "sub/dot": ".",
        "absolute": "file" if far.resolves_links else outside,
    }


def test_kept_links_to_a_stock_server(stock: Site, here: Path) -> None:
    tangle(here / "up")
    (here / "up/absolute").unlink()
    with pytest.raises(api.PartialFailure) as caught:
        api.copy(str(here / "up"), stock.url_of("dst"), api.CopyOptions(recursive=True, links="keep"))
    assert set(failures(caught)) == {"dangling", "itself"}  # it makes links only to what is there
    assert (stock.folder / "dst/to file").readlink() == stock.folder / "dst/file"
    assert (stock.folder / "dst/sub/up to file").resolve() == stock.folder / "dst/file"
    assert (stock.folder / "dst/to folder").is_symlink()
    assert caught.value.report is not None
    assert any("absolute" in note for note in caught.value.report.notes)


def test_kept_links_and_overwrite(here: Path) -> None:
    (here / "up").mkdir()
    (here / "up/link").symlink_to("new")
    (here / "dst").mkdir()
    (here / "dst/link").symlink_to("old")
    for overwrite, target in (("never", "old"), ("different", "new")):
        api.copy(
            str(here / "up"),
            str(here / "dst"),
            api.CopyOptions(recursive=True, links="keep", overwrite=overwrite),
        )
        assert str((here / "dst/link").readlink()) == target
    (here / "dst/link").unlink()
    make(here / "dst/link/kept")
    with pytest.raises(api.DestinationError, match="folder"):
        api.copy(str(here / "up"), str(here / "dst"), api.CopyOptions(recursive=True, links="keep"))
    assert (here / "dst/link/kept").exists()


def test_a_link_named_by_the_user(here: Path) -> None:
    make(here / "file", 5)
    (here / "link").symlink_to("file")
    (here / "dangling").symlink_to("nowhere")
    api.copy(str(here / "link"), str(here / "followed"))
    api.copy(str(here / "link"), str(here / "kept"), api.CopyOptions(links="keep"))
    api.copy(str(here / "dangling"), str(here / "kept too"), api.CopyOptions(links="keep"))
    report = api.copy(str(here / "link"), str(here / "skipped"), api.CopyOptions(links="skip"))
    assert (here / "followed").read_bytes() == (here / "file").read_bytes()
    assert not (here / "followed").is_symlink()
    assert str((here / "kept").readlink()) == "file"
    assert str((here / "kept too").readlink()) == "nowhere"
    assert not (here / "skipped").exists()
    assert set(skips(report)) == {"link"}
    with pytest.raises(api.SourceError, match="dangling"):
        api.copy(str(here / "dangling"), str(here / "x"))


def test_devices_and_fifos_are_skipped_with_a_line(there: Site, here: Path) -> None:
    make(here / "up/file", 5)
    os.mkfifo(here / "up/a fifo")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(here / "up/a socket"))
        ended = mpx("copy", "-r", here / "up", there.url_of("dst"))
    copied(ended)
    assert names(there.folder / "dst") == ["file"]
    for name in ("a fifo", "a socket"):
        assert f"{name}: not a regular file" in ended.out
    os.mkfifo(there.folder / "dst/another fifo")
    ended = mpx("copy", "-r", there.url_of("dst"), here / "down")
    copied(ended)
    assert names(here / "down") == ["file"]
    assert "another fifo: not a regular file" in ended.out


def test_a_device_is_never_replaced(here: Path) -> None:
    make(here / "file", 5)
    os.mkfifo(here / "fifo")
    with pytest.raises(api.DestinationError, match="no regular file"):
        api.copy(str(here / "file"), str(here / "fifo"))
    with pytest.raises(api.DestinationError, match="no regular file"):
        api.copy(str(here / "file"), "/dev/null")
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)
    assert stat.S_ISFIFO((here / "fifo").stat().st_mode)


# --- what fails alone ------------------------------------------------------------------------------


def test_one_failing_file_does_not_stop_the_rest(there: Site, here: Path) -> None:
    for i in range(40):
        make(here / f"up/{i}", i)
    (there.folder / "dst/7").mkdir(parents=True)
    there.write("dst/a file")
    make(here / "up/a file/below", 5)
    there.hand_over()
    with pytest.raises(api.PartialFailure) as caught:
        api.copy(str(here / "up"), there.url_of("dst"), TREE)
    report = caught.value.report
    assert report is not None
    assert set(failures(caught)) == {"7", "a file", "below"}
    assert (report.files.moved, report.files.failed, report.exit_code) == (39, 3, 10)
    assert "7" in str(caught.value) or "a file" in str(caught.value)
    for i in range(40):
        if i != 7:
            assert (there.folder / f"dst/{i}").read_bytes() == (here / f"up/{i}").read_bytes()


def test_unreadable_sources_fail_alone(far: Site, here: Path) -> None:
    for name in ("a", "secret", "hidden/b", "z"):
        far.write(f"src/{name}", name.encode())
    if far.owner:  # this server is not root
        (far.folder / "src/secret").chmod(0)
        (far.folder / "src/hidden").chmod(0)
        with pytest.raises(api.PartialFailure) as caught:
            api.copy(far.url_of("src"), str(here / "down"), TREE)
        assert set(failures(caught)) == {"secret", "hidden"}
        assert names(here / "down") == ["a", "hidden/", "z"]
        (far.folder / "src/hidden").chmod(0o755)
    else:
        api.copy(far.url_of("src"), str(here / "down"), TREE)
        assert names(here / "down") == ["a", "hidden/", "hidden/b", "secret", "z"]


def test_what_the_command_says_of_failures(there: Site, here: Path) -> None:
    for name in ("a", "b", "c"):
        make(here / "up" / name)
    there.write("dst/b/in the way")
    ended = mpx("copy", "-r", here / "up", there.url_of("dst"))
    refused(ended, 10, "1 of 3 files")
    assert "not copied" in ended.out
    refused(mpx("copy", "-r", "-q", here / "up", there.url_of("dst")), 10)


# --- within this host ------------------------------------------------------------------------------


def test_a_file_onto_itself_is_refused(here: Path) -> None:
    data = make(here / "file", 100).read_bytes()
    (here / "link").symlink_to("file")
    (here / "hard").hardlink_to(here / "file")
    (here / "folder").symlink_to(".")
    pairs = [("file", "file"), ("file", "."), ("file", "link"), ("link", "file"), ("file", "hard")]
    for source, target in [*pairs, ("file", "folder/file"), ("folder/file", "file"), ("hard", "link")]:
        for overwrite in ("different", "always", "never"):
            with pytest.raises(api.UsageError, match="the same file"):
                api.copy(str(here / source), str(here / target), api.CopyOptions(overwrite=overwrite))
    refused(mpx("copy", "file", "./file", folder=here), 2, "the same file")
    assert (here / "file").read_bytes() == data
    assert names(here) == ["file", "folder", "hard", "link"]


def test_a_folder_into_itself_is_refused(here: Path) -> None:
    make(here / "tree/file", 5)
    (here / "link").symlink_to("tree")
    for source, target in (
        ("tree", "tree"), ("tree", "tree/sub/dst"), ("tree", "link/dst"), ("link", "tree/dst"),
        ("tree/", "./tree"),
    ):  # fmt: skip
        with pytest.raises(api.UsageError, match="inside it"):
            api.copy(str(here / source), f"{here}/{target}", TREE)
    refused(mpx("copy", "-r", "tree", "tree/dst", folder=here), 2, "inside it")
    assert names(here) == ["link", "tree/", "tree/file"]
    copied(mpx("copy", "-r", "tree", "tree2", folder=here))


def test_a_link_in_the_tree_that_leads_to_the_destination(here: Path) -> None:
    make(here / "src/file", 5)
    (here / "src/to dst").symlink_to(here / "dst")
    (here / "src/to all").symlink_to(here)
    report = api.copy(str(here / "src"), str(here / "dst"), TREE)
    assert (here / "dst/file").exists()
    assert "the destination itself" in skips(report).values()


# --- room ------------------------------------------------------------------------------------------


@pytest.fixture
def tiny(tmp_path: Path) -> Iterator[Path]:
    """A file system of 4 MiB."""
    if os.geteuid() != 0:
        pytest.skip("mounting needs root")
    folder = tmp_path / "tiny"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "mpx-test", folder], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)


def test_room_is_looked_for_before_the_first_byte(far: Site, here: Path, tiny: Path) -> None:
    for i in range(5):
        far.write(f"src/{i}", os.urandom(1_000_000))
    far.write("big", os.urandom(5_000_000))
    api.copy(far.url_of("src/0"), f"{tiny}/")
    with pytest.raises(api.NoSpace, match="bytes and"):
        api.copy(far.url_of("big"), str(tiny / "big"))
    with pytest.raises(api.NoSpace, match="bytes and") as caught:
        api.copy([far.url_of(f"src/{i}") for i in range(1, 5)], str(tiny / "all"))
    assert caught.value.report is not None
    assert caught.value.report.bytes.moved == 0
    assert [path.name for path in tiny.rglob("*") if path.is_file()] == ["0"]
    api.copy(far.url_of("src"), f"{here}/enough/", TREE)
    refused(mpx("copy", *(here / f"enough/{i}" for i in range(5)), tiny / "x/"), 9, "make room")
