"""The endpoints that the contract holds for: each of tests/sites.py in turn."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from globus.globus_site import globus_site
from sites import SITES, Site, opened
from web.shared_servers import SharedServers

from mpx.engine.endpoint import Endpoint

THAT_MAKE_LINKS = ("local", "stock server", "sftp")
WITH_DAV = ("nginx", "apache", "wsgidav", "xrootd")
BY_GFAL = pytest.param("gfal2", marks=pytest.mark.long)
THAT_CHANGE = (*SITES, *WITH_DAV, "root", BY_GFAL, "globus")


OpenSite = Callable[[str], contextlib.AbstractContextManager[Site]]


@pytest.fixture
def open_site(tmp_path: Path, web_servers: SharedServers) -> OpenSite:
    def open_it(name: str) -> contextlib.AbstractContextManager[Site]:
        if name == "globus":
            return globus_site(tmp_path / "collection")
        return opened(name, tmp_path) if name in SITES else web_servers.site(name)

    return open_it


@pytest.fixture(params=(*THAT_CHANGE, "https archive"))
def site(request: pytest.FixtureRequest, open_site: OpenSite) -> Iterator[Site]:
    with open_site(request.param) as site:
        yield site


@pytest.fixture(params=THAT_CHANGE)
def changed(request: pytest.FixtureRequest, open_site: OpenSite) -> Iterator[Site]:
    """Those that list folders, and change what is in them."""
    with open_site(request.param) as site:
        yield site


@pytest.fixture
def end(site: Site) -> Endpoint:
    return site.open(writing=True)


@pytest.fixture(params=THAT_MAKE_LINKS)
def links(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Site]:
    with opened(request.param, tmp_path) as site:
        yield site
