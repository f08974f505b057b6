"""Stock GridFTP over four paths: globus-gridftp-server and globus-url-copy as Debian has them."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import mpx_controller.stock
import pytest
from install_peers import find_peer, needs_library
from many_paths import ManyPaths, carried, many_paths
from mpx_lab.stock_server import stock_server
from mpx_lab.topologies import named
from random_bytes import random_bytes

LINKS = ("s1-s2", "s1-s3", "s1-s4", "s1-s5")  # each is one of four paths
SIZES = {"here": 8_000_000, "small": 2_000_000}  # of the files; the small one is for one path alone
SCALE = 0.05  # 5 Mbit/s on each of the four paths: a busy machine fills them too, so all are needed
# Of the file at least: the path was used. The tools deal blocks of 256 kB to whoever is first.
SHARE = 0.03
NETMGR = Path(mpx_controller.stock.__file__).parent / "netmgr"


class Site:
    """A lab with a controller, and a folder that everybody may use with a file in it."""

    def __init__(self, lab: ManyPaths, folder: Path) -> None:
        self.lab, self.folder = lab, folder
        for name, size in SIZES.items():
            self.file(name).write_bytes(random_bytes(size))

    def file(self, name: str) -> Path:
        return self.folder / name

    def kill_controller(self) -> None:
        self.lab.process.kill()
        self.lab.process.wait()

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
                "MPX_CONTROLLER": self.lab.url,
                "MPX_NETMGR_LOG": str(self.file("netmgr.log")),
            }
        with stock_server(self.lab.lab.host("dst"), self.folder, options, environment) as url:
            yield f"{url}{self.folder}"

    def up(self, url: str, before: list[str] | None = None, name: str = "here") -> list[float]:
        return self.copies(name, f"file://{self.file(name)}", f"{url}/there", before or [])

    def down(self, url: str, before: list[str] | None = None, name: str = "here") -> list[float]:
        return self.copies(name, f"{url}/{name}", f"file://{self.file('there')}", before or [])

    def copies(self, name: str, source: str, target: str, before: list[str]) -> list[float]:
        """Copy a file, on src; return the share of it that each path has carried."""
        lab = self.lab.lab
        were = carried(lab, LINKS)
        words = [*before, "globus-url-copy", "-p", "4", source, target]
        done = lab.host("src").run(words, capture_output=True, text=True, timeout=100)
        assert done.returncode == 0, done.stderr
        assert self.file("there").read_bytes() == self.file(name).read_bytes()
        self.file("there").unlink()
        return [(now - was) / SIZES[name] for was, now in zip(were, carried(lab, LINKS), strict=True)]

    def run_up(self, paths: int = 4) -> list[str]:
        return self.lab.around(*self.lab.addresses, paths)

    def run_down(self) -> list[str]:
        return self.lab.around(*reversed(self.lab.addresses), 4)


@pytest.fixture
def site(lab_id: str, tmp_path: Path) -> Iterator[Site]:
    find_peer("globus-gridftp-server")
    find_peer("globus-url-copy")
    folder = tmp_path / "site"
    folder.mkdir()
    folder.chmod(0o777)  # the server is nobody
    shutil.copytree(NETMGR, folder / "netmgr", ignore=shutil.ignore_patterns("__pycache__"))
    with many_paths(named("thesis-a").scaled(SCALE), lab_id, tmp_path) as lab:
        yield Site(lab, folder)


def test_a_server_with_the_module(site: Site, eventually: Callable[..., None]) -> None:
    with site.server(module=True) as url:
        assert min(site.up(url)) > SHARE
        assert min(site.down(url)) > SHARE
        eventually(lambda: site.lab.ask("GET", "path-sets") == [])  # sessions give them back
        assert "4 paths" in site.log() and "not steered" not in site.log()

        site.kill_controller()
        assert max(site.up(url, name="small")) > 0.9
        assert max(site.down(url, name="small")) > 0.9
        assert site.log().count("not steered") == 2  # of each session once


def test_a_command_around_the_client(site: Site) -> None:
    with site.server(module=False) as url:
        assert max(site.up(url, name="small")) > 0.9
        assert min(site.up(url, site.run_up())) > SHARE
        assert min(site.down(url, site.run_down())) > SHARE
        assert site.lab.ask("GET", "path-sets") == []
        assert max(site.up(url, site.run_up(1), "small")) > 0.9

        site.kill_controller()
        assert max(site.up(url, site.run_up(), "small")) > 0.9


def test_both_at_once(site: Site) -> None:
    """Each stream is the path set's that has it first, and neither knows how many the other has."""
    with site.server(module=True) as url:
        assert sorted(site.up(url, site.run_up()))[-2] > SHARE
        assert "not steered" not in site.log()
