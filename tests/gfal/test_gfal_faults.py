"""What goes wrong with gfal2: crashes, stops, kills, what is not installed, and what is not what it was."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from gfal.slow_path import SlowPath
from mpx_command import copied, refused, running
from sites import Site, make
from web.servers.scripted import scripted_site
from web.web_command import mpx_there

import mpx as api
from mpx.endpoints.gfal.process import PYTHON
from mpx.errors import ConnectionLost, Interrupted

Via = Callable[..., api.Report]
Open = Callable[[str], contextlib.AbstractContextManager[Site]]
SLOW_BPS, SLOW_BYTES = 2e6, 12_000_001  # 48 s: what is stopped is under way still, however busy we are
WAYS = pytest.mark.parametrize("upload", [True, False], ids=["up", "down"])
BINDING = "/usr/lib/python3/dist-packages/gfal2.*.so"


@pytest.fixture
def apache(open_server: Open) -> Iterator[Site]:
    with open_server("apache") as site:
        yield site


@pytest.fixture
def path(apache: Site) -> Iterator[SlowPath]:
    """A slow path to that server."""
    with SlowPath(int(apache.url.split(":")[2].split("/")[0]), SLOW_BPS) as path:
        yield path


@pytest.fixture
def slow(apache: Site, path: SlowPath) -> Site:
    """That server at the end of that path."""
    return replace(apache, url=path.url(apache.url))


def with_gfal(pid: int) -> list[int]:
    """The processes of a process that have gfal2."""
    found = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has ended
            for each in (task / "children").read_text().split():
                if b"gfal/served/program.py" in Path(f"/proc/{each}/cmdline").read_bytes():
                    found.append(int(each))
    return found


def ends(here: Path, site: Site, content: bytes, *, upload: bool) -> tuple[str, str, Path]:
    """Source, destination, and where that is."""
    if upload:
        (here.parent / "file").write_bytes(content)
        return f"{here.parent}/file", site.url_of("to"), site.folder / "to"
    site.write("from/file", content)
    return site.url_of("from/file"), f"{here}/to", here / "to"


@WAYS
def test_a_process_that_crashes_harms_no_copy(
    here: Path, slow: Site, path: SlowPath, via: Via, *, upload: bool
) -> None:
    content = os.urandom(SLOW_BYTES)
    source, destination, there = ends(here, slow, content, upload=upload)
    crashed: list[int] = []

    def crash(progress: api.Progress) -> None:
        if progress.bytes_done and not crashed:
            crashed.extend(with_gfal(os.getpid()))
            for pid in crashed:
                os.kill(pid, signal.SIGSEGV)
            path.hurry()

    report = via(source, destination, more={"on_progress": crash})
    assert crashed and report.status == "done"
    assert there.read_bytes() == content
    assert any("gfal2 crashed (SIGSEGV)" in note for note in report.notes)


def test_a_crash_is_one_line(eventually: Callable[..., None]) -> None:
    """While a server that says nothing is asked."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"dav://localhost:{silent.getsockname()[1]}/"
        with running("list", "--via", "gfal2", url) as listing:
            connection, _ = silent.accept()
            with connection:
                (pid,) = with_gfal(listing.pid)
                os.kill(pid, signal.SIGSEGV)
                _, said = listing.communicate(timeout=60)
    assert listing.poll() == 6
    assert said.decode() == "mpx: localhost: gfal2 crashed (SIGSEGV)\n"


@WAYS
def test_a_stopped_copy_leaves_nothing(
    here: Path, slow: Site, path: SlowPath, via: Via, eventually: Callable[..., None], *, upload: bool
) -> None:
    content = os.urandom(SLOW_BYTES)
    source, destination, there = ends(here, slow, content, upload=upload)
    cancel = threading.Event()

    def stop(progress: api.Progress) -> None:
        if progress.bytes_done:
            cancel.set()

    with pytest.raises(Interrupted):
        via(source, destination, more={"on_progress": stop, "cancel": cancel})
    eventually(lambda: list(there.parent.iterdir()) == [])  # Apache has files of its own for a moment
    path.hurry()
    assert via(source, destination).status == "done"
    assert there.read_bytes() == content


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals(here: Path, slow: Site, number: signal.Signals, eventually: Callable[..., None]) -> None:
    slow.write("file", os.urandom(SLOW_BYTES))
    with running("copy", "--via", "gfal2", slow.url_of("file"), here / "to") as copy:
        eventually(lambda: list(here.iterdir()))
        copy.send_signal(number)
        _, said = copy.communicate(timeout=60)
        assert copy.poll() == {signal.SIGINT: 130, signal.SIGTERM: 143}[number], said
    assert list(here.iterdir()) == []


@WAYS
def test_a_killed_copy(
    here: Path, slow: Site, path: SlowPath, eventually: Callable[..., None], *, upload: bool
) -> None:
    content = os.urandom(SLOW_BYTES)
    source, destination, there = ends(here, slow, content, upload=upload)
    with running("copy", "--via", "gfal2", source, destination) as copy:
        eventually(lambda: list(there.parent.iterdir()))
        pids = with_gfal(copy.pid)
        copy.kill()
    assert pids
    eventually(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids))
    assert not there.exists()
    path.hurry()
    copied(mpx_there("copy", "-q", "--via", "gfal2", source, destination))
    assert there.read_bytes() == content
    eventually(lambda: list(there.parent.iterdir()) == [there])


def test_a_server_that_is_gone(here: Path, closed_port: int, via: Via) -> None:
    with pytest.raises(ConnectionLost) as caught:
        via(f"dav://localhost:{closed_port}/file", here / "to", retries=0)
    assert "localhost" in str(caught.value)
    assert list(here.iterdir()) == []


def test_a_path_that_stalls(here: Path, slow: Site, path: SlowPath, via: Via) -> None:
    """A server that is silent from some point on."""
    slow.write("file", os.urandom(SLOW_BYTES))

    def stall(progress: api.Progress) -> None:
        if progress.bytes_done:
            path.fall_silent()

    with pytest.raises(api.MpxError) as caught:
        via(slow.url_of("file"), here / "to", timeout_s=2.0, retries=0, more={"on_progress": stall})
    assert caught.value.exit_code in (6, 7)  # gfal2 says so itself, or does not
    assert not (here / "to").exists()


def test_a_checksum_that_differs(here: Path, via: Via) -> None:
    content = os.urandom(100_001)
    wrong = f"{zlib.adler32(content) ^ 1:08x}"
    with scripted_site(lambda *_: {"Digest": f"adler32={wrong}"}) as site:
        site.files["/file"] = content
        with pytest.raises(api.MpxError, match="adler32") as caught:
            via(f"{site.url}file", here / "to", checksum="adler32")
    assert caught.value.exit_code == 8
    assert list(here.iterdir()) == []


def test_gfal2_is_not_installed(here: Path) -> None:
    """Its binding is hidden in a mount namespace, and then the system's Python."""
    if os.geteuid() != 0:
        pytest.skip("root alone hides files")
    hide = f'mount --bind /dev/null $(echo {BINDING}) && exec "$@"'
    no_python = f'mount --bind /dev/null $(readlink -f {PYTHON}) && exec "$@"'
    make(here / "file", 1)
    for script, words in (
        (hide, "is not installed for /usr/bin/python3"),
        (no_python, "needs /usr/bin/python3"),
    ):
        mpx = [sys.executable, "-m", "mpx", "copy", str(here / "file"), "srm://localhost/name"]
        ended = subprocess.run(
            ["unshare", "-m", "sh", "-c", script, "sh", *mpx],
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        assert ended.returncode == 2, ended.stderr
        assert words in ended.stderr and "apt-get install python3-gfal2" in ended.stderr


def test_a_pipe_is_not_copied(here: Path, open_server: Open) -> None:
    os.mkfifo(here / "pipe")
    with open_server("nginx") as site:
        refused(mpx_there("copy", "--via", "gfal2", here / "pipe", site.url_of("to")), 3, "regular file")


def test_a_line_feed_in_a_name(here: Path, open_server: Open) -> None:
    """XRootD would store it, and list its folder no more."""
    make(here / "several\nlines", 1)
    with open_server("root") as site:
        ended = mpx_there("copy", "--via", "gfal2", here / "several\nlines", site.url)
        refused(ended, 2, "a line feed")
        assert list(site.folder.iterdir()) == []
