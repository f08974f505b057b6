"""What fails alone while the rest is copied, and what is refused before the first byte."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from interop.trees import TREE, failures, names, skips
from mpx_command import copied, mpx, refused
from random_bytes import random_bytes
from sites import Site, make

import mpx as api

pytestmark = pytest.mark.peers


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
    there.write("dst/c/in the way")
    for option in ((), ("-q",)):
        ended = mpx("copy", "-r", "--overwrite", "always", *option, here / "up", there.url_of("dst"))
        refused(ended, 10, "2 of 3 files were not copied; copied 1 of 3 files to ", "verified (")
        *each, last = ended.err.splitlines()
        assert not any(line.split(": ", 2)[2] in last for line in each)  # the causes are told once
        said = sorted(line.split(": ")[1].rpartition("/")[2] for line in each)
        assert said == ["b", "c"], ended.err
        assert [line for line in ended.out.splitlines() if not line.startswith("note: ")] == []


# --- within this host -----------------------------------------------------------------------------


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


# --- room -----------------------------------------------------------------------------------------


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
        far.write(f"src/{i}", random_bytes(1_000_000))
    far.write("big", random_bytes(5_000_000))
    api.copy(far.url_of("src/0"), f"{tiny}/")
    with pytest.raises(api.NoSpace, match="bytes needed, "):
        api.copy(far.url_of("big"), str(tiny / "big"))
    with pytest.raises(api.NoSpace, match="bytes needed, ") as caught:
        api.copy([far.url_of(f"src/{i}") for i in range(1, 5)], str(tiny / "all"))
    assert caught.value.report is not None
    assert caught.value.report.bytes.moved == 0
    assert [path.name for path in tiny.rglob("*") if path.is_file()] == ["0"]
    api.copy(far.url_of("src"), f"{here}/enough/", TREE)
    refused(mpx("copy", *(here / f"enough/{i}" for i in range(5)), tiny / "x/"), 9, "make room")
