"""What lets a copy in at a server of XRootD, and what its processes are told."""

from collections.abc import Callable
from pathlib import Path

import pytest

from mpx.endpoints.web.bearer_tokens import BearerTokens
from mpx.endpoints.xrootd.login import XrootdLogin
from mpx.endpoints.xrootd.options import XrootdOptions
from mpx.endpoints.xrootd.process import XrootdProcess
from mpx.location import parse_location


def login(url: str, token: str = "", **proxy: str) -> XrootdLogin:
    tokens = BearerTokens(environment={"BEARER_TOKEN": token})
    return XrootdLogin(parse_location(url), XrootdOptions(30.0, 60.0), tokens, proxy)


@pytest.mark.parametrize(
    ("url", "name"),
    [("root://host//d", "root://host/"), ("roots://alice@[::1]:99//d", "roots://alice@[::1]:99/")],
)
def test_a_server_as_the_library_names_it(url: str, name: str) -> None:
    assert login(url).url == name


def test_what_a_token_tells_of_its_end() -> None:
    assert not login("root://host//d", token="of.no.claims").is_outdated("of.no.claims")
    assert login("root://host//d", token="another").is_outdated("of.no.claims")
    assert login("root://host//d", token="has a blank").is_outdated("of.no.claims")
    assert login("root://host//d").admission is None


def test_a_proxy_that_is_renewed(
    here: Path, monkeypatch: pytest.MonkeyPatch, eventually: Callable[..., None]
) -> None:
    """Another process takes the place of one that may read only the proxy that was there."""
    proxy, new = here / "proxy", here / "new"
    for file in (proxy, new):
        file.write_bytes(b"1")
    monkeypatch.setenv("X509_USER_PROXY", str(proxy))
    process = XrootdProcess(login("root://host//d"))
    try:
        new.rename(proxy)
        eventually(lambda: process.is_outdated)
    finally:
        process.close()
