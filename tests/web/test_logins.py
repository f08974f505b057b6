"""What lets users in at web servers, and that none of it is ever shown."""

import base64
import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from mpx_command import copied, mpx, refused
from sites import Site, make
from web.connect_proxy import ConnectProxy
from web.scripted_http import Answer, Exchange, ScriptedHttp
from web.servers.apache import MODULES, apache_site
from web.servers.host_certificate import host_certificate
from web.servers.nginx import nginx_site
from web.servers.xrootd import XrootdSite
from web.shared_servers import SharedServers
from web.web_command import mpx_there

PASSWORD = "it's a secret"
BASIC = f"""
LoadModule authn_core_module {MODULES}/mod_authn_core.so
LoadModule auth_basic_module {MODULES}/mod_auth_basic.so
LoadModule authn_file_module {MODULES}/mod_authn_file.so
LoadModule authz_user_module {MODULES}/mod_authz_user.so
<Location />
AuthType Basic
AuthName all
AuthUserFile {{file}}
Require user alice
</Location>
"""


@pytest.fixture
def xrootd(web_servers: SharedServers) -> Iterator[tuple[XrootdSite, Site]]:
    """XRootD, without a token in the environment; the test is in its network."""
    with web_servers.site("xrootd") as site:
        os.environ.pop("BEARER_TOKEN")
        server = web_servers.get("xrootd")
        assert isinstance(server, XrootdSite)
        yield server, site
        os.environ["BEARER_TOKEN"] = ""


def both_ways(site: Site, here: Path, *options: object, **environment: str) -> None:
    """Copy a file up and down."""
    content = make(here / "file", 100_000).read_bytes()
    copied(mpx_there("copy", "-q", *options, here / "file", site.url_of("up"), **environment))
    assert (site.folder / "up").read_bytes() == content
    copied(mpx_there("copy", "-q", *options, site.url_of("up"), here / "down", **environment))
    assert (here / "down").read_bytes() == content


def token_file(here: Path, token: str) -> Path:
    (here / "token").write_text(token + "\n")
    (here / "token").chmod(0o600)
    return here / "token"


def test_a_token_in_a_file(xrootd: tuple[XrootdSite, Site], here: Path) -> None:
    server, site = xrootd
    file = token_file(here, server.issuer.token())
    both_ways(site, here, BEARER_TOKEN_FILE=str(file))
    (here / "down").unlink()
    both_ways(site, here, "--token-file", f"localhost={file}")
    other = mpx_there("copy", "-q", "--token-file", f"elsewhere={file}", site.url_of("up"), here / "no")
    refused(other, 3, "403", "--token-file")


def test_an_expired_token_is_not_sent(xrootd: tuple[XrootdSite, Site], here: Path) -> None:
    server, site = xrootd
    file = token_file(here, server.issuer.token(lasts_s=-300))
    before = server.server.said()
    ended = mpx_there("copy", "-q", make(here / "file"), site.url_of("up"), BEARER_TOKEN_FILE=str(file))
    refused(ended, 5, "has expired", str(file))
    assert "ofs_" not in server.server.said().removeprefix(before)
    assert list(site.folder.iterdir()) == []


def macaroon(server: XrootdSite, *caveats: str) -> str:
    """One that permits everything, as the holder of a proxy is given."""
    activities = "activity:DOWNLOAD,UPLOAD,LIST,DELETE,MANAGE"
    asked = {"caveats": [activities, *caveats], "validity": "PT1H"}
    user = replace(server, identity=(server.proxy, server.proxy))
    headers = {"Content-Type": "application/macaroon-request"}
    answer = user.ask("POST", "/", json.dumps(asked).encode(), headers)
    assert answer.status == 200
    return str(json.loads(answer.body)["macaroon"])


def test_a_macaroon(xrootd: tuple[XrootdSite, Site], here: Path) -> None:
    server, site = xrootd
    file = token_file(here, macaroon(server))
    both_ways(site, here, BEARER_TOKEN_FILE=str(file))
    file = token_file(here, macaroon(server, "before:2026-01-01T00:00:00Z"))
    ended = mpx_there("list", site.url_of("up"), BEARER_TOKEN_FILE=str(file))
    refused(ended, 5, "has expired (2026-01-01 00:00:00 UTC)", str(file))


def test_a_token_is_never_shown(xrootd: tuple[XrootdSite, Site], here: Path, private_home: Path) -> None:
    server, site = xrootd
    may_read = server.issuer.token("storage.read:/")
    make(here / "file", 1000)
    site.write("there", b"12345")
    report, debug = here / "report.json", {"MPX_DEBUG": "1", "BEARER_TOKEN": may_read}
    down = mpx_there("copy", "-v", "--report", report, site.url_of("there"), here / "down", **debug)
    assert down.code == 0, down.err
    shown = [down.out, down.err, report.read_text()]
    up = mpx_there("copy", "-v", "--report", report, here / "file", site.url_of("up"), **debug)
    assert up.code != 0
    shown += [up.out, up.err, report.read_text()]
    gone = mpx_there("list", site.url_of("missing"), **debug)
    shown += [gone.out, gone.err]
    shown += [path.read_text() for path in private_home.rglob("*") if path.is_file()]
    parts = may_read.split(".")
    assert not [text for text in shown for secret in parts[1:] if secret in text]


def test_a_proxy_certificate(xrootd: tuple[XrootdSite, Site], here: Path) -> None:
    server, site = xrootd
    both_ways(site, here, X509_USER_PROXY=str(server.proxy))
    nobody = mpx_there("copy", "-q", site.url_of("up"), here / "no", X509_USER_PROXY=str(here / "missing"))
    assert nobody.code in (3, 5), nobody.err


def test_a_certificate_of_the_user(tmp_path: Path, here: Path) -> None:
    (tmp_path / "served").mkdir()
    with nginx_site(tmp_path / "served", tls=True, user_certificates=True) as server:
        site, trust = Site(server.folder, server.url), {"SSL_CERT_FILE": str(server.ca)}
        assert server.identity
        certificate, key = server.identity
        both_ways(site, here, "--cert", certificate, "--key", key, **trust)
        for url in (site.url_of("up"), site.url_of("up").replace("davs", "https")):
            without = mpx_there("copy", "-q", url, here / "no", **trust)
            refused(without, 5, "asks for a certificate", "--cert")
        refused(mpx_there("copy", "-q", here / "file", site.url_of("2"), **trust), 5, "--cert")
        refused(mpx_there("list", server.url, **trust), 5, "--cert")
        another = host_certificate()
        shown = "--cert", another.certificate, "--key", another.key
        refused(mpx_there("list", *shown, server.url, **trust), 5, "does not accept", "--cert")


def test_a_password_of_netrc(tmp_path: Path, here: Path, private_home: Path) -> None:
    (tmp_path / "served").mkdir()
    digest = base64.b64encode(hashlib.sha1(PASSWORD.encode()).digest()).decode()
    users = tmp_path / "users"
    users.write_text(f"alice:{{SHA}}{digest}\n")
    with apache_site(tmp_path / "served", tls=True, settings=BASIC.format(file=users)) as server:
        site, trust = Site(server.folder, server.url), {"SSL_CERT_FILE": str(server.ca)}
        make(here / "file", 10)
        ended = mpx_there("copy", "-q", here / "file", site.url_of("up"), **trust)
        url = f"davs://USER@localhost:{server.port}"
        refused(ended, 5, "401", f"; put user and password for localhost into ~/.netrc, or write {url} and")
        assert ended.err.index("MPX_PASSWORD") < ended.err.index("get a token")
        netrc = private_home / ".netrc"
        netrc.write_text(f'machine localhost login alice password "{PASSWORD}"\n')
        netrc.chmod(0o600)
        both_ways(site, here, **trust)
        ended = mpx_there("copy", "-v", site.url_of("up"), here / "again", **trust, MPX_DEBUG="1")
        assert PASSWORD not in ended.out + ended.err


@pytest.mark.parametrize("scheme", ["dav", "http"])
def test_what_is_held_back_is_told_where_there_is_some(scheme: str, here: Path, private_home: Path) -> None:
    def forbidden(exchange: Exchange) -> Answer:
        exchange.body()
        return Answer(403)

    script = dict.fromkeys(("OPTIONS", "PROPFIND", "HEAD", "GET"), forbidden)
    with ScriptedHttp(script, {"/file": b"1"}) as server:
        url = f"{scheme}://localhost:{server.port}/file"
        ended = mpx("copy", url, here / "to")
        refused(ended, 3, "403")
        assert "in the clear" not in ended.err
        with_token = mpx("copy", url, here / "to", environment={"BEARER_TOKEN": "abc"})
        refused(with_token, 3, "403", "not sent in the clear; use https://")
        netrc = private_home / ".netrc"
        netrc.write_text("machine localhost login alice password secret\n")
        netrc.chmod(0o600)
        refused(mpx("copy", url, here / "to"), 3, "403", "not sent in the clear; use https://")


def test_who_asks_for_no_password_is_offered_a_token_first(
    xrootd: tuple[XrootdSite, Site], here: Path
) -> None:
    ended = mpx_there("list", xrootd[1].url)
    refused(ended, 3, "403", "MPX_PASSWORD", "~/.netrc")
    assert ended.err.index("get a token") < ended.err.index("MPX_PASSWORD")


@pytest.mark.parametrize("password", ["", "user:it's"])
def test_through_a_proxy(davs_site: Site, here: Path, password: str) -> None:
    wanted = f"Basic {base64.b64encode(password.encode()).decode()}" if password else ""
    with ConnectProxy(wanted) as proxy:
        user = f"{password}@" if password else ""
        both_ways(davs_site, here, https_proxy=f"http://{user}{proxy.address}")
        assert set(proxy.asked) == {f"localhost:{urlsplit(davs_site.url).port}"}
        if password:
            without = mpx_there("list", davs_site.url, https_proxy=f"http://{proxy.address}")
            refused(without, 5, "the proxy", "asks for a password")


def test_ipv6(tmp_path: Path, here: Path) -> None:
    (tmp_path / "served").mkdir()
    with nginx_site(tmp_path / "served", tls=True, ipv6=True) as server:
        site = Site(server.folder, f"davs://[::1]:{server.port}/")
        both_ways(site, here, SSL_CERT_FILE=str(host_certificate().ca))
