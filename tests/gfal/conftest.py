"""Servers that gfal2 reaches: those of other tests, by their own schemes."""

import contextlib
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from gfal.fake_srm import FakeSrm
from grids import shared_grid
from install_peers import GFAL, find_peer
from sites import Site, grid_site
from web.servers.xrootd import XrootdSite
from web.shared_servers import SharedServers, in_its_world

import mpx as api

OpenServer = Callable[[str], contextlib.AbstractContextManager[Site]]
SERVERS = (
    "nginx",
    "xrootd",
    "grid",
    *(pytest.param(each, marks=pytest.mark.long) for each in ("apache", "root")),
)


@pytest.fixture(autouse=True)
def needs_gfal() -> None:
    find_peer(GFAL)


@pytest.fixture
def open_server(web_servers: SharedServers, tmp_path: Path) -> OpenServer:
    """Opens a folder of a server; its name has no blank, which XRootD would take for something else."""

    @contextlib.contextmanager
    def opened(name: str) -> Iterator[Site]:
        if name.startswith("grid"):
            (tmp_path / name).mkdir()
            with grid_site(tmp_path / name) as site:
                yield site
            return
        server = web_servers.get("xrootd" if name == "root" else name)
        url = server.url
        if isinstance(server, XrootdSite) and name == "root":
            url = server.root_url
        folder = Path(tempfile.mkdtemp(prefix="gfal-", dir=server.folder))
        folder.chmod(0o777)
        if server.owner:
            shutil.chown(folder, server.owner)
        with in_its_world(server, by_root=name == "root"):
            yield replace(Site(folder, f"{url}{folder.name}/"), owner=server.owner)

    return opened


@pytest.fixture(params=SERVERS)
def server(request: pytest.FixtureRequest, open_server: OpenServer) -> Iterator[Site]:
    with open_server(request.param) as site:
        yield site


@pytest.fixture
def nginx(open_server: OpenServer) -> Iterator[Site]:
    with open_server("nginx") as site:
        yield site


@pytest.fixture
def via() -> Callable[..., api.Report]:
    """Copies by gfal2."""

    def copy(
        source: object, destination: object, *, more: dict[str, object] | None = None, **options: object
    ) -> api.Report:
        given = api.CopyOptions(via="gfal2", **options)  # type: ignore[arg-type]
        return api.copy(str(source), str(destination), given, **(more or {}))  # type: ignore[arg-type]

    return copy


@pytest.fixture
def srm(open_server: OpenServer) -> Iterator[FakeSrm]:
    with open_server("grid") as behind, FakeSrm(shared_grid(), behind.folder, behind.url) as server:
        behind.folder.chmod(0o777)
        yield server
