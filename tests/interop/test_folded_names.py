"""Names that differ only in case: none replaces another in silence where a server takes them for one."""

import json
import sys
from pathlib import Path

import pytest
from interop.control_relay import ControlRelay
from interop.foreign_servers import _PYFTPDLIB, ENVIRONMENT, PyFtpdLib
from interop.trees import TREE, failures, names
from mpx_command import mpx
from sites import Site, make, own_site

import mpx as api
from mpx.transfer.folded_names import FoldedNames

pytestmark = pytest.mark.peers

KEEPS_CASE = """
import os
from pyftpdlib.filesystems import AbstractedFS

class Folding(AbstractedFS):
    def ftp2fs(self, path):
        real = self.root
        for part in self.ftpnorm(path).split("/"):
            if part:
                alike = [name for name in self._names(real) if name.lower() == part.lower()]
                real = os.path.join(real, alike[0] if alike else part)
        return real

    @staticmethod
    def _names(folder):
        try:
            return os.listdir(folder)
        except OSError:
            return []

    def validpath(self, path):
        return True
"""
LOWERS = """
from pyftpdlib.filesystems import AbstractedFS

class Folding(AbstractedFS):
    def ftp2fs(self, path):
        return super().ftp2fs(path.lower())
"""


class FoldingServer(PyFtpdLib):
    """pyftpdlib that takes names that differ only in case for the same, and keeps the first."""

    file_system = KEEPS_CASE

    def command(self) -> list[str]:
        settings = {**self._settings, "root": str(self.root), "port": self.port, **ENVIRONMENT}
        begin = "FTPHandler.authorizer.add_user"
        program = self.file_system + _PYFTPDLIB.replace(begin, f"FTPHandler.abstracted_fs = Folding\n{begin}")
        return [sys.executable, "-W", "ignore", "-c", program, json.dumps(settings)]


class LoweringServer(FoldingServer):
    file_system = LOWERS


class StrippingServer(FoldingServer):
    """As Windows does it: what stands at the end of a name counts as little as its case."""

    file_system = KEEPS_CASE.replace("== part.lower()", "== part.rstrip('. ').lower()").replace(
        "else part)", "else part.rstrip('. '))"
    )


def two_of_each(folder: Path) -> None:
    for name, size in (("file", 10), ("File", 11), ("FILE", 12), ("sub/inner", 13), ("Sub/inner", 14)):
        make(folder / name, size)
    make(folder / "plain", 15)


@pytest.mark.parametrize("kind", [FoldingServer, LoweringServer])
def test_a_server_that_folds_them(kind: type[FoldingServer], tmp_path: Path, with_password: None) -> None:
    root, up = tmp_path / "ftp", tmp_path / "up"
    root.mkdir()
    two_of_each(up)
    sources = {path.read_bytes() for path in up.rglob("*") if path.is_file()}
    with kind(root) as server:
        for overwrite in ("different", "always"):
            options = api.CopyOptions(recursive=True, overwrite=overwrite)
            with pytest.raises(api.PartialFailure) as caught:
                api.copy(str(up), server.url + "dst", options)
            assert len(failures(caught)) >= 2
            assert sum("differs only in case" in why for why in failures(caught).values()) >= 2
            files = [path for path in (root / "dst").rglob("*") if path.is_file()]
            assert len(files) == 3, files
            assert all(path.read_bytes() in sources for path in files)
            assert caught.value.report is not None
            assert caught.value.report.files.failed == 4  # two files, a folder and what is in it


def test_a_server_that_leaves_out_what_is_at_the_end(tmp_path: Path, with_password: None) -> None:
    root, up = tmp_path / "ftp", tmp_path / "up"
    root.mkdir()
    for name in ("a", "a.", "a ", "A..", "b.", "dir./x", "dir/x"):
        make(up / name, 10 + len(name))
    with StrippingServer(root) as server, pytest.raises(api.PartialFailure) as caught:
        api.copy(str(up), server.url + "dst", TREE)
    files = [path for path in (root / "dst").rglob("*") if path.is_file()]
    assert sorted(path.name.lower() for path in files) == ["a", "b", "x"]
    assert caught.value.report is not None
    assert caught.value.report.files.failed == 5  # three files, a folder and what is in it
    api.copy(str(up), str(tmp_path / "down"), TREE)
    assert names(tmp_path / "down") == names(up)


def test_where_they_are_kept_apart_all_arrive(there: Site, here: Path) -> None:
    two_of_each(here / "up")
    for _ in range(2):
        api.copy(str(here / "up"), there.url_of("dst"), TREE)
    assert names(there.folder / "dst") == names(here / "up")
    for path in (here / "up").rglob("*"):
        if path.is_file():
            copy = there.folder / "dst" / path.relative_to(here / "up")
            assert copy.read_bytes() == path.read_bytes()
    report = api.copy(there.url_of("dst"), str(here / "down"), TREE)
    assert report.files.moved == 6
    assert names(here / "down") == names(here / "up")


def test_sources_given_by_name(tmp_path: Path, with_password: None) -> None:
    (tmp_path / "ftp").mkdir()
    make(tmp_path / "one/file", 10)
    make(tmp_path / "two/FILE", 11)
    with FoldingServer(tmp_path / "ftp") as server, pytest.raises(api.PartialFailure) as caught:
        api.copy([str(tmp_path / "one/file"), str(tmp_path / "two/FILE")], server.url + "dst/")
    assert "differs only in case" in failures(caught)["FILE"]
    assert (tmp_path / "ftp/dst/file").read_bytes() == (tmp_path / "one/file").read_bytes()


def variants(count: int) -> list[str]:
    """So many names that differ only in case."""
    letters = "abcdefghijkl"
    return ["".join(c.upper() if i >> at & 1 else c for at, c in enumerate(letters)) for i in range(count)]


def heard(relay: ControlRelay, verb: bytes) -> int:
    return sum(line.split()[0] == verb for line in relay.heard)


def test_many_such_names_are_asked_about_together(tmp_path: Path) -> None:
    """All of a folder go at once when it is known to keep them apart, however many differ from one."""
    for name in variants(600):
        make(tmp_path / "up" / name, 3)
    (tmp_path / "served").mkdir()
    with (
        own_site(tmp_path / "served") as site,
        ControlRelay(int(site.url.rstrip("/").rpartition(":")[2])) as relay,
    ):
        api.copy(str(tmp_path / "up"), f"ftp://127.0.0.1:{relay.port}/dst", TREE)
    assert names(tmp_path / "served/dst") == sorted(variants(600))
    assert heard(relay, b"MLSD") <= 2
    assert heard(relay, b"SIZE") < 50  # which is asked for with MLST where it is about one name


def test_many_such_names_at_a_server_that_folds_them(
    tmp_path: Path, with_password: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FoldedNames, "MOST_WAITING", 60)  # the destination is looked at in between too
    (tmp_path / "ftp").mkdir()
    for name in variants(200):
        make(tmp_path / "up" / name, 3)
    with (
        FoldingServer(tmp_path / "ftp") as server,
        ControlRelay(server.port) as relay,
        pytest.raises(api.PartialFailure) as caught,
    ):
        api.copy(str(tmp_path / "up"), f"ftp://u@127.0.0.1:{relay.port}/dst", TREE)
    assert len(failures(caught)) == 199
    assert all("differs only in case" in why for why in failures(caught).values())
    assert len(names(tmp_path / "ftp/dst")) == 1
    assert heard(relay, b"MLSD") <= 2


def test_more_than_wait_at_once_where_they_are_kept_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FoldedNames, "MOST_WAITING", 10)
    for name in [*variants(100), "é", "É", "e\u0301", "E\u0301"]:
        make(tmp_path / "up" / name, 3)
    report = api.copy(str(tmp_path / "up"), str(tmp_path / "dst"), TREE)
    assert report.files.moved == 104
    assert names(tmp_path / "dst") == names(tmp_path / "up")
    same = {path.name: path.read_bytes() for path in (tmp_path / "up").iterdir()}
    assert {path.name: path.read_bytes() for path in (tmp_path / "dst").iterdir()} == same


def test_one_that_cannot_be_read_keeps_the_other_from_nothing(tmp_path: Path) -> None:
    """The one that is there has just its own name, and no other that differs in case stands beside it."""
    make(tmp_path / "one/file", 10).chmod(0)
    make(tmp_path / "two/FILE", 11)
    make(tmp_path / "dst/FILE", 12)
    ended = mpx("copy", tmp_path / "one/file", tmp_path / "two/FILE", f"{tmp_path}/dst/", ordinary=True)
    assert ended.code == 10, ended.err
    assert "differs only in case" not in ended.err
    assert (tmp_path / "dst/FILE").read_bytes() == (tmp_path / "two/FILE").read_bytes()
