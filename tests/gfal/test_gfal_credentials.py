"""Who lets gfal2 in, by what, and that nobody else sees it."""

import contextlib
import json
import os
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from grids import shared_grid
from mpx_command import copied, refused
from sites import Site
from web.servers.xrootd import XrootdSite
from web.shared_servers import SharedServers
from web.web_command import mpx_there

import mpx as api
from mpx.endpoints.gfal.lanes import GfalLanes
from mpx.endpoints.gfal.process import GfalOptions, GfalProcess
from mpx.endpoints.sftp.lanes import LaneOptions
from mpx.endpoints.web.bearer_tokens import BearerToken, BearerTokens
from mpx.endpoints.xrootd.options import XrootdOptions
from mpx.location import parse_location, through_gfal

Via = Callable[..., api.Report]
Open = Callable[[str], contextlib.AbstractContextManager[Site]]


@pytest.fixture(params=["xrootd", "root"])
def asking(request: pytest.FixtureRequest, open_server: Open) -> Iterator[Site]:
    """A server that asks for a token, by HTTP and by its own protocol."""
    with open_server(request.param) as site:
        yield site


def test_a_token_of_a_file(here: Path, asking: Site, web_servers: SharedServers) -> None:
    server = web_servers.get("xrootd")
    assert isinstance(server, XrootdSite)
    asking.write("file", b"what it has")
    given = here / "token"
    for lasts_s, code in ((300, 0), (-300, 5)):
        given.write_text(server.issuer.token(lasts_s=lasts_s))
        given.chmod(0o600)
        ended = mpx_there(
            *("copy", "--via", "gfal2", "--token-file", f"localhost={given}"),
            *(asking.url_of("file"), here / f"got{code}"),
            BEARER_TOKEN="",
        )
        copied(ended) if code == 0 else refused(ended, code, "has expired", str(given))
    assert (here / "got0").read_bytes() == b"what it has"


def test_nothing_that_lets_in(here: Path, asking: Site) -> None:
    asking.write("file", b"what it has")
    ended = mpx_there(
        *("copy", "--via", "gfal2", "--retries", "0", asking.url_of("file"), here / "no"),
        BEARER_TOKEN="",
        X509_USER_PROXY="/nowhere",
    )
    if asking.url.startswith("root"):
        refused(ended, 5, "accepts none of the credentials", "the proxy, is not there", "BEARER_TOKEN_FILE")
    else:  # it describes the file to everybody, and refuses what is in it
        refused(ended, 3, "HTTP 403", "get a token", "--token-file", "X509_USER_PROXY")
    assert not (here / "no").exists()


def test_a_token_goes_where_it_is_for(here: Path) -> None:
    """Neither to another host, whatever asks there, nor in the clear."""
    heard: list[bytes] = []

    def answer(listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                with connection:
                    connection.settimeout(5)
                    heard.append(connection.recv(65536))
                    connection.sendall(b"HTTP/1.1 404 no\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")

    (here / "token").write_text("of.another.host")
    (here / "token").chmod(0o600)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=answer, args=(listener,), daemon=True).start()
        url = f"dav://localhost:{listener.getsockname()[1]}/file"
        words = (
            "copy",
            "--via",
            "gfal2",
            "--token-file",
            f"other.example.org={here}/token",
            url,
            here / "to",
        )
        refused(mpx_there(*words, BEARER_TOKEN=""), 3, "does not exist")
        refused(mpx_there(*words, BEARER_TOKEN="for.any.host"), 3, "does not exist")
    assert heard
    for secret in (b"of.another.host", b"for.any.host"):
        assert not any(secret in each for each in heard)


@pytest.mark.parametrize(
    "other",
    ["davs://web.example.org/to", "srm://srm.example.org/to", "roots://other.example.org//to"],
)
def test_a_token_that_would_be_shown_to_another_server(here: Path, other: str) -> None:
    """By XRootD's own protocol it comes by the environment, where gfal2 takes it for any server."""
    (here / "token").write_text("a.token.of.root")
    (here / "token").chmod(0o600)
    tokens = BearerTokens([f"root.example.org={here}/token"], environment={})
    urls = (other, "root://root.example.org//file")
    places = [through_gfal(parse_location(url)) for url in urls]
    with pytest.raises(api.UsageError, match="gfal2 would show"):
        GfalProcess(places, GfalOptions(XrootdOptions(1.0, 1.0)), tokens)
    assert isinstance(tokens.for_host("root.example.org", 1094), BearerToken)


def test_secrets_are_not_shown(here: Path, asking: Site, via: Via) -> None:
    asking.write("file", b"what it has")
    lanes = GfalLanes(
        [through_gfal(parse_location(asking.url))], GfalOptions(XrootdOptions(60.0, 60.0)), BearerTokens()
    )
    shown: list[bytes] = []
    with contextlib.closing(lanes.open(LaneOptions(60.0, 60.0, lambda: False))):  # it lasts until then
        for each in Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):
                shown.append(each.read_bytes())
    report = via(asking.url_of("file"), here / "to")
    secret = os.environ["BEARER_TOKEN"]
    assert any(b"gfal/served/program.py" in each for each in shown)
    assert not any(secret.encode() in each for each in shown)
    assert secret not in json.dumps(report.as_dict())
    with pytest.raises(api.MpxError) as caught:
        via(asking.url_of("no"), here / "no")
    assert secret not in str(caught.value)


def test_a_proxy_by_hand(here: Path, open_server: Open) -> None:
    with open_server("grid") as site:
        site.write("file", b"what it has")
        proxy = str(shared_grid().proxy)
        words = ("copy", "--via", "gfal2", "--cert", proxy, site.url_of("file"), here / "to")
        copied(mpx_there(*words, X509_USER_PROXY="/nowhere"))
        refused(
            mpx_there("list", "--via", "gfal2", site.url_of(""), X509_USER_PROXY="/nowhere"),
            5,
            "accepts none of the credentials",
        )


@pytest.mark.parametrize("kind", ["nginx", "grid", "root"])
def test_a_server_that_is_not_trusted(here: Path, open_server: Open, kind: str) -> None:
    with open_server(kind) as site:
        ca = str(shared_grid().trusted)
        trusted = {"SSL_CERT_FILE": "", "X509_CERT_DIR": ca} if kind == "grid" else {}
        copied(mpx_there("list", "--via", "gfal2", site.url_of(""), **trusted))
        (here / "none").mkdir()
        nobody = {"SSL_CERT_FILE": "", "X509_CERT_DIR": str(here / "none")}
        ended = mpx_there("list", "--via", "gfal2", site.url_of(""), **nobody)
        refused(
            ended, 5, "localhost is not trusted", "name the CA of its certificate by --ca or X509_CERT_DIR"
        )


@pytest.mark.parametrize("kind", ["nginx", "xrootd", "grid", "root"])
def test_what_is_named_takes_the_place_of_all_others(here: Path, open_server: Open, kind: str) -> None:
    grid = shared_grid()
    (here / "ours.pem").write_text(grid.ca.pem)
    (here / "theirs.pem").write_text(grid.new_ca("Another CA").pem)
    trusted = {"SSL_CERT_FILE": str(here / "ours.pem"), "X509_CERT_DIR": str(grid.trusted)}
    nobody = {"SSL_CERT_FILE": "", "X509_CERT_DIR": str(here)}
    with open_server(kind) as site:
        site.write("file", b"what it has")
        words = ("copy", "--via", "gfal2", site.url_of("file"))
        copied(mpx_there(*words, here / "got", "--ca", here / "ours.pem", **nobody))
        assert (here / "got").read_bytes() == b"what it has"
        ended = mpx_there(*words, here / "no", "--ca", here / "theirs.pem", **trusted)
        refused(ended, 5, "localhost is not trusted", "--ca")
    assert not (here / "no").exists()
