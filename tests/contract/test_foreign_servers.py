"""What a copy does at every FTP server that people run: vsftpd, ProFTPD, Pure-FTPD and pyftpdlib.

What one of them does in its own way is tested in tests/interop.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from interop.foreign_servers import ForeignServer, ProFtpd, PureFtpd, PyFtpdLib
from interop.mpx_process import Copy, copy
from interop.trees import names
from interop.vsftpd import VsFtpd
from mpx_command import copied, mpx, refused
from sites import AWKWARD, make, partials

import mpx as api

pytestmark = pytest.mark.peers

SIZES = (0, 1, (1 << 20) + 1, 17 * 1024 * 1024 + 3)  # the last one is larger than a part
RAW = [b"caf\xff", b"\xff\xff", b"a\xff\xfbb", b"\xff\xf4\xff\xf2", b"\xff\xff\xff end"]  # Telnet's escape
NAMES = [
    *(*AWKWARD, "-", ".hidden", "..more", "   ", "\u00fcml\u00e4ut", "\u65e5\u672c", "e\u0301", "\u00e9"),
    *(os.fsdecode(name) for name in RAW),
    *("Case", "case", "CASE"),
]
REFUSED: dict[type[ForeignServer], list[str]] = {
    ProFtpd: ["*?[x]"],  # as the name of a folder
    PureFtpd: ["ends in a blank ", "   ", "back\\slash"],  # blanks at an end are taken away
    PyFtpdLib: [os.fsdecode(name) for name in RAW],  # all is UTF-8
}
MODIFIED_S = 1_577_836_801


@pytest.fixture(params=[VsFtpd, ProFtpd, PureFtpd, PyFtpdLib], ids=lambda kind: kind.__name__)
def server(request: pytest.FixtureRequest, tmp_path: Path, with_password: None) -> Iterator[ForeignServer]:
    (tmp_path / "ftp").mkdir()
    with request.param(tmp_path / "ftp") as running:
        yield running


def tree(folder: Path) -> dict[str, bytes]:
    """Return what is below a folder, by name; the names of folders end in a slash."""
    return {name: b"" if name.endswith("/") else (folder / name).read_bytes() for name in names(folder)}


def names_at(server: ForeignServer) -> list[str]:
    """Return the names that a server takes."""
    return [name for name in NAMES if name not in REFUSED.get(type(server), ())]


def make_tree(folder: Path, each: list[str]) -> None:
    for number, name in enumerate(each):
        os.utime(make(folder / name, number), (0, MODIFIED_S + number))
        make(folder / "below" / name / "file", 1000)
    (folder / "empty").mkdir()


def open_to_all(folder: Path) -> None:
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o777 if path.is_dir() else 0o666)


@pytest.mark.parametrize("size", SIZES)
def test_a_file_up_and_down(server: ForeignServer, here: Path, size: int) -> None:
    source = make(here / "source", size)
    assert copy(here, source, server.url + "there").code == 0
    assert (server.root / "there").read_bytes() == source.read_bytes()
    assert copy(here, server.url + "there", here / "back").code == 0
    assert (here / "back").read_bytes() == source.read_bytes()
    assert [path.name for path in server.root.iterdir()] == ["there"]
    assert not partials(here)


def test_a_tree_up_and_down_and_nothing_twice(server: ForeignServer, here: Path) -> None:
    make_tree(here / "tree", names_at(server))
    for source, target, there in (
        (here / "tree", server.url + "not/there/yet", server.root / "not/there/yet"),
        (server.url + "not/there/yet", here / "back", here / "back"),
    ):
        first = copy(here, source, target, "-r")
        assert first.code == 0, first.stderr
        assert tree(there) == tree(here / "tree")
        assert (there / "case").stat().st_mtime == (here / "tree/case").stat().st_mtime
        second = copy(here, source, target, "-r")
        assert (second.code, second.report["files"]["moved"]) == (0, 0), second
        assert tree(there) == tree(here / "tree")


def test_names_that_a_server_does_not_take_are_named(server: ForeignServer, here: Path) -> None:
    """pyftpdlib takes all, and lists some otherwise."""
    is_up = not isinstance(server, PyFtpdLib)
    source, target = (here, server.root) if is_up else (server.root, here)
    given = REFUSED.get(type(server), [])
    make_tree(source / "tree", [*given, "plain"])
    pair = (here / "tree", server.url + "tree")
    ended = mpx("copy", "-r", *(pair if is_up else reversed(pair)))
    assert ended.code == (10 if given else 0), ended.err
    assert all(name in ended.err for name in given if name.isprintable())
    for name in ("tree/plain", "tree/below/plain/file"):
        assert (target / name).read_bytes() == (source / name).read_bytes()


def test_what_is_there_is_replaced_or_not(server: ForeignServer, here: Path) -> None:
    old, new = make(here / "old", 1000), make(here / "new", 999)
    for target, there in ((server.url + "file", server.root / "file"), (here / "file", here / "file")):
        ways = {"never": old, "different": new}
        for overwrite, expected in ways.items():
            there.write_bytes(old.read_bytes())
            (server.root / "source").write_bytes(new.read_bytes())
            open_to_all(server.root)
            source = new if target != here / "file" else server.url + "source"
            api.copy(str(source), str(target), api.CopyOptions(overwrite=overwrite))
            assert there.read_bytes() == expected.read_bytes()


def test_a_source_that_is_not_there(server: ForeignServer, here: Path) -> None:
    refused(mpx("copy", server.url + "missing", here / "file"), 3, "missing")
    refused(mpx("copy", server.url + "no/such/folder/file", here / "file"), 3, "no/such")
    refused(mpx("list", server.url + "missing"), 3, "missing")
    assert list(here.iterdir()) == []


def test_a_folder_is_listed(server: ForeignServer, here: Path) -> None:
    for name in names_at(server):
        make(server.root / name)
    (server.root / "folder").mkdir()
    ended = mpx("list", server.url)
    copied(ended)
    assert sorted(ended.out.splitlines()) == sorted([*names_at(server), "folder/"])


@pytest.mark.parametrize("direction", ["up", "down"])
def test_a_copy_that_was_killed_is_continued(
    server: ForeignServer, here: Path, direction: str, eventually: Callable[..., None]
) -> None:
    source = make((here if direction == "up" else server.root) / "source", 40_000_000)
    open_to_all(server.root)
    target = server.root if direction == "up" else here
    pair = (source, server.url + "file") if direction == "up" else (server.url + "source", here / "file")
    first = Copy(here, *pair, "--rate", "160Mbit/s")
    eventually(lambda: any(part.stat().st_blocks * 512 > 25_000_000 for part in partials(target)))
    first.kill()
    first.end()
    assert not (target / "file").exists()
    second = copy(here, *pair)
    assert second.code == 0, second.stderr
    assert (target / "file").read_bytes() == source.read_bytes()
    assert (second.resumed_bytes > 0) == (direction == "down"), second
    assert not partials(target)
