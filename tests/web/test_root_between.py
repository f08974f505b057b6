"""Between two servers of XRootD: the destination reads from the source, or data pass through this host."""

import contextlib
import os
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from install_peers import GFAL, find_peer
from mpx_command import refused
from sites import partials
from web.servers.private_network import servers_folder
from web.servers.root_server import RootServer, root_server
from web.web_command import mpx_there

import mpx as api
from mpx.endpoints.sftp import wire
from mpx.endpoints.sftp.lanes import LaneOptions
from mpx.endpoints.sftp.refusals import is_ok
from mpx.endpoints.sftp.session import extended
from mpx.endpoints.sftp.wire import Extended
from mpx.endpoints.web.bearer_tokens import BearerTokens
from mpx.endpoints.xrootd.lanes import XrootdLanes
from mpx.endpoints.xrootd.login import XrootdLogin
from mpx.endpoints.xrootd.options import XrootdOptions
from mpx.errors import Interrupted
from mpx.location import parse_location

READS = "ofs.tpc ttl 60 60 xfr 9 pgm /usr/bin/xrdcp --server"
FAILS = "ofs.tpc ttl 60 60 xfr 9 pgm /bin/false"
TIMEOUT_S = 120.0
LARGE_BYTES = 200_000_000  # some seconds, and at first nothing is told
STRAIGHT = api.CopyOptions(third_party="only")
Pair = tuple[RootServer, RootServer]


@pytest.fixture(scope="module")
def running() -> Iterator[Pair]:
    """The second one reads from the first; what the first reads with fails."""
    with (
        servers_folder() as root,
        root_server(root / "first", FAILS) as first,
        root_server(root / "second", READS) as second,
    ):
        yield first, second


@pytest.fixture
def pair(running: Pair, monkeypatch: pytest.MonkeyPatch) -> Pair:
    monkeypatch.setenv("BEARER_TOKEN", "")
    for server in running:
        for path in server.folder.rglob("*"):
            if path.is_file():
                path.unlink()
    return running


def test_straight(pair: Pair) -> None:
    source, destination = pair
    sizes = {"tree/a": 3_000_001, "tree/below/b": 10, "tree/below/empty": 0}
    for name, size in sizes.items():
        path = source.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(os.urandom(size))
    options = api.CopyOptions(third_party="only", recursive=True)
    report = api.copy(f"{source.url}tree", f"{destination.url}tree", options)
    assert (report.status, report.files.moved) == ("done", 3)
    assert report.checksum["result"] == "verified"
    for name in sizes:
        assert (destination.folder / name).read_bytes() == (source.folder / name).read_bytes()
    host = f"localhost:{destination.port}"
    assert any(f"{host} reads them (pull)" in str(note) for note in report.notes)


def test_a_file_that_is_missing(pair: Pair) -> None:
    source, destination = pair
    ended = mpx_there("copy", "--third-party", "only", f"{source.url}no", f"{destination.url}no")
    refused(ended, 3, "no does not exist")


def test_who_is_stopped_leaves_nothing(pair: Pair) -> None:
    source, destination = pair
    with (source.folder / "large").open("wb") as file:
        file.truncate(LARGE_BYTES)
    stop = threading.Event()

    def ended(progress: api.Progress) -> None:
        if partials(destination.folder):
            stop.set()

    with pytest.raises(Interrupted):
        api.copy(f"{source.url}large", f"{destination.url}large", STRAIGHT, cancel=stop, on_progress=ended)
    assert not [*partials(destination.folder), *destination.folder.glob("large*")]
    assert api.copy(f"{source.url}large", f"{destination.url}large", STRAIGHT).status == "done"
    assert (destination.folder / "large").stat().st_size == LARGE_BYTES


def test_who_is_stopped_stops_what_the_destination_does(pair: Pair, eventually: Callable[..., None]) -> None:
    """The program with which it reads, which would wait for ten minutes."""
    source, _ = pair
    folder = source.folder.parents[1] / "program"
    folder.mkdir()
    folder.chmod(0o777)  # the server works as somebody else
    begun, program = folder / "begun", folder / "reads"
    program.write_text(f"#!/bin/sh\necho $$ > {folder}/new && mv {folder}/new {begun} && exec sleep 600\n")
    program.chmod(0o755)
    (source.folder / "file").write_bytes(b"1")
    stop, ended = threading.Event(), threading.Event()

    def copy() -> None:
        with contextlib.suppress(Interrupted):
            api.copy(f"{source.url}file", f"{destination.url}file", STRAIGHT, cancel=stop)
        ended.set()

    waits = f"ofs.tpc ttl 60 60 xfr 9 pgm {program}"
    with root_server(source.folder.parents[1] / "third", waits) as destination:
        thread = threading.Thread(target=copy)
        thread.start()
        try:
            eventually(lambda: begun.exists() or ended.is_set())
            reads = Path(f"/proc/{int(begun.read_text())}")
            assert reads.exists() and not ended.is_set()
        finally:
            stop.set()
            thread.join()
        eventually(lambda: not reads.exists())


def test_what_has_been_copied_is_forgotten(pair: Pair) -> None:
    source, destination = pair
    (source.folder / "file").write_bytes(os.urandom(100_000))
    location = parse_location(f"{destination.url}copied")
    login = XrootdLogin(location, XrootdOptions(TIMEOUT_S, TIMEOUT_S), BearerTokens())
    name = wire.name("/copied")
    with contextlib.closing(
        XrootdLanes(login).open(LaneOptions(TIMEOUT_S, TIMEOUT_S, lambda: False))
    ) as session:
        asked = extended(wire.COPY, name, wire.text(f"{source.url}file".encode()))
        (reply,) = session.ask([asked], at_once=1, timeout_s=TIMEOUT_S)
        assert is_ok(reply)
        (told,) = session.ask([extended(wire.COPIED, name)], at_once=1)
    assert isinstance(told, Extended) and told.content == wire.u64(0)


@pytest.mark.long
def test_only_straight_where_the_destination_cannot(pair: Pair) -> None:
    destination, source = pair
    (source.folder / "file").write_bytes(b"1")
    ended = mpx_there("copy", "--third-party", "only", f"{source.url}file", f"{destination.url}file")
    refused(ended, 2, "--third-party only is not possible here")


def test_through_this_host_where_the_destination_cannot(pair: Pair) -> None:
    destination, source = pair
    content = os.urandom(100_000)
    (source.folder / "file").write_bytes(content)
    ends = f"{source.url}file", f"{destination.url}file"
    report = api.copy(*ends)
    assert (destination.folder / "file").read_bytes() == content
    assert any("data pass through this host" in str(note) for note in report.notes)
    assert report.checksum["result"] == "verified"


def test_a_folder_that_is_not_ours_is_told_at_once(pair: Pair) -> None:
    """Through this host it would be as forbidden."""
    source, destination = pair
    (source.folder / "file").write_bytes(b"1")
    (destination.folder / "closed").mkdir(exist_ok=True)  # of root, and the server is somebody else
    ended = mpx_there("copy", f"{source.url}file", f"{destination.url}closed/file")
    refused(ended, 4, "cannot store", "permission denied")
    assert "through this host" not in ended.out + ended.err
    assert not [*(destination.folder / "closed").iterdir()]


@contextlib.contextmanager
def small_folder(server: RootServer, **limit: str) -> Iterator[Path]:
    """A folder that has a file system of its own, with little room, while in the `with` block."""
    folder = server.folder / "small"
    folder.mkdir(exist_ok=True)
    options = ",".join(f"{name}={value}" for name, value in limit.items())
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"{options},mode=777", "tmpfs", folder], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)


def test_a_full_destination_is_told_at_once(pair: Pair) -> None:
    """Where no file can be made any more."""
    source, destination = pair
    (source.folder / "file").write_bytes(b"1")
    with small_folder(destination, nr_inodes="1") as folder:
        ended = mpx_there("copy", f"{source.url}file", f"{destination.url}small/file")
        refused(ended, 9, "no space")
        assert "through this host" not in ended.out + ended.err
        assert "says no more" not in ended.err
        assert not [*folder.iterdir()]


def test_a_destination_that_fills_up_is_told(pair: Pair) -> None:
    """XRootD 5.5 says that it has copied the file, and has a part of it."""
    source, destination = pair
    (source.folder / "file").write_bytes(os.urandom(3_000_000))
    with small_folder(destination, size="1m") as folder:
        ended = mpx_there("copy", f"{source.url}file", f"{destination.url}small/file")
        refused(ended, 4, "of 3000000 bytes, as where no space is left")
        assert not [*folder.iterdir()]


def test_names_that_no_server_asks_another_for(pair: Pair) -> None:
    """They, and what follows, pass through this host at once: the servers would wait for a minute."""
    source, destination = pair
    names = ["tree/a", "tree/b&c=d", "tree/z"]
    for name in names:
        (source.folder / name).parent.mkdir(exist_ok=True)
        (source.folder / name).write_bytes(name.encode())
    words = ("copy", "--third-party", "only", f"{source.url}tree/b%26c=d", f"{destination.url}no")
    refused(mpx_there(*words), 2, "--third-party only is not possible here", "b&c=d", "has a &")
    tree = f"{source.url}tree", f"{destination.url}tree"
    words = ("copy", "-r", "--third-party", "only", *tree)
    refused(mpx_there(*words), 2, "--third-party only is not possible here", "b&c=d", "has a &")
    report = api.copy(*tree, api.CopyOptions(recursive=True))
    for name in names:
        assert (destination.folder / name).read_bytes() == name.encode()
    assert any("data pass through this host" in str(note) and "has a &" in str(note) for note in report.notes)
    assert not partials(destination.folder)


def test_names_that_gfal2_cannot_have_asked_for(pair: Pair) -> None:
    find_peer(GFAL)
    source, destination = pair
    (source.folder / "b&c").write_bytes(b"1")
    ends = f"{source.url}b%26c", f"{destination.url}b%26c"
    refused(mpx_there("copy", "--via", "gfal2", *ends), 3, "b&c", "has a &", "copy it without --via gfal2")
    api.copy(f"{source.url}b%26c", f"{destination.url}b%26c")
    assert (destination.folder / "b&c").read_bytes() == b"1"
