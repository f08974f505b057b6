"""SIGKILL of mpx and of servers on the way, and what is left of copies that were interrupted."""

import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import unquote

import pytest
from interop.mpx_process import Copy, copy
from mpx_command import mpx
from random_bytes import random_bytes
from sites import Site, partials
from web.servers.apache import apache_site
from web.servers.nginx import nginx_site
from web.servers.site import WebSite
from web.servers.wsgi_dav import wsgidav_site
from web.shared_servers import SharedServers

import mpx as api
from mpx.errors import Interrupted

SIZE, SHORT = 24_000_007, 6_000_001
RATE = ("--rate", "80Mbit/s")  # so the whole takes 2.4 s
KEPT = 0.9 if "MPX_KILLS" in os.environ else 0.5  # beside other tests what has arrived is confirmed later
SLOW = api.CopyOptions(rate_bps=40e6)
MakeSite = Callable[..., contextlib.AbstractContextManager[WebSite]]
SERVERS: dict[str, MakeSite] = {"nginx": nginx_site, "apache": apache_site, "wsgidav": wsgidav_site}


@pytest.fixture(scope="module")
def content() -> bytes:
    return random_bytes(SIZE)


def on_disk(folder: Path, *but: Path) -> int:
    """Return how many bytes files below a folder take on disk, but those."""
    sizes = []
    for path in folder.rglob("*"):
        with contextlib.suppress(FileNotFoundError):  # it was removed meanwhile
            if path.is_file() and path not in but:
                sizes.append(path.stat().st_blocks * 512)
    return sum(sizes)


def test_mpx_is_killed_in_a_download(
    tmp_path: Path, eventually: Callable[..., None], content: bytes, web_servers: SharedServers
) -> None:
    with web_servers.site("nginx in the clear") as site:
        site.write("file", content)
        first = Copy(tmp_path, site.url_of("file"), tmp_path / "down", *RATE)
        eventually(lambda: on_disk(tmp_path) > 0.8 * SIZE or first.process.poll() is not None)
        first.kill()
        arrived = min(SIZE, on_disk(tmp_path))
        assert first.end().code == -9
        assert not (tmp_path / "down").exists()
        again = copy(tmp_path, site.url_of("file"), tmp_path / "down")
    assert (again.code, again.stderr) == (0, "")
    assert (tmp_path / "down").read_bytes() == content
    assert partials(tmp_path) == []
    assert again.resumed_bytes + again.moved_bytes == SIZE
    assert again.resumed_bytes > KEPT * arrived


@pytest.fixture(params=SERVERS)
def own_server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[WebSite]:
    """A server that the test may kill."""
    (tmp_path / "served").mkdir()
    with SERVERS[request.param](tmp_path / "served") as server:
        yield server


@pytest.mark.parametrize("upload", [False, True], ids=["down", "up"])
def test_a_server_is_killed_and_comes_back(
    own_server: WebSite, upload: bool, here: Path, content: bytes
) -> None:
    killed = threading.Event()
    near, far = here / "near", own_server.folder / "far"
    given, wanted = (near, far) if upload else (far, near)
    given.write_bytes(content[:SHORT])

    def kill(progress: api.Progress) -> None:
        if progress.bytes_done and not killed.is_set():
            killed.set()
            own_server.kill()
            own_server.start()

    ends = (str(near), own_server.url + "far") if upload else (own_server.url + "far", str(near))
    report = api.copy(*ends, SLOW, on_progress=kill)
    assert killed.is_set()
    assert report.status == "done"
    assert wanted.read_bytes() == content[:SHORT]
    assert partials(wanted.parent) == []


def test_mpx_is_killed_in_an_upload(
    tmp_path: Path, eventually: Callable[..., None], own_server: WebSite, content: bytes
) -> None:
    """What is left has not the final name; the next copy sends the rest, or else the whole file."""
    file, url = tmp_path / "file", own_server.url + "up"
    file.write_bytes(content)
    first = Copy(tmp_path, file, url, *RATE)
    eventually(lambda: on_disk(tmp_path, file) > 0.5 * SIZE or first.process.poll() is not None)
    first.kill()
    assert first.end().code == -9
    arrived = min(SIZE, on_disk(own_server.folder))
    assert not (own_server.folder / "up").exists()
    again = copy(tmp_path, file, url)
    assert again.code == 0, again.stderr
    assert again.moved_bytes + again.resumed_bytes == SIZE
    assert again.resumed_bytes >= (KEPT * arrived if own_server.server.command[0].endswith("apache2") else 0)
    assert (own_server.folder / "up").read_bytes() == content
    assert partials(own_server.folder) == []


@pytest.mark.parametrize("upload", [False, True], ids=["down", "up"])
def test_what_was_interrupted_is_discarded(
    web_servers: SharedServers, upload: bool, here: Path, content: bytes
) -> None:
    with web_servers.site("wsgidav") as site:
        near, far = here / "near", site.folder / "far"
        (near if upload else far).write_bytes(content)
        _interrupt(site, near, upload=upload)
        folder = far.parent if upload else here
        assert len(partials(folder)) == 1
        shown = mpx("unfinished")
        assert f"{unquote(site.url)}far" in shown.out
        discarded = mpx("unfinished", "--discard")
        assert discarded.code == 0, discarded.err
        assert partials(folder) == []
        assert not (near if not upload else far).exists()
        assert mpx("unfinished").out.count("far") == 0


def _interrupt(site: Site, near: Path, *, upload: bool) -> None:
    cancel = threading.Event()

    def stop(progress: api.Progress) -> None:
        if progress.bytes_done:
            cancel.set()

    ends = (str(near), site.url_of("far")) if upload else (site.url_of("far"), str(near))
    with contextlib.suppress(Interrupted):
        api.copy(*ends, SLOW, on_progress=stop, cancel=cancel)


def test_a_server_that_takes_few_connections(tmp_path: Path, here: Path) -> None:
    (tmp_path / "served").mkdir()
    with nginx_site(tmp_path / "served", connections=3) as server:
        for i in range(12):
            (server.folder / str(i)).write_bytes(random_bytes(1_000_000 + i))
        options = api.CopyOptions(streams=8, rate_bps=100e6)
        names = [f"{server.url}{i}" for i in range(12)]
        report = api.copy(names, f"{here}/", options)
        assert (report.status, report.files.moved) == ("done", 12)
        for i in range(12):
            assert (here / str(i)).read_bytes() == (server.folder / str(i)).read_bytes()
