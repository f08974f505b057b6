"""Copies between two Globus servers, which send to each other: bytes exact, resumed, never silently wrong."""

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from interop.mpx_process import Copy, assert_clear, copy
from interop.stock_server import StockServer
from interop.trees import failures, names
from mpx_lab.proxy import DelayProxy
from sites import AWKWARD, make

import mpx
from mpx.engine.checksum import SECTION_BYTES
from mpx.errors import DestinationError, IntegrityError, Interrupted, PartialFailure, SourceError, UsageError

pytestmark = pytest.mark.peers
ONLY = mpx.CopyOptions(third_party="only")
MIB = 1024 * 1024
SLOW_BYTES, RATE_BPS = 48 * MIB + 3, 120e6  # so that it takes some seconds


@dataclass(frozen=True)
class Between:
    """Two servers, and their folders as the tests see them."""

    sender: StockServer
    receiver: StockServer

    @property
    def source(self) -> Path:
        return self.sender.root

    @property
    def destination(self) -> Path:
        return self.receiver.root

    def copy(self, name: str, options: mpx.CopyOptions = ONLY, **more: object) -> mpx.Report:
        return mpx.copy(self.sender.url + name, self.receiver.url + name, options, **more)


@contextlib.contextmanager
def between(folder: Path) -> Iterator[Between]:
    roots = folder / "from", folder / "to"
    for root in roots:
        root.mkdir()
    with StockServer(roots[0]) as sender, StockServer(roots[1]) as receiver:
        yield Between(sender, receiver)


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[Between]:
    with between(tmp_path) as made:
        yield made


def assert_same_tree(one: Path, other: Path) -> None:
    """Names, bytes, modes, and times in whole seconds are the same."""
    assert names(one) == names(other)
    for path in (one, *one.rglob("*")):
        twin = other / path.relative_to(one)
        about, there = path.stat(), twin.stat()
        assert about.st_mode == there.st_mode, path
        assert int(about.st_mtime) == int(there.st_mtime), path
        assert path.is_dir() or path.read_bytes() == twin.read_bytes(), path


@contextlib.contextmanager
def slowly(server: StockServer) -> Iterator[str]:
    """The URL of a server as it is reached over a slow path, by us and by other servers."""
    with DelayProxy((server.host, server.port), rtt_s=0.01, total_rate_bps=RATE_BPS) as proxy:
        yield server.url.replace(f":{server.port}/", f":{proxy.port}/")


@pytest.mark.parametrize("streams", [None, 1, 3, 11])
def test_files_of_all_sizes(servers: Between, streams: int | None) -> None:
    sizes = (0, 1, 255, 64 * 1024 + 1, 4 * MIB, 4 * MIB + 1, 33_333_331, SECTION_BYTES + 1)
    for size in sizes:
        make(servers.source / f"{size}", size)
        report = servers.copy(f"{size}", replace(ONLY, streams=streams))
        assert (servers.destination / f"{size}").read_bytes() == (servers.source / f"{size}").read_bytes()
        assert (report.status, report.files.moved, report.bytes.moved) == ("done", 1, size)
        algorithm = "sha256" if size <= MIB else "adler32"
        assert report.checksum["bytes"] == ({algorithm: size} if size else {})
    assert sorted(os.listdir(servers.destination)) == sorted(map(str, sizes))


def test_a_tree_with_times_modes_links_and_odd_names(servers: Between) -> None:
    top = servers.source / "tree"
    for i, name in enumerate(AWKWARD):
        make(top / "sub" / name, i * 1000)
        os.utime(top / "sub" / name, (1e9 + i, 1e9 + i))
    make(top / "large", 20 * MIB)
    (top / "empty").mkdir()
    (top / "large").chmod(0o604)
    report = servers.copy("tree", replace(ONLY, recursive=True))
    assert (report.files.moved, report.files.failed) == (len(AWKWARD) + 1, 0)
    assert_same_tree(top, servers.destination / "tree")
    again = servers.copy("tree", replace(ONLY, recursive=True))
    assert (again.files.skipped, again.bytes.moved) == (len(AWKWARD) + 1, 0)


def test_many_small_files_run_back_to_back_on_connections_that_stay(servers: Between) -> None:
    for i in range(400):
        make(servers.source / "many" / f"{i}", 100 + i)
    report = servers.copy("many", replace(ONLY, recursive=True, streams=2))
    assert (report.files.moved, report.checksum["result"]) == (400, "verified")
    log = servers.receiver.log_path.read_text()
    assert log.count("reusing existing data connection") > 350
    assert_same_tree(servers.source / "many", servers.destination / "many")


def test_what_cannot_be_read_or_written_fails_alone(servers: Between) -> None:
    for i in range(20):
        make(servers.source / "some" / f"{i}", 1000 + i)
    (servers.source / "some/7").chmod(0)  # of another user, whom the server is not
    (servers.destination / "some/9").mkdir(parents=True)
    (servers.destination / "some").chmod(0o777)
    with pytest.raises(PartialFailure) as failed:
        servers.copy("some", replace(ONLY, recursive=True))
    report = failed.value.report
    assert report.files.moved == 18
    assert sorted(failures(failed)) == ["7", "9"]
    for i in set(range(20)) - {7, 9}:
        name = f"some/{i}"
        assert (servers.destination / name).read_bytes() == (servers.source / name).read_bytes()


def test_one_that_does_not_exist_or_may_not_be_written(servers: Between) -> None:
    with pytest.raises(SourceError, match="does not exist"):
        servers.copy("nothing")
    make(servers.source / "file", 100)
    (servers.destination / "closed").mkdir()
    (servers.destination / "closed").chmod(0o555)
    with pytest.raises(DestinationError, match="ermission"):
        mpx.copy(servers.sender.url + "file", servers.receiver.url + "closed/file", ONLY)


def test_a_stopped_copy_goes_on(servers: Between) -> None:
    make(servers.source / "file", SLOW_BYTES)
    cancel = threading.Event()

    def stop(progress: mpx.Progress) -> None:
        if progress.bytes_done > SLOW_BYTES // 3:
            cancel.set()

    with slowly(servers.receiver) as url:
        with pytest.raises(Interrupted):
            mpx.copy(servers.sender.url + "file", url + "file", ONLY, on_progress=stop, cancel=cancel)
        assert not (servers.destination / "file").exists()
        report = mpx.copy(servers.sender.url + "file", url + "file", ONLY)
    assert (servers.destination / "file").read_bytes() == (servers.source / "file").read_bytes()
    assert os.listdir(servers.destination) == ["file"]
    assert report.bytes.resumed + report.bytes.moved == SLOW_BYTES
    assert report.bytes.resumed > SLOW_BYTES // 4


@pytest.mark.parametrize("third_party", ["only", "never"])
@pytest.mark.parametrize("victim", ["mpx", "sender", "receiver"])
def test_a_kill_in_the_middle(
    tmp_path: Path, servers: Between, eventually, victim: str, third_party: str
) -> None:
    content = make(servers.source / "file", SLOW_BYTES).read_bytes()
    with slowly(servers.receiver) as url:
        names = servers.sender.url + "file", url + "file"
        first = Copy(tmp_path, *names, "--third-party", third_party, "--retries", "1", "--timeout", "5s")

        def partial_bytes() -> int:
            return sum(each.stat().st_blocks * 512 for each in servers.destination.glob(".*.part"))

        eventually(lambda: partial_bytes() > SLOW_BYTES // 2 or first.process.poll() is not None)
        if victim == "mpx":
            first.kill()
        else:
            getattr(servers, victim).kill()
        done = first.end()
        assert not (servers.destination / "file").exists()
        if victim == "mpx":
            assert done.code == -9
        else:
            assert_clear(done, 6)
            getattr(servers, victim).start()
        again = copy(tmp_path, *names, "--third-party", third_party)
    assert again.code == 0, again.stderr
    assert (servers.destination / "file").read_bytes() == content
    assert os.listdir(servers.destination) == ["file"]
    assert again.resumed_bytes + again.moved_bytes == SLOW_BYTES
    assert again.resumed_bytes > SLOW_BYTES // 4


def test_a_server_that_is_started_anew_is_waited_for(servers: Between) -> None:
    content = make(servers.source / "file", SLOW_BYTES).read_bytes()
    killed = threading.Event()

    def kill(progress: mpx.Progress) -> None:
        if progress.bytes_done > SLOW_BYTES // 3 and not killed.is_set():
            killed.set()
            servers.sender.kill()
            servers.sender.start()

    with slowly(servers.receiver) as url:
        report = mpx.copy(servers.sender.url + "file", url + "file", ONLY, on_progress=kill)
    assert killed.is_set()
    assert report.status == "done"
    assert (servers.destination / "file").read_bytes() == content


def test_within_one_server(servers: Between) -> None:
    make(servers.source / "file", 9 * MIB)
    mpx.copy(servers.sender.url + "file", servers.sender.url + "other", ONLY)
    assert (servers.source / "other").read_bytes() == (servers.source / "file").read_bytes()


def test_nothing_is_copied_onto_or_into_itself(servers: Between) -> None:
    make(servers.source / "tree/file", 10)
    url = servers.sender.url
    for source, target in (("tree", "tree"), ("tree", "tree/sub"), ("tree/file", "tree/file")):
        with pytest.raises(UsageError, match="itself or inside it"):
            mpx.copy(url + source, url + target, replace(ONLY, recursive=True))


def test_files_of_two_servers_are_never_the_same_one(servers: Between) -> None:
    """Both tell device and inode, which may be equal by chance: here both serve one folder."""
    make(servers.source / "file", 10)
    with StockServer(servers.source) as twin, pytest.raises(SourceError) as told:
        mpx.copy(servers.sender.url + "missing", twin.url + "file", ONLY)
    assert "missing" in str(told.value)
    with StockServer(servers.source) as twin:
        report = mpx.copy(servers.sender.url + "file", twin.url + "file", replace(ONLY, overwrite="always"))
    assert report.files.moved == 1


@pytest.mark.parametrize("sizes", [(40 * MIB,), (5 * MIB, 6 * MIB, 100)])
def test_without_checksums(servers: Between, sizes: tuple[int, ...]) -> None:
    for size in sizes:
        make(servers.source / "some" / str(size), size)
    report = servers.copy("some", replace(ONLY, recursive=True, checksum="none", streams=6))
    assert report.checksum["result"] == "unverified"
    assert_same_tree(servers.source / "some", servers.destination / "some")


def test_a_server_that_stalls_is_left(servers: Between) -> None:
    """Its process stands still: no marker comes, and another session goes on."""
    content = make(servers.source / "file", SLOW_BYTES).read_bytes()
    stopped: list[int] = []

    def stop(progress: mpx.Progress) -> None:
        if progress.bytes_done > SLOW_BYTES // 3 and not stopped:
            stopped.extend(servers.sender.session_pids)
            for pid in stopped:
                os.kill(pid, signal.SIGSTOP)

    with slowly(servers.receiver) as url:
        options = replace(ONLY, timeout_s=2.0, retries=3, max_sessions=1)
        report = mpx.copy(servers.sender.url + "file", url + "file", options, on_progress=stop)
    for pid in stopped:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    assert stopped
    assert report.status == "done"
    assert (servers.destination / "file").read_bytes() == content


@pytest.mark.parametrize("most", [(1, 1), (1, 2), (2, 1)])
@pytest.mark.parametrize("third_party", ["only", "never"])
def test_servers_that_admit_few_sessions(tmp_path: Path, third_party: str, most: tuple[int, int]) -> None:
    """Listing, moving and verifying each need one with both, and take turns."""
    roots = tmp_path / "from", tmp_path / "to"
    for root in roots:
        root.mkdir()
    for i in range(12):
        make(roots[0] / "tree" / f"{i}", i * 1000)
    make(roots[0] / "tree/large", 20 * MIB)
    limits = [("-connections-max", str(count)) for count in most]
    with (
        StockServer(roots[0], arguments=limits[0]) as sender,
        StockServer(roots[1], arguments=limits[1]) as receiver,
    ):
        options = mpx.CopyOptions(recursive=True, third_party=third_party)
        report = mpx.copy(sender.url + "tree", receiver.url + "tree", options)
    assert (report.files.moved, report.checksum["result"]) == (13, "verified")
    assert_same_tree(roots[0] / "tree", roots[1] / "tree")


def test_a_dry_run_copies_nothing(servers: Between) -> None:
    make(servers.source / "tree/file", 10)
    lines: list[str] = []
    servers.copy("tree", replace(ONLY, recursive=True, dry_run=True), on_rehearsed=lines.append)
    assert len(lines) == 2
    assert os.listdir(servers.destination) == []


def test_a_source_that_shrinks_is_not_taken_for_whole(servers: Between) -> None:
    source = make(servers.source / "file", SLOW_BYTES)
    shrunk = threading.Event()

    def shrink(progress: mpx.Progress) -> None:
        if progress.bytes_done and not shrunk.is_set():
            shrunk.set()
            os.truncate(source, 10 * MIB)

    with slowly(servers.receiver) as url, pytest.raises(IntegrityError, match="changed while it was copied"):
        mpx.copy(servers.sender.url + "file", url + "file", replace(ONLY, retries=2), on_progress=shrink)
    assert not (servers.destination / "file").exists()


@pytest.mark.parametrize("is_known", [True, False], ids=["known", "unknown"])
def test_a_stale_partial_file_that_is_longer_leaves_nothing_behind(
    tmp_path: Path, servers: Between, monkeypatch: pytest.MonkeyPatch, is_known: bool
) -> None:
    content = make(servers.source / "file", SLOW_BYTES).read_bytes()
    with slowly(servers.receiver) as url:
        names = servers.sender.url + "file", url + "file"
        cancel = threading.Event()
        with pytest.raises(Interrupted):
            mpx.copy(*names, ONLY, on_progress=lambda p: p.bytes_done and cancel.set(), cancel=cancel)
        (partial,) = servers.destination.glob(".*.part")
        with partial.open("r+b") as opened:
            opened.truncate(2 * SLOW_BYTES)
        if not is_known:
            monkeypatch.setenv("MPX_STATE_DIR", str(tmp_path / "another"))
        report = mpx.copy(*names, ONLY)
    assert report.bytes.resumed == 0
    assert (servers.destination / "file").read_bytes() == content


@pytest.mark.parametrize(
    "given",
    [{"rate_bps": 1e8}, {"policy": "scavenger"}, {"block_size_bytes": 65536}, {"controller": "http://a:1"}],
    ids=str,
)
def test_what_servers_cannot_be_told_is_refused(servers: Between, given: dict[str, object]) -> None:
    make(servers.source / "file", 10)
    with pytest.raises(UsageError, match="not possible here"):
        servers.copy("file", replace(ONLY, **given, explicit=frozenset(given)))
    assert os.listdir(servers.destination) == []


def test_only_is_for_two_servers(tmp_path: Path, servers: Between) -> None:
    make(servers.source / "file", 10)
    with pytest.raises(UsageError, match="--third-party only"):
        mpx.copy(servers.sender.url + "file", str(tmp_path / "file"), ONLY)
