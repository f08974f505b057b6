"""Links, devices and fifos: followed, skipped or kept, and never written through."""

import os
import socket
import stat
from pathlib import Path

import pytest
from interop.trees import TREE, failures, names, skips
from mpx_command import copied, mpx
from sites import Site, make

import mpx as api
from mpx.report import Skip

pytestmark = pytest.mark.peers


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
    if not there.resolves_links and "://" in there.url:
        (there.folder / "src/absolute").unlink()  # leads out of what this server serves
        (there.folder / "src/absolute").symlink_to("file")
    report = api.copy(there.url_of("src"), str(here / "down"), TREE)
    expected = [
        "absolute", "file", "sub/", "sub/inner", "sub/up to file",
        "to file", "to folder/", "to folder/inner", "to folder/up to file",
    ]  # fmt: skip
    assert names(here / "down") == expected
    assert set(skips(report)) == {"dangling", "itself", "loop", "dot"}


def test_links_to_what_holds_the_source(there: Site, here: Path) -> None:
    make(there.folder / "src/file", 5)
    make(there.folder / "other/file", 6)
    (there.folder / "src/deep").mkdir()
    (there.folder / "src/up").symlink_to("..")
    (there.folder / "src/deep/higher up").symlink_to(
        "../../../" + there.folder.name if there.links != "none" else "../.."
    )
    (there.folder / "src/aside").symlink_to("../other")
    there.hand_over()
    report = api.copy(there.url_of("src"), str(here / "down"), TREE)
    assert names(here / "down") == ["aside/", "aside/file", "deep/", "file"]
    assert set(skips(report)) == {"up", "higher up"}
    assert set(skips(report).values()) <= {Skip.LINK_TO_ABOVE, Skip.CONTAINS_ITSELF}


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
    with pytest.raises(api.DestinationError, match="not a regular file"):
        api.copy(str(here / "file"), str(here / "fifo"))
    with pytest.raises(api.DestinationError, match="not a regular file"):
        api.copy(str(here / "file"), "/dev/null")
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)
    assert stat.S_ISFIFO((here / "fifo").stat().st_mode)


def test_links_of_this_host_are_kept_to_the_letter(here: Path) -> None:
    (here / "up").mkdir()
    os.symlink("./a//b/", here / "up/link")
    copied(mpx("copy", "-r", "--links", "keep", here / "up", here / "down"))
    assert os.readlink(here / "down/link") == "./a//b/"
