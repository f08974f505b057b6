"""Many questions at once to real web servers: all of them are answered."""

from pathlib import Path

import pytest
from web.servers.nginx import nginx_site
from web.servers.private_network import within
from web.servers.site import WebSite
from web.servers.xrootd import xrootd_site

from mpx.endpoints.web.access import WebAccess
from mpx.endpoints.web.dialogue import WebDialogue
from mpx.endpoints.web.folder import ASKED_AS, PROPERTIES
from mpx.endpoints.web.options import WebOptions
from mpx.location import parse_location

MANY = 100


@pytest.fixture
def served(tmp_path: Path) -> Path:
    (tmp_path / "served").mkdir()
    return tmp_path / "served"


def answered(site: WebSite, method: str) -> int:
    """How many of many questions are answered over one connection before a short time-out."""
    access = WebAccess(parse_location(site.url), WebOptions(timeout_s=10, ca=str(site.ca)))
    dialogue = WebDialogue(access)
    urls = [access.url_of("/file")] * MANY
    extra, body = ({"Depth": "0", **ASKED_AS}, PROPERTIES) if method == "PROPFIND" else ({}, b"")
    try:
        return sum(answer is not None for answer in dialogue.ask_all(method, urls, extra, body))
    finally:
        dialogue.close()


@pytest.mark.parametrize("method", ["HEAD", "PROPFIND"])
def test_xrootd_answers_what_it_is_asked_at_once(
    served: Path, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes nothing ahead: it would answer the first few, and wait for more to come."""
    (served / "file").write_bytes(b"content")
    with xrootd_site(served) as site, within(site.namespace):
        monkeypatch.setenv("BEARER_TOKEN", site.issuer.token())
        assert answered(site, method) == MANY


def test_nginx_answers_what_it_is_asked_at_once(served: Path) -> None:
    (served / "file").write_bytes(b"content")
    with nginx_site(served, tls=True) as site:
        assert answered(site, "PROPFIND") == MANY
