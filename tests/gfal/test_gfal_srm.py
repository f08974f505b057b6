"""srm:// by gfal2, against the only peer that there is here: see fake_srm.py."""

import contextlib
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from gfal.fake_srm import FakeSrm
from grids import as_user, shared_grid
from interop.trees import TREE, names
from mpx_command import copied, refused
from sites import Site, make
from web.web_command import mpx_there

import mpx as api

Open = Callable[[str], contextlib.AbstractContextManager[Site]]


def test_a_tree_there_and_back(here: Path, srm: FakeSrm) -> None:
    for name in ("a", "in ner/odd; name", "in ner/50%20off"):
        make(here / "tree" / name, 1_000_001)
    make(here / "tree/empty", 0)
    before = os.umask(0)  # of who makes folders for the server of GridFTP
    try:
        sent = api.copy(str(here / "tree"), f"{srm.url}up", TREE)
    finally:
        os.umask(before)
    assert (sent.files.moved, sent.checksum["result"]) == (4, "verified")
    assert {"srmPrepareToPut", "srmPutDone", "srmMv"} <= set(srm.calls)
    brought = api.copy(f"{srm.url}up", str(here / "down"), TREE)
    assert (brought.files.moved, brought.checksum["result"]) == (4, "verified")
    assert {"srmPrepareToGet", "srmReleaseFiles"} <= set(srm.calls)
    found = names(here / "tree")
    assert names(here / "down") == names(srm.folder / "up") == found
    for name in found:
        if not name.endswith("/"):
            assert (here / "down" / name).read_bytes() == (here / "tree" / name).read_bytes()
    assert api.copy(str(here / "tree"), f"{srm.url}up", TREE).files.moved == 0


def test_a_file_that_replaces_one(here: Path, srm: FakeSrm) -> None:
    """SRM renames to no name that is taken: see test_gfal_renames.py."""
    content = make(here / "file", 101).read_bytes()
    (srm.folder / "file").write_bytes(b"old")
    api.copy(str(here / "file"), f"{srm.url}file")
    assert (srm.folder / "file").read_bytes() == content


def test_the_long_form_and_what_is_not_there(here: Path, srm: FakeSrm) -> None:
    (srm.folder / "file").write_bytes(b"what it has")
    (srm.folder / "file").chmod(0o644)
    long = f"{srm.url}srm/managerv2?SFN=/"
    copied(mpx_there("copy", f"{long}file", here / "to"))
    assert (here / "to").read_bytes() == b"what it has"
    ended = mpx_there("list", long)
    copied(ended)
    assert ended.out == "file\n"
    refused(mpx_there("copy", f"{srm.url}no", here / "no"), 3, "no does not exist")


def test_names_that_gfal2_does_not_tell_as_they_are(srm: FakeSrm) -> None:
    for name in ("plain", "caf\u00e9", os.fsdecode(b"bad \xff")):
        (srm.folder / name).write_bytes(b"some")
    ended = mpx_there("list", srm.url)
    copied(ended)
    assert len(ended.out.splitlines()) == 3 and "plain" in ended.out.splitlines()


@pytest.mark.parametrize("words", [("list",), ("copy", "--retries", "0")], ids=["list", "copy"])
def test_what_is_no_srm(here: Path, open_server: Open, closed_port: int, words: tuple[str, ...]) -> None:
    to = (here / "to",) if "copy" in words else ()
    with as_user(shared_grid()):
        refused(mpx_there(*words, f"srm://localhost:{closed_port}/x", *to), 6, "is not reached")
        with open_server("apache") as site:
            url = site.url_of("x").replace("http:", "srm:").replace("dav:", "srm:")
            refused(mpx_there(*words, url, *to), 6, "speaks no SRM")
            refused(
                mpx_there(*words, url, *to, X509_USER_PROXY="/nowhere"), 5, "SRM takes a proxy", "get a token"
            )
    assert list(here.iterdir()) == []


def test_from_srm_to_another_site(srm: FakeSrm, open_server: Open) -> None:
    """The other end goes through gfal2 as well, without being told so."""
    content = os.urandom(1_000_001)
    (srm.folder / "file").write_bytes(content)
    (srm.folder / "file").chmod(0o644)
    with open_server("nginx") as site:
        report = api.copy(f"{srm.url}file", site.url_of("file"))
        assert (site.folder / "file").read_bytes() == content
    assert report.checksum["result"] == "verified"
