"""The web servers that tests here copy to and from, each in turn, in a folder of the test."""

from collections.abc import Iterator

import pytest
from sites import Site
from web.shared_servers import SharedServers

WITH_DAV = ("nginx", "apache", "wsgidav", "xrootd")


@pytest.fixture(params=WITH_DAV)
def web_site(request: pytest.FixtureRequest, web_servers: SharedServers) -> Iterator[Site]:
    """A server with WebDAV."""
    with web_servers.site(request.param) as site:
        yield site


@pytest.fixture
def davs_site(web_servers: SharedServers) -> Iterator[Site]:
    """One of them, in TLS."""
    with web_servers.site("nginx") as site:
        yield site


@pytest.fixture
def archive(web_servers: SharedServers) -> Iterator[Site]:
    """A web server without WebDAV, in TLS."""
    with web_servers.site("https archive") as site:
        yield site
