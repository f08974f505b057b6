"""The web servers of the tests do what their fixtures promise, asked by http.client."""

import base64
import contextlib
import hashlib
import http.client
import json
import ssl
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit
from xml.etree import ElementTree

import pytest
from web.servers.apache import apache_site
from web.servers.nginx import nginx_site
from web.servers.private_network import within
from web.servers.site import WebAnswer, WebSite
from web.servers.wsgi_dav import wsgidav_site
from web.servers.xrootd import XrootdSite, xrootd_site

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


@pytest.fixture
def xrootd(served: Path) -> Iterator[XrootdSite]:
    """XRootD; the test is in its network."""
    with xrootd_site(served) as site, within(site.namespace):
        yield site


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def test_xrootd_stores_what_a_token_permits(xrootd: XrootdSite) -> None:
    xrootd.headers = bearer(xrootd.issuer.token())
    assert xrootd.ask("PUT", "/file", DATA).status == 200
    assert (xrootd.folder / "file").read_bytes() == DATA
    part = xrootd.ask("GET", "/file", headers={"Range": "bytes=100-299"})
    assert (part.status, part.body) == (206, DATA[100:300])
    assert xrootd.ask("MKCOL", "/folder").status == 201
    listing = xrootd.ask("PROPFIND", "/", headers={"Depth": "1"})
    assert listing.status == 207
    lengths = [length.text for length in ElementTree.fromstring(listing.body).iter("{DAV:}getcontentlength")]
    assert str(len(DATA)) in lengths
    to = f"https://localhost:{xrootd.port}/folder/moved"
    assert xrootd.ask("MOVE", "/file", headers={"Destination": to}).status == 201
    assert (xrootd.folder / "folder/moved").read_bytes() == DATA
    assert xrootd.ask("DELETE", "/folder/moved").status == 200
    assert [path.name for path in xrootd.folder.rglob("*")] == ["folder"]


def test_xrootd_refuses_what_no_token_permits(xrootd: XrootdSite) -> None:
    (xrootd.folder / "file").write_bytes(DATA)
    issuer = xrootd.issuer

    def read(token: str) -> WebAnswer:
        return xrootd.ask("GET", "/file", headers=bearer(token))

    assert read(issuer.token("storage.read:/")).body == DATA
    assert read(issuer.token(audience=f"https://localhost:{xrootd.port}")).status == 200
    assert xrootd.ask("GET", "/file").status == 403
    assert read(issuer.token("storage.read:/folder")).status == 403
    assert read(issuer.token(lasts_s=-300)).status == 403
    assert read(issuer.token(audience="https://elsewhere")).status == 403
    assert read(issuer.token(claims={"iss": "https://localhost:1"})).status == 403
    refused = xrootd.ask("PUT", "/other", DATA, bearer(issuer.token("storage.read:/")))
    assert refused.status == 403
    assert not (xrootd.folder / "other").exists()


def test_xrootd_tells_checksums(xrootd: XrootdSite) -> None:
    xrootd.headers = bearer(xrootd.issuer.token())
    xrootd.ask("PUT", "/file", DATA)
    adler32, md5 = f"{zlib.adler32(DATA):08x}", base64.b64encode(hashlib.md5(DATA).digest()).decode()
    for told in (f"adler32={adler32}", f"md5={md5}"):
        answer = xrootd.ask("HEAD", "/file", headers={"Want-Digest": told.partition("=")[0]})
        assert answer.headers["digest"] == told


def test_xrootd_takes_a_proxy_of_the_user(xrootd: XrootdSite) -> None:
    xrootd.identity = (xrootd.proxy, xrootd.proxy)
    assert xrootd.ask("PUT", "/file", DATA).status == 200
    assert xrootd.ask("GET", "/file").body == DATA


def test_xrootd_makes_macaroons(xrootd: XrootdSite) -> None:
    """Of the holder of a proxy; whoever asks with a token gets one that permits nothing."""
    xrootd.identity = (xrootd.proxy, xrootd.proxy)
    xrootd.ask("PUT", "/file", DATA)
    wanted = json.dumps({"caveats": ["activity:DOWNLOAD"], "validity": "PT10M"}).encode()
    answer = xrootd.ask("POST", "/file", wanted, {"Content-Type": "application/macaroon-request"})
    xrootd.identity, xrootd.headers = None, bearer(json.loads(answer.body)["macaroon"])
    assert xrootd.ask("GET", "/file").body == DATA
    assert xrootd.ask("PUT", "/file", b"").status == 403


def test_xrootd_copies_from_another(xrootd: XrootdSite, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    token = xrootd.issuer.token()
    with xrootd_site(tmp_path / "other", beside=xrootd) as other:
        other.ask("PUT", "/file", DATA, bearer(token))
        pull = {
            "Source": f"https://localhost:{other.port}/file",
            "TransferHeaderAuthorization": f"Bearer {token}",
            "Credential": "none",
        }
        answer = xrootd.ask("COPY", "/copied", headers={**bearer(token), **pull})
        assert answer.status == 201
        assert b"success: Created" in answer.body
    assert (xrootd.folder / "copied").read_bytes() == DATA


def test_xrootd_is_reached_from_its_network_only(served: Path) -> None:
    with xrootd_site(served) as site:
        with pytest.raises(ConnectionRefusedError):
            site.ask("OPTIONS", "/")
        site.kill()
        site.start()
        with within(site.namespace):
            assert site.ask("GET", "/file").status == 403
        with pytest.raises(ConnectionRefusedError):  # the thread is back
            site.ask("OPTIONS", "/")
