"""Stock GridFTP over four paths: globus-gridftp-server and globus-url-copy as Debian has them."""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import mpx_controller.stock
import pytest
from far_controller import reached_from
from install_peers import find_peer, needs_library
from mpx_command import command
from mpx_lab.lab import Lab
from mpx_lab.plan import Controller
from mpx_lab.stock_server import stock_server
from test_controller import BETWEEN, Eventually, Make, Running, controller, ready, sink

SIZE = 40_000_000
SHARE = 0.1  # of the file, on each of four paths at least
NETMGR = Path(mpx_controller.stock.__file__).parent / "netmgr"

__all__ = ["sink"]  # a fixture


class Site:
    """A lab with a controller, and a folder that everybody may use with a file in it."""

    def __init__(self, lab: Lab, running: Running, url: str, folder: Path) -> None:
        self.lab, self.running, self.url, self.folder = lab, running, url, folder
        self.content = os.urandom(SIZE)
        self.file("here").write_bytes(self.content)

    def file(self, name: str) -> Path:
        return self.folder / name

    def log(self) -> str:
        return self.file("netmgr.log").read_text() if self.file("netmgr.log").exists() else ""

    @contextmanager
    def server(self, *, module: bool) -> Iterator[str]:
        """A stock server on dst, with the module or without; yields the URL of the folder."""
        options, environment = [], {}
        if module:
            needs_library("libglobus_xio_net_manager_driver.so")
            options = ["-xnetmgr", "manager=python;pymod=mpx_netmgr;"]
            environment = {
                "PYTHONPATH": str(self.file("netmgr")),
                "MPX_CONTROLLER": self.url,
                "MPX_NETMGR_LOG": str(self.file("netmgr.log")),
            }
        with stock_server(self.lab.host("dst"), self.folder, options, environment) as url:
            yield f"{url}{self.folder}"

    def copies(self, source: str, target: str, *before: object) -> list[float]:
        """Copy, on src; return the share of the file that each path has carried, in either direction."""
        were = carried(self.lab)
        words = [*map(os.fsdecode, before), "globus-url-copy", "-p", "4", source, target]  # type: ignore[call-overload]
        done = self.lab.host("src").run(words, capture_output=True, text=True, timeout=100)
        assert done.returncode == 0, done.stderr
        assert self.file("there").read_bytes() == self.content
        self.file("there").unlink()
        return [(now - was) / SIZE for was, now in zip(were, carried(self.lab), strict=True)]

    def up(self, url: str, *before: object) -> list[float]:
        return self.copies(f"file://{self.file('here')}", f"{url}/there", *before)

    def down(self, url: str, *before: object) -> list[float]:
        return self.copies(f"{url}/here", f"file://{self.file('there')}", *before)

    def run(self, direction: str, paths: int = 4) -> list[str | bytes]:
        """`mpx controller run` for copies in a direction."""
        src, dst = (self.lab.host(name).addresses[0] for name in ("src", "dst"))
        ends = (src, dst) if direction == "up" else (dst, src)
        return command("controller", "run", "--controller", self.url, *ends, paths)


def carried(lab: Lab) -> list[int]:
    stats = [lab.link(name).stats() for name in BETWEEN]
    return [each.a_to_b.delivered.bytes + each.b_to_a.delivered.bytes for each in stats]


@pytest.fixture
def site(
    make_lab: Make, sink: Callable[[Lab], None], eventually: Eventually, tmp_path: Path
) -> Iterator[Site]:
    find_peer("globus-gridftp-server")
    find_peer("globus-url-copy")
    with ExitStack() as ended:
        folder = Path(ended.enter_context(tempfile.TemporaryDirectory()))
        folder.chmod(0o777)  # the server is nobody
        shutil.copytree(NETMGR, folder / "netmgr", ignore=shutil.ignore_patterns("__pycache__"))
        running = ended.enter_context(controller(tmp_path / "state.json"))
        lab = make_lab("thesis-a", controller=Controller("127.0.0.1", running.port))
        sink(lab)
        ready(lab, running, eventually, tmp_path)
        port = int(running.urls["rest"].rsplit(":", 1)[1])
        urls = [ended.enter_context(reached_from(lab.host("dst"), port))]
        here = int(urls[0].rsplit(":", 1)[1])
        ended.enter_context(reached_from(lab.host("src"), port, here))
        yield Site(lab, running, urls[0], folder)


def test_a_server_with_the_module(site: Site, eventually: Eventually) -> None:
    with site.server(module=True) as url:
        assert min(site.up(url)) > SHARE
        assert min(site.down(url)) > SHARE
        eventually(lambda: site.running.get("path-sets") == [])  # sessions give them back
        assert "4 paths" in site.log() and "not steered" not in site.log()

        site.running.process.kill()
        site.running.process.wait()
        assert max(site.up(url)) > 0.9
        assert max(site.down(url)) > 0.9
        assert site.log().count("not steered") == 2  # of each session once


def test_a_command_around_the_client(site: Site) -> None:
    with site.server(module=False) as url:
        assert max(site.up(url)) > 0.9
        assert min(site.up(url, *site.run("up"))) > SHARE
        assert min(site.down(url, *site.run("down"))) > SHARE
        assert site.running.get("path-sets") == []
        one = site.up(url, *site.run("up", 1))
        assert max(one) > 0.9

        site.running.process.kill()
        site.running.process.wait()
        assert max(site.up(url, *site.run("up"))) > 0.9


def test_both_at_once(site: Site) -> None:
    """Each stream is the path set's that has it first, and neither knows how many the other has."""
    with site.server(module=True) as url:
        assert sorted(site.up(url, *site.run("up")))[-2] > SHARE
        assert "not steered" not in site.log()
