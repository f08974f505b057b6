"""The web servers of the tests do what their fixtures promise, asked by http.client."""

import contextlib
import http.client
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit
from xml.etree import ElementTree

import pytest
from web.servers.apache import apache_site
from web.servers.nginx import nginx_site
from web.servers.site import WebSite
from web.servers.wsgi_dav import wsgidav_site

DAV_SITES: dict[str, Callable[..., contextlib.AbstractContextManager[WebSite]]] = {
    "nginx": nginx_site,
    "apache": apache_site,
    "wsgidav": wsgidav_site,
}
DATA = bytes(range(256)) * 40


@pytest.fixture
def served(tmp_path: Path) -> Path:
    (tmp_path / "served").mkdir()
    return tmp_path / "served"


@pytest.fixture(params=[(name, tls) for name in DAV_SITES for tls in (False, True)], ids=str)
def dav(request: pytest.FixtureRequest, served: Path) -> Iterator[WebSite]:
    """Each server that needs no login, clear and in TLS."""
    name, tls = request.param
    with DAV_SITES[name](served, tls=tls) as site:
        yield site


def test_puts_and_gets_ranges(dav: WebSite) -> None:
    assert dav.ask("PUT", "/file", DATA).status == 201
    assert (dav.folder / "file").read_bytes() == DATA
    part = dav.ask("GET", "/file", headers={"Range": "bytes=100-299"})
    assert (part.status, part.body) == (206, DATA[100:300])
    assert part.headers["content-range"] == f"bytes 100-299/{len(DATA)}"
    assert dav.ask("GET", "/missing").status == 404


def test_lists_moves_and_deletes(dav: WebSite) -> None:
    assert dav.ask("MKCOL", "/folder/").status == 201
    assert (dav.folder / "folder").is_dir()
    dav.ask("PUT", "/folder/file", DATA)
    listing = dav.ask("PROPFIND", "/folder/", headers={"Depth": "1"})
    assert listing.status == 207
    lengths = [length.text for length in ElementTree.fromstring(listing.body).iter("{DAV:}getcontentlength")]
    assert str(len(DATA)) in lengths
    scheme = urlsplit(dav.url).scheme.replace("dav", "http")
    to = f"{scheme}://localhost:{dav.port}/moved"
    assert dav.ask("MOVE", "/folder/file", headers={"Destination": to}).status in (201, 204)
    assert (dav.folder / "moved").read_bytes() == DATA
    assert dav.ask("DELETE", "/moved").status == 204
    assert [path.name for path in dav.folder.rglob("*")] == ["folder"]


@pytest.mark.parametrize("name", DAV_SITES)
def test_shows_a_certificate_of_its_ca_only(name: str, served: Path) -> None:
    with DAV_SITES[name](served, tls=True) as site:
        for host in ("localhost", "127.0.0.1"):
            with contextlib.closing(site.connect(host)) as connection:
                connection.connect()
        stranger = http.client.HTTPSConnection("localhost", site.port, timeout=60)
        with pytest.raises(ssl.SSLCertVerificationError):
            stranger.connect()


@pytest.mark.parametrize("name", DAV_SITES)
def test_starts_again_on_its_port(name: str, served: Path) -> None:
    with DAV_SITES[name](served) as site:
        site.kill()
        with pytest.raises(ConnectionRefusedError):
            site.ask("OPTIONS", "/")
        site.start()
        assert site.ask("PUT", "/file", DATA).status == 201


@pytest.mark.parametrize("make", [nginx_site, apache_site])
def test_a_server_that_does_not_start_says_why(
    make: Callable[..., contextlib.AbstractContextManager[WebSite]], served: Path
) -> None:
    with pytest.raises(AssertionError, match="no_such_setting"), make(served, settings="no_such_setting on;"):
        pass


def test_nginx_without_dav_only_reads(served: Path) -> None:
    (served / "file").write_bytes(DATA)
    with nginx_site(served, dav=False) as site:
        assert site.url == f"http://localhost:{site.port}/"
        assert site.ask("GET", "/file", headers={"Range": "bytes=5-"}).body == DATA[5:]
        assert site.ask("PUT", "/other", DATA).status == 405
        assert site.ask("PROPFIND", "/").status == 405


def test_nginx_listens_on_ipv6_when_told(served: Path) -> None:
    with nginx_site(served, tls=True, ipv6=True) as site:
        connection = site.connect("::1")
        connection.request("OPTIONS", "/")
        assert connection.getresponse().status == 200
        connection.close()


def test_nginx_bounds_connections(served: Path) -> None:
    (served / "file").write_bytes(bytes(50_000_000))  # more than sockets hold: the answer stays under way
    with nginx_site(served, connections=1) as site:
        first = site.connect()
        first.request("GET", "/file")
        answer = first.getresponse()
        assert answer.status == 200
        assert site.ask("GET", "/file").status == 503
        first.close()
        answer.close()


def test_nginx_asks_for_a_certificate_of_the_user(served: Path) -> None:
    (served / "file").write_bytes(DATA)
    with nginx_site(served, tls=True, user_certificates=True) as site:
        assert site.ask("GET", "/file").body == DATA
        site.identity = None
        assert site.ask("GET", "/file").status == 400
