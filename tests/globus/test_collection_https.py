"""Copies between this host and a collection, by the HTTPS of that: a real nginx, behind a token."""

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from globus.conftest import Collections
from globus.fake_globus import ONE
from interop.trees import names
from mpx_command import Ended, mpx, refused
from sites import make
from web.servers.nginx import nginx_site

from mpx.endpoints.globus.access import GlobusAccess
from mpx.endpoints.globus.endpoint import GlobusEndpoint
from mpx.endpoints.web.options import WebOptions
from mpx.engine.endpoint import Commit
from mpx.errors import IsThere
from mpx.location import parse_location

LET_IN = 'if ($http_authorization !~ "^Bearer token-") { return 401; }'


@pytest.fixture
def served(collections: Collections) -> Iterator[tuple[Collections, list[str]]]:
    """Collections of which one has HTTPS, and options that have mpx trust it."""
    with nginx_site(collections.one, tls=True, settings=LET_IN) as site:
        collections.fake.about[ONE] = {"https_server": f"https://localhost:{site.port}"}
        yield replace(collections), ["--ca", str(site.ca)]


def copy(served: tuple[Collections, list[str]], *words: object) -> Ended:
    return mpx("copy", *served[1], *words)


def test_a_file_down(served: tuple[Collections, list[str]], tmp_path: Path) -> None:
    make(served[0].one / "data/x y%", 9_000_000)
    ended = copy(served, f"{served[0].one_url}data/x%20y%25", tmp_path / "x", "--report", tmp_path / "r")
    assert ended.code == 0, ended.err
    assert (tmp_path / "x").read_bytes() == (served[0].one / "data/x y%").read_bytes()
    report = json.loads((tmp_path / "r").read_text())
    assert report["checksum"]["result"] == "unverified" and not served[0].fake.tasks
    secrets = [*served[0].fake.tokens, os.environ["GLOBUS_CLIENT_SECRET"]]
    assert not any(secret in (tmp_path / "r").read_text() for secret in secrets)


def test_a_tree_up_and_down(served: tuple[Collections, list[str]], tmp_path: Path) -> None:
    for name, size in {"a": 0, "sub/b": 5_000_000, "sub/c": 70_000}.items():
        make(tmp_path / "run7" / name, size)
    up = copy(served, "-r", tmp_path / "run7", f"{served[0].one_url}up/run7")
    assert up.code == 0, up.err
    assert names(served[0].one / "up/run7") == names(tmp_path / "run7")
    again = copy(served, "-r", tmp_path / "run7", f"{served[0].one_url}up/run7")
    assert again.code == 0 and "3 of 3 files skipped" in again.out, (again.out, again.err)
    down = copy(served, "-r", f"{served[0].one_url}up/run7", tmp_path / "back")
    assert down.code == 0, down.err
    for name in ("a", "sub/b", "sub/c"):
        assert (tmp_path / "back" / name).read_bytes() == (tmp_path / "run7" / name).read_bytes()


def test_a_file_that_replaces_one(served: tuple[Collections, list[str]], tmp_path: Path) -> None:
    """The service renames onto nothing that is there: that is put aside first."""
    (served[0].one / "x").write_bytes(b"older")
    make(tmp_path / "x", 10_000)
    kept = copy(served, "--overwrite", "never", tmp_path / "x", f"{served[0].one_url}x")
    assert kept.code == 0 and (served[0].one / "x").read_bytes() == b"older", kept.err
    ended = copy(served, tmp_path / "x", f"{served[0].one_url}x")
    assert ended.code == 0, ended.err
    assert (served[0].one / "x").read_bytes() == (tmp_path / "x").read_bytes()
    assert names(served[0].one) == ["x"]


def test_a_collection_that_does_not_let_in(served: tuple[Collections, list[str]], tmp_path: Path) -> None:
    make(served[0].one / "x", 10)
    served[0].fake.prefix = "another-"
    refused(copy(served, f"{served[0].one_url}x", tmp_path / "x"), 5, f"mpx globus login --https {ONE}")


def test_a_collection_without_https(collections: Collections, tmp_path: Path) -> None:
    make(collections.one / "x", 10)
    refused(
        mpx("copy", f"{collections.one_url}x", tmp_path / "x"), 2, "has no HTTPS", "--globus-local COLLECTION"
    )


def test_a_server_that_is_not_inside_tls(collections: Collections, tmp_path: Path) -> None:
    """No token goes there."""
    collections.fake.about[ONE] = {"https_server": "http://localhost:1"}
    make(collections.one / "x", 10)
    refused(mpx("copy", f"{collections.one_url}x", tmp_path / "x"), 6, "tells a server that is none")


def test_between_two_through_this_host(
    served: tuple[Collections, list[str]], tmp_path: Path, collections: Collections
) -> None:
    """As it is asked for; the other has no HTTPS, which is said."""
    make(served[0].one / "x", 10)
    refused(
        copy(served, "--third-party", "never", f"{served[0].one_url}x", f"{served[0].other_url}x"),
        2,
        "has no HTTPS",
    )
    with nginx_site(collections.other, tls=True, settings=LET_IN) as site:
        collections.fake.about[collections.other_url[9:45]] = {
            "https_server": f"https://localhost:{site.port}"
        }
        ended = copy(served, "--rate", "800Mbit/s", f"{served[0].one_url}x", f"{served[0].other_url}x")
        assert ended.code == 0, ended.err
        assert (collections.other / "x").read_bytes() == (collections.one / "x").read_bytes()
        assert not collections.fake.tasks


def test_a_name_that_is_taken_meanwhile(collections: Collections) -> None:
    """As the endpoint is asked after the committer has looked."""
    partial = ".x.mpx-1234.part"
    make(collections.one / partial, 10)
    (collections.one / "x").write_bytes(b"older")
    location = parse_location(f"{collections.one_url}x")
    end = GlobusEndpoint(location, GlobusAccess(location, WebOptions()), writing=True)
    (kept,) = end.commit([Commit(f"/{partial}", "/x", None, None, replaces=False)], print)
    assert isinstance(kept, IsThere) and (collections.one / "x").read_bytes() == b"older"
    assert end.commit([Commit(f"/{partial}", "/x", None, None)], print) == [None]
    assert (collections.one / "x").stat().st_size == 10
