"""Copies between servers of ours, inside TLS and over ssh, which send to each other."""

import contextlib
import itertools
import os
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from interop.mpx_process import Copy, assert_clear, copy
from interop.sshd import HOST, private_sshd
from interop.trees import names
from older_python import older_python
from secure_client import secure_server, token_of
from sites import make

import mpx
from mpx.errors import IntegrityError, UsageError
from mpx.serve import other_server
from mpx.serve.session import Limits

MIB = 1024 * 1024
ROOT = Path(mpx.__file__).parents[1]
ONLY = mpx.CopyOptions(third_party="only", recursive=True)
STRAIGHT, THROUGH_US = "data go straight", "data pass through this host"
KINDS = ("mpx", "ssh")


@dataclass(frozen=True)
class Ends:
    """Two servers: where they are, and what they serve."""

    folders: tuple[Path, Path]
    urls: tuple[str, str]
    options: mpx.CopyOptions = ONLY

    def copy(self, name: str, options: mpx.CopyOptions | None = None, **more: object) -> mpx.Report:
        return mpx.copy(self.urls[0] + name, self.urls[1] + name, options or self.options, **more)

    def assert_copied(self, name: str) -> None:
        source, target = (folder / name for folder in self.folders)
        if source.is_file():
            assert target.read_bytes() == source.read_bytes()
            return
        assert names(source) == names(target)
        for path in (path for path in source.rglob("*") if path.is_file()):
            assert (target / path.relative_to(source)).read_bytes() == path.read_bytes(), path


@contextlib.contextmanager
def between(folder: Path, kinds: tuple[str, str], script: str = "exec", **given: object) -> Iterator[Ends]:
    """`script`: what runs the server at the other ends of ssh; `given`: options of the copies."""
    folders = folder / "from", folder / "to"
    for each in folders:
        each.mkdir()
    urls = []
    with contextlib.ExitStack() as stack:
        if "ssh" in kinds:
            stack.enter_context(private_sshd())
            program = folder / "remote-mpx"
            program.write_text(f'#!/bin/sh\nPYTHONPATH={ROOT} {script} {sys.executable} -m mpx "$@"\n')
            program.chmod(0o755)
            given = given or {"remote_mpx": str(program)}
        for number, (kind, each) in enumerate(zip(kinds, folders, strict=True)):
            if kind == "ssh":
                urls.append(f"ssh://{HOST}{each}/")
                continue
            server, secure = stack.enter_context(secure_server(each, audit=folder / f"audit-{number}"))
            stack.enter_context(token_of(secure))
            urls.append(server.url)
        yield Ends(folders, (urls[0], urls[1]), replace(ONLY, **given))


def said(report: mpx.Report, words: str) -> bool:
    return any(words in note for note in report.notes)


@pytest.mark.parametrize("kinds", list(itertools.product(KINDS, KINDS)), ids="-".join)
def test_trees_and_large_files_go_straight(tmp_path: Path, kinds: tuple[str, str]) -> None:
    with between(tmp_path, kinds) as ends:
        for size in (0, 1, 999, 70_001, 9 * MIB + 5):
            make(ends.folders[0] / "tree/sub" / f"{size}", size)
        for i in range(60):
            make(ends.folders[0] / "tree/many" / f"{i}", i * 1000)
        (ends.folders[0] / "tree/empty").mkdir()
        make(ends.folders[0] / "large", 50 * MIB + 1)
        report = ends.copy("tree")
        assert said(report, STRAIGHT) and not said(report, "trying again")
        assert (report.files.moved, report.checksum["result"]) == (65, "verified")
        ends.assert_copied("tree")
        ends.copy("large", replace(ends.options, streams=7))
        ends.assert_copied("large")
        (ends.folders[1] / "tree/many/7").write_bytes(b"other")
        again = ends.copy("tree")
        assert (again.files.moved, again.files.skipped) == (1, 64)
        ends.assert_copied("tree")


def test_servers_that_were_sent_there(tmp_path: Path) -> None:
    """Both run on Python 3.9, if there is one."""
    given = {"bootstrap_once": True, "remote_python": older_python() or sys.executable}
    with between(tmp_path, ("ssh", "ssh"), **given) as ends:
        make(ends.folders[0] / "file", 5 * MIB)
        assert said(ends.copy("file"), STRAIGHT)
        ends.assert_copied("file")


@pytest.mark.parametrize("kinds", [("mpx", "mpx"), ("ssh", "mpx")], ids="-".join)
def test_a_copy_that_is_killed_goes_on(tmp_path: Path, eventually, kinds: tuple[str, str]) -> None:
    size = 250 * MIB
    with between(tmp_path, kinds) as ends:
        with (ends.folders[0] / "file").open("wb") as file:
            for i in range(size // MIB):
                file.write(i.to_bytes(8, "big") * (MIB // 8))
        urls = [url + "file" for url in ends.urls]
        words = ["--third-party", "only"]
        words += ["--remote-mpx", str(ends.options.remote_mpx)] if "ssh" in kinds else []
        first = Copy(tmp_path, *urls, *words)

        def partial_bytes() -> int:
            return sum(each.stat().st_blocks * 512 for each in ends.folders[1].glob(".*.part"))

        eventually(lambda: partial_bytes() > size // 8 or first.process.poll() is not None)
        first.kill()
        assert first.end().code == -9
        assert not (ends.folders[1] / "file").exists()
        again = copy(tmp_path, *urls, *words)
        assert again.code == 0, again.stderr
        ends.assert_copied("file")
        assert os.listdir(ends.folders[1]) == ["file"]
        assert again.resumed_bytes > 0
        assert again.resumed_bytes + again.moved_bytes == size


def test_a_source_that_changes_is_not_taken_for_whole(tmp_path: Path) -> None:
    with between(tmp_path, ("mpx", "mpx")) as ends:
        source = make(ends.folders[0] / "file", 1)
        os.truncate(source, 2 << 30)
        shrunk = threading.Event()

        def shrink(progress: mpx.Progress) -> None:
            if progress.bytes_done and not shrunk.is_set():
                shrunk.set()
                os.truncate(source, MIB)

        with pytest.raises(IntegrityError, match="changed while it was copied"):
            ends.copy("file", replace(ends.options, retries=2), on_progress=shrink)
        assert not (ends.folders[1] / "file").exists()


def test_a_receiver_that_is_not_reached_is_sent_to_from_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(other_server, "DIAL_S", 0.2)
    monkeypatch.setattr(other_server.OtherServer, "_connected", _filtered)
    with between(tmp_path, ("mpx", "mpx")) as ends:
        make(ends.folders[0] / "file", 3 * MIB)
        refused = copy(tmp_path, ends.urls[0] + "file", ends.urls[1] + "file", "--third-party", "only")
        assert_clear(refused, 2, "--third-party only is not possible here", "no data connection")
        report = ends.copy("file", replace(ends.options, third_party="auto"))
        assert said(report, THROUGH_US) and said(report, "no data connection")
        ends.assert_copied("file")


def _filtered(*_: object) -> None:
    raise OSError("a firewall is in between")


def test_a_server_that_cannot_or_may_not_is_sent_from_here(tmp_path: Path) -> None:
    folders = tmp_path / "a", tmp_path / "b"
    for folder in folders:
        folder.mkdir()
    make(folders[0] / "file", MIB)
    older = Limits(third_party=False)
    with (
        secure_server(folders[0], limits=older) as (sender, secure),
        token_of(secure),
        secure_server(folders[1]) as (receiver, _),
    ):
        with pytest.raises(UsageError, match=r"no mpx at .+ that sends"):
            mpx.copy(sender.url + "file", receiver.url + "file", ONLY)
        report = mpx.copy(sender.url + "file", receiver.url + "file")
    assert said(report, THROUGH_US)
    assert (folders[1] / "file").read_bytes() == (folders[0] / "file").read_bytes()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, for a network of its own")
def test_where_nothing_gets_out_all_goes_through_this_host(tmp_path: Path) -> None:
    """Both ends have ssh, and networks of their own."""
    with between(tmp_path, ("ssh", "ssh"), "exec unshare -n") as ends:
        make(ends.folders[0] / "file", 3 * MIB)
        report = ends.copy("file", replace(ends.options, third_party="auto"))
        assert said(report, THROUGH_US)
        ends.assert_copied("file")
