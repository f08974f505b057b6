"""What a user reads where a server of XRootD is not there, has no TLS, or refuses something."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from install_peers import GFAL, find_peer
from mpx_command import refused
from sites import Site
from web.servers.private_network import servers_folder
from web.servers.root_server import RootServer, root_server
from web.shared_servers import SharedServers
from web.web_command import mpx_there

VIA = pytest.mark.parametrize("via", [(), ("--via", "gfal2")], ids=["itself", "gfal2"])


@pytest.fixture(scope="module")
def running() -> Iterator[tuple[RootServer, RootServer]]:
    with (
        servers_folder() as root,
        root_server(root / "first") as first,
        root_server(root / "second") as second,
    ):
        yield first, second


@pytest.fixture
def pair(
    running: tuple[RootServer, RootServer], monkeypatch: pytest.MonkeyPatch
) -> tuple[RootServer, RootServer]:
    """Without TLS, and neither reads from others."""
    monkeypatch.setenv("BEARER_TOKEN", "")
    for each in running:
        (each.folder / "file").write_bytes(b"what it has")
    return running


def needs(via: tuple[str, ...]) -> None:
    if via:
        find_peer(GFAL)


@VIA
def test_not_reached(via: tuple[str, ...], closed_port: int) -> None:
    needs(via)
    ended = mpx_there("list", *via, f"root://localhost:{closed_port}//", BEARER_TOKEN="")
    refused(ended, 6, f"localhost:{closed_port}, by ", "refused")


@VIA
def test_no_tls(via: tuple[str, ...], pair: tuple[RootServer, RootServer]) -> None:
    needs(via)
    server, _ = pair
    ended = mpx_there("list", *via, f"roots://localhost:{server.port}//")
    refused(ended, 6 if via else 5, f"localhost:{server.port}", "has no TLS", "write root://")
    assert "token" not in ended.err and "--ca" not in ended.err


def test_two_servers_of_one_host(pair: tuple[RootServer, RootServer]) -> None:
    source, destination = pair
    words = ("copy", "--third-party", "only", f"{source.url}file", f"{destination.url}to")
    told = f"localhost:{destination.port} cannot read /file from localhost:{source.port}"
    refused(mpx_there(*words), 2, told)


def test_below_a_file(here: Path, pair: tuple[RootServer, RootServer]) -> None:
    (here / "file").write_bytes(b"1")
    ended = mpx_there("copy", here / "file", f"{pair[0].url}file/x")
    refused(ended, 4, "cannot store /file/x: Unable to create", "not a directory")
    assert "no such file" not in ended.err


def test_a_file_that_gfal2_does_not_copy_is_named_once(
    here: Path, pair: tuple[RootServer, RootServer]
) -> None:
    needs(("--via",))
    (here / "tree").mkdir()
    for name in ("a", "b"):
        (here / "tree" / name).write_bytes(b"1")
    (closed := pair[0].folder / "closed").mkdir(mode=0o555)
    closed.chmod(0o555)
    ended = mpx_there("copy", "-r", "--via", "gfal2", here / "tree", f"{pair[0].url}closed")
    lines = [line for line in ended.err.splitlines() if line.startswith("mpx: not copied ")]
    for name, line in zip("ab", sorted(lines), strict=True):
        assert line.startswith(
            f"mpx: not copied {here}/tree/{name}: gfal2 does not copy it: Unable to create"
        )
        assert line.count(f"tree/{name}") == 1


@VIA
def test_a_token_that_is_refused(here: Path, via: tuple[str, ...], web_servers: SharedServers) -> None:
    needs(via)
    (token := here / "token").write_text("of.no.issuer")
    token.chmod(0o600)
    with web_servers.site("root") as site:
        check_refused(site, via, token)


def check_refused(site: Site, via: tuple[str, ...], token: Path) -> None:
    words = ("list", *via, site.url_of(""))
    ended = mpx_there(*words, BEARER_TOKEN="", BEARER_TOKEN_FILE=str(token))
    refused(ended, 5, f"the token found in {token} (BEARER_TOKEN_FILE) among them")
    ended = mpx_there(*words, BEARER_TOKEN="of.no.issuer")
    refused(ended, 5, "the token found in the variable BEARER_TOKEN among them")
    nobody = mpx_there(*words, BEARER_TOKEN="")
    refused(nobody, 5, "accepts none of the credentials")
    assert "the token found" not in nobody.err
