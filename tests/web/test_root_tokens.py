"""Tokens by XRootD's own protocol: found, expired, and renewed in the middle of a copy."""

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from mpx_command import copied, refused
from sites import Site
from web.root_processes import processes_with_the_library
from web.servers.xrootd import XrootdSite
from web.shared_servers import SharedServers
from web.web_command import mpx_there

import mpx as api
from mpx.errors import AuthenticationError

FILES, FILE_BYTES = 24, 800_000
SLOW = {"rate_bps": 32e6, "streams": 1, "recursive": True}  # some 5 s: the file is looked at each second


@pytest.fixture
def server(web_servers: SharedServers) -> XrootdSite:
    server = web_servers.get("xrootd")
    assert isinstance(server, XrootdSite)
    return server


@pytest.fixture
def root_site(web_servers: SharedServers, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """Without a token in the environment."""
    with web_servers.site("root") as site, monkeypatch.context() as changed:
        changed.setenv("BEARER_TOKEN", "")
        yield site


def keep(file: Path, token: str) -> Path:
    """Write a token as those do who renew it: others never see a part of it."""
    new = file.with_name("new")
    new.write_text(token)
    new.chmod(0o600)
    new.rename(file)
    return file


def tokens_in_use() -> set[str]:
    """Those that our processes have begun with."""
    found = set()
    for pid in processes_with_the_library():
        with contextlib.suppress(OSError):  # it has ended
            for line in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
                if line.startswith(b"BEARER_TOKEN="):
                    found.add(line.partition(b"=")[2].decode())
    return found


def make_tree(folder: Path) -> None:
    folder.mkdir()
    for i in range(FILES):
        (folder / str(i)).write_bytes(os.urandom(FILE_BYTES))


def test_tokens(here: Path, root_site: Site, server: XrootdSite) -> None:
    root_site.write("file", b"what it has")
    given = here / "token"
    for lasts_s, code, words in ((300, 0, ""), (-300, 5, "has expired")):
        given.write_text(server.issuer.token(lasts_s=lasts_s))
        given.chmod(0o600)
        ended = mpx_there(
            *("copy", "--token-file", f"localhost={given}", root_site.url_of("file"), here / f"got{code}"),
            BEARER_TOKEN="",
        )
        copied(ended) if code == 0 else refused(ended, code, words, str(given))
    assert (here / "got0").read_bytes() == b"what it has"
    nobody = mpx_there("copy", root_site.url_of("file"), here / "no", BEARER_TOKEN="")
    refused(nobody, 5, "accepts none of the credentials", "BEARER_TOKEN_FILE")


def test_a_server_whose_ca_is_unknown(here: Path, root_site: Site, server: XrootdSite) -> None:
    """Not that a token is missing, as one is there."""
    (here / "cas").mkdir()
    ended = mpx_there(
        *("list", root_site.url_of("")), BEARER_TOKEN=server.issuer.token(), X509_CERT_DIR=str(here / "cas")
    )
    refused(ended, 5, "is not trusted", "--ca or X509_CERT_DIR", str(here / "cas"))
    assert "token" not in ended.err
    nobody = mpx_there("list", root_site.url_of(""), BEARER_TOKEN="")
    refused(nobody, 5, "get a token")
    assert "is not trusted" not in nobody.err


def test_until_when_a_token_lets_in(
    here: Path, root_site: Site, server: XrootdSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = keep(here / "token", server.issuer.token(lasts_s=3000))
    monkeypatch.setenv("BEARER_TOKEN_FILE", str(given))
    admission = root_site.open(writing=False).protection.admission
    assert admission is not None
    assert 2900 < admission.until_s - time.time() < 3001
    assert admission.what == "your token for localhost"


@pytest.mark.parametrize("upload", [True, pytest.param(False, marks=pytest.mark.long)], ids=["up", "down"])
def test_a_token_that_is_renewed(here: Path, root_site: Site, server: XrootdSite, *, upload: bool) -> None:
    """What begins later has the new one, and what had the old one ends between two files."""
    first, second = (server.issuer.token() for _ in range(2))
    given = keep(here / "token", first)
    make_tree(here / "tree" if upload else root_site.folder / "tree")
    root_site.hand_over()
    seen: list[set[str]] = []

    def renew(progress: api.Progress) -> None:
        seen.append(tokens_in_use())
        if progress.bytes_done and given.read_text() == first:
            keep(given, second)

    ends = [str(here / "tree"), root_site.url_of("tree")]
    options = api.CopyOptions(token_files=(f"localhost={given}",), **SLOW)
    report = api.copy(*(ends if upload else reversed(ends)), options, on_progress=renew)
    assert (report.status, report.files.moved) == ("done", FILES)
    used = [each for each in seen if each]
    assert (used[0], used[-1]) == ({first}, {second})


def test_a_token_that_expires_on_the_way(here: Path, root_site: Site, server: XrootdSite) -> None:
    given = keep(here / "token", server.issuer.token(lasts_s=3))
    make_tree(here / "tree")
    options = api.CopyOptions(token_files=(f"localhost={given}",), **SLOW)
    with pytest.raises(AuthenticationError, match="has expired"):
        api.copy(str(here / "tree"), root_site.url_of("tree"), options)
    keep(given, server.issuer.token())
    report = api.copy(str(here / "tree"), root_site.url_of("tree"), options)
    assert 0 < report.files.moved <= FILES  # all of them where a busy machine brought none before
    for i in range(FILES):
        assert (root_site.folder / f"tree/{i}").read_bytes() == (here / f"tree/{i}").read_bytes()
