"""XRootD by its own protocol: what is peculiar to a library in processes of its own."""

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from free_ports import free_ports
from interop.trees import TREE, names
from mpx_command import refused
from sites import Site, make
from web.root_processes import processes_with_the_library
from web.shared_servers import SharedServers
from web.web_command import mpx_there

import mpx as api

SLOW = api.CopyOptions(rate_bps=32e6, streams=2)  # so that something can happen on the way
SLOW_BYTES = 6_000_001


@pytest.fixture
def root_site(web_servers: SharedServers) -> Iterator[Site]:
    with web_servers.site("root") as site:
        yield site


def test_a_tree_there_and_back(here: Path, root_site: Site) -> None:
    for i in range(40):
        make(here / f"tree/{i % 4}/{i}", i % 97)
    make(here / "tree/large", 5_000_001)
    (here / "tree/empty").mkdir()
    sent = api.copy(str(here / "tree"), root_site.url_of("up"), TREE)
    assert (sent.status, sent.files.moved) == ("done", 41)
    assert api.copy(str(here / "tree"), root_site.url_of("up"), TREE).files.moved == 0
    brought = api.copy(root_site.url_of("up"), str(here / "down"), TREE)
    assert brought.files.moved == 41
    found = names(here / "tree")
    assert names(here / "down") == names(root_site.folder / "up") == found
    for name in found:
        if not name.endswith("/"):
            assert (here / "down" / name).read_bytes() == (here / "tree" / name).read_bytes()


def test_through_this_host(root_site: Site) -> None:
    content = os.urandom(3_000_003)
    root_site.write("file", content)
    report = api.copy(root_site.url_of("file"), root_site.url_of("copy"))
    assert report.status == "done"
    assert (root_site.folder / "copy").read_bytes() == content
    assert report.checksum["result"] == "verified"


@pytest.mark.parametrize("upload", [True, False], ids=["up", "down"])
def test_a_process_that_crashes_harms_no_copy(here: Path, root_site: Site, *, upload: bool) -> None:
    content = os.urandom(SLOW_BYTES)
    crashed: list[int] = []

    def crash(progress: api.Progress) -> None:
        if progress.bytes_done and not crashed:
            crashed.extend(processes_with_the_library())
            for pid in crashed:
                os.kill(pid, signal.SIGSEGV)

    if upload:
        (here / "file").write_bytes(content)
        report = api.copy(str(here / "file"), root_site.url_of("file"), SLOW, on_progress=crash)
        assert (root_site.folder / "file").read_bytes() == content
    else:
        root_site.write("file", content)
        report = api.copy(root_site.url_of("file"), str(here / "file"), SLOW, on_progress=crash)
        assert (here / "file").read_bytes() == content
    assert crashed
    assert report.status == "done"


def test_uploads_are_sent_with_the_congestion_control_that_is_chosen(here: Path, root_site: Site) -> None:
    (here / "file").write_bytes(os.urandom(SLOW_BYTES))
    seen: list[str] = []

    def look(progress: api.Progress) -> None:
        if progress.bytes_done:
            pids = [f"pid={pid}," for pid in processes_with_the_library()]
            told = subprocess.run(["ss", "-tinpO"], check=True, capture_output=True, text=True).stdout
            seen.extend(line for line in told.splitlines() if any(pid in line for pid in pids))

    options = replace(SLOW, congestion="reno", streams=1)
    assert api.copy(str(here / "file"), root_site.url_of("file"), options, on_progress=look).status == "done"
    assert any(" reno " in line for line in seen)
    refused(
        mpx_there("copy", "--congestion", "reno", root_site.url_of("file"), here / "b"), 2, "--congestion"
    )


def test_no_process_is_left(here: Path, root_site: Site, eventually: Callable[..., None]) -> None:
    root_site.write("file", os.urandom(1000))
    assert api.copy(root_site.url_of("file"), str(here / "file")).status == "done"
    eventually(lambda: not processes_with_the_library())


def test_a_server_without_the_file(here: Path, root_site: Site) -> None:
    refused(mpx_there("copy", root_site.url_of("no"), here / "no"), 3, "no does not exist")
    assert not (here / "no").exists()


def test_nobody_is_there(root_site: Site) -> None:
    port = free_ports(1)[0]
    ended = mpx_there("list", f"root://localhost:{port}//x")
    refused(ended, 6, f"localhost:{port}, by XRootD", "the connection is refused")


def test_names_that_are_no_utf_8(here: Path, root_site: Site) -> None:
    """The library has all names in it: a folder with another one is refused, and nothing waits for it."""
    root_site.write("good", b"1")
    (root_site.folder / os.fsdecode(b"bad \xff")).touch()
    refused(mpx_there("copy", "-r", root_site.url_of(""), here / "got"), 3, "cannot")
    (here / os.fsdecode(b"bad \xff")).write_bytes(b"2")
    refused(mpx_there("copy", here / os.fsdecode(b"bad \xff"), root_site.url_of("")), 2, "no UTF-8")


def test_names_of_several_lines_are_refused(here: Path, root_site: Site) -> None:
    """As their whole folder could not be listed any more."""
    make(here / "several\nlines")
    refused(mpx_there("copy", here / "several\nlines", root_site.url_of("")), 2, "a line feed")


def test_the_library_is_missing(here: Path, root_site: Site) -> None:
    (here / "XRootD").mkdir()
    (here / "XRootD/__init__.py").write_text("raise ImportError('not here')\n")
    path = os.pathsep.join([str(here), *filter(None, [os.environ.get("PYTHONPATH")])])
    ended = mpx_there("list", root_site.url_of(""), PYTHONPATH=path)
    refused(ended, 2, "needs XRootD's library", "pip install '.[xrootd]'")
