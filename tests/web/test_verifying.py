"""Copies to and from real web servers are verified by what those compute, by reading back, or not at all."""

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Unpack

import pytest
from random_bytes import random_bytes
from web.given_options import GivenOptions
from web.servers.apache import apache_site
from web.servers.nginx import nginx_site
from web.servers.private_network import within
from web.servers.site import WebSite
from web.servers.wsgi_dav import wsgidav_site
from web.servers.xrootd import XrootdSite, xrootd_site

from mpx.errors import IntegrityError, NoSpace, UsageError
from mpx.options import CopyOptions
from mpx.report import Report
from mpx.transfer.copy import copy

SHORT, LONG = 1000, 3_000_000
LONGER_THAN_A_SECTION = 65 << 20
PLAIN: dict[str, Callable[..., contextlib.AbstractContextManager[WebSite]]] = {
    "nginx": nginx_site,
    "apache": apache_site,
    "wsgidav": wsgidav_site,
}


@pytest.fixture
def served(tmp_path: Path) -> Path:
    (tmp_path / "served").mkdir()
    return tmp_path / "served"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Two files and a folder with a third."""
    tree = tmp_path / "tree"
    (tree / "in").mkdir(parents=True)
    for name, size_bytes in (("short", SHORT), ("in/other", SHORT), ("long", LONG)):
        (tree / name).write_bytes(random_bytes(size_bytes))
    return tree


@pytest.fixture
def xrootd(served: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[XrootdSite]:
    """XRootD; the test is in its network, and has a token."""
    with xrootd_site(served) as site, within(site.namespace):
        monkeypatch.setenv("BEARER_TOKEN", site.issuer.token())
        yield site


@pytest.fixture(params=PLAIN)
def plain(request: pytest.FixtureRequest, served: Path) -> Iterator[WebSite]:
    """A server that computes no digests."""
    with PLAIN[request.param](served, tls=True) as site:
        yield site


def copied(site: WebSite, source: object, to: object, **options: Unpack[GivenOptions]) -> Report:
    given: GivenOptions = {"ca": str(site.ca), **options}
    return copy(str(source), str(to), CopyOptions(**given))


def contents(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def test_xrootd_digests_are_compared(xrootd: XrootdSite, tree: Path, tmp_path: Path) -> None:
    """Of short files md5, of long ones adler32, each of the whole file."""
    compared = {"md5": 2 * SHORT, "adler32": LONG}
    up = copied(xrootd, tree, f"{xrootd.url}tree", recursive=True)
    assert up.checksum == {"algorithm": "adler32", "result": "verified", "bytes": compared}
    down = copied(xrootd, f"{xrootd.url}tree", tmp_path / "back", recursive=True)
    assert down.checksum["bytes"] == compared
    assert contents(tmp_path / "back") == contents(tree) == contents(xrootd.folder / "tree")


def test_xrootd_digests_by_name(xrootd: XrootdSite, tree: Path, tmp_path: Path) -> None:
    for algorithm in ("md5", "adler32"):
        report = copied(xrootd, tree / "long", f"{xrootd.url}{algorithm}", checksum=algorithm)
        assert report.checksum["bytes"] == {algorithm: LONG}
        back = copied(xrootd, f"{xrootd.url}{algorithm}", tmp_path / algorithm, checksum=algorithm)
        assert back.checksum["bytes"] == {algorithm: LONG}
        assert not [note for note in (*report.notes, *back.notes) if "reading back" in note]


def test_what_xrootd_does_not_compute_is_read_back(xrootd: XrootdSite, tree: Path, tmp_path: Path) -> None:
    report = copied(xrootd, tree / "long", f"{xrootd.url}long", checksum="sha256")
    assert report.checksum["bytes"] == {"sha256": LONG}
    assert any(note.startswith("verified by reading back: ") for note in report.notes)
    copied(xrootd, tree / "short", f"{xrootd.url}short")
    with pytest.raises(UsageError, match="tells no sha256, but adler32"):
        copied(xrootd, f"{xrootd.url}short", tmp_path / "short", checksum="sha256")


def test_a_file_of_several_sections_is_compared_as_a_whole(xrootd: XrootdSite, tmp_path: Path) -> None:
    source = tmp_path / "large"
    with source.open("wb") as file:
        file.write(b"begins")
        file.truncate(LONGER_THAN_A_SECTION)
    for to, source_name in ((f"{xrootd.url}large", source), (tmp_path / "back", f"{xrootd.url}large")):
        report = copied(xrootd, source_name, to)
        assert report.checksum["bytes"] == {"adler32": LONGER_THAN_A_SECTION}


@pytest.mark.parametrize("name", ["short", "long"])
def test_a_file_that_was_damaged_at_xrootd(
    served: Path, tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """The server knows the digest that the file had when it was stored, and sends other bytes."""
    with xrootd_site(served, checksums="max 2 adler32 md5") as xrootd, within(xrootd.namespace):
        monkeypatch.setenv("BEARER_TOKEN", xrootd.issuer.token())
        copied(xrootd, tree / name, f"{xrootd.url}{name}")
        stored = xrootd.folder / name
        before = stored.stat()
        with stored.open("r+b") as file:
            file.seek(-1, os.SEEK_END)
            file.write(bytes([(tree / name).read_bytes()[-1] ^ 1]))
        os.utime(stored, ns=(before.st_atime_ns, before.st_mtime_ns))
        with pytest.raises(IntegrityError, match="sent twice") as raised:
            copied(xrootd, f"{xrootd.url}{name}", tmp_path / "back")
    assert raised.value.exit_code == 8
    assert not (tmp_path / "back").exists()


def test_xrootd_that_was_given_no_checksums(
    served: Path, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It answers 405 to who wants a digest: files are copied, and are not verified."""
    with xrootd_site(served, checksums="") as site, within(site.namespace):
        monkeypatch.setenv("BEARER_TOKEN", site.issuer.token())
        up = copied(site, tree, f"{site.url}tree", recursive=True)
        down = copied(site, f"{site.url}tree", tree.parent / "back", recursive=True)
    for report in (up, down):
        assert report.checksum["bytes"] == {"none": 2 * SHORT + LONG}
        assert (
            sum(note.startswith("unverified: the server computes no checksums") for note in report.notes) == 1
        )
    assert contents(tree.parent / "back") == contents(tree)


def test_xrootd_that_computes_adler32_only(served: Path, tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with xrootd_site(served, checksums="max 2 adler32") as site, within(site.namespace):
        monkeypatch.setenv("BEARER_TOKEN", site.issuer.token())
        up = copied(site, tree, f"{site.url}tree", recursive=True)
        down = copied(site, f"{site.url}tree", tree.parent / "back", recursive=True)
    for report in (up, down):
        assert report.checksum["bytes"] == {"adler32": 2 * SHORT + LONG}


def test_servers_that_compute_none(plain: WebSite, tree: Path, tmp_path: Path) -> None:
    for source, to in ((tree, f"{plain.url}tree"), (f"{plain.url}tree", tmp_path / "back")):
        report = copied(plain, source, to, recursive=True)
        assert report.checksum["bytes"] == {"none": 2 * SHORT + LONG}
        assert "unverified: the server computes no checksums" in report.notes
    with pytest.raises(UsageError, match="localhost offers no such checksum") as raised:
        copied(plain, f"{plain.url}tree", tmp_path / "again", recursive=True, checksum="md5")
    assert raised.value.exit_code == 2


def test_what_such_a_server_stores_is_read_back_on_demand(plain: WebSite, tree: Path) -> None:
    for algorithm in ("md5", "xxh3"):
        report = copied(plain, tree, f"{plain.url}{algorithm}", recursive=True, checksum=algorithm)
        assert report.checksum["bytes"] == {algorithm: 2 * SHORT + LONG}
        assert any(note.startswith("verified by reading back: ") for note in report.notes)
        assert contents(plain.folder / algorithm) == contents(tree)


def test_reading_back_keeps_the_rate(served: Path, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(bytes(400_000))
    with nginx_site(served, tls=True) as site:
        report = copied(site, source, f"{site.url}file", checksum="md5", rate_bps=8e6)
    assert report.duration_s > 2 * 0.35  # there and back, 0.4 s each less what a limiter makes up for


@pytest.mark.parametrize("name", [*PLAIN, "xrootd"])
def test_a_tree_that_is_there_is_not_copied_again(
    served: Path, tree: Path, name: str, request: pytest.FixtureRequest
) -> None:
    """Most keep no modification times: what was sent when is remembered here."""
    with contextlib.ExitStack() as held:
        if name == "xrootd":
            site: WebSite = request.getfixturevalue("xrootd")
        else:
            site = held.enter_context(PLAIN[name](served, tls=True))
        os.utime(tree / "short", (1e9, 1e9))
        copied(site, tree, f"{site.url}tree", recursive=True)
        again = copied(site, tree, f"{site.url}tree", recursive=True)
        assert (again.files.moved, again.files.skipped) == (0, 3), again.notes
        (tree / "short").write_bytes(bytes(SHORT))
        os.utime(tree / "short", (1.5e9, 1.5e9))
        third = copied(site, tree, f"{site.url}tree", recursive=True)
        assert (third.files.moved, third.files.skipped) == (1, 2)
        assert contents(site.folder / "tree") == contents(tree)


def test_nginx_keeps_modification_times(served: Path, tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which are the Date of the PUT there; so another host, which has no notes, copies nothing again."""
    for number, path in enumerate(sorted(path for path in tree.rglob("*") if path.is_file())):
        os.utime(path, (1e9 + number + 0.5, 1e9 + number + 0.5))
    with nginx_site(served, tls=True) as site:
        one = copied(site, tree / "short", f"{site.url}one")
        assert not [note for note in one.notes if "times" in note]
        report = copied(site, tree, f"{site.url}tree", recursive=True)
        assert [note for note in report.notes if "times" in note] == [
            "modification times of folders are not kept: WebDAV has no way to set them"
        ]
        for path in tree.rglob("*"):
            if path.is_file():
                stored = site.folder / "tree" / path.relative_to(tree)
                assert stored.stat().st_mtime == int(path.stat().st_mtime)
        monkeypatch.setenv("XDG_STATE_HOME", str(tree.parent / "elsewhere"))
        again = copied(site, tree, f"{site.url}tree", recursive=True)
        assert (again.files.moved, again.files.skipped) == (0, 3)


def test_what_has_no_room_is_not_sent(served: Path, tmp_path: Path) -> None:
    source = tmp_path / "source"
    with source.open("wb") as file:
        file.truncate(1 << 43)
    with wsgidav_site(served, tls=True) as site:
        with pytest.raises(NoSpace, match="not enough space") as raised:
            copied(site, source, f"{site.url}new/file")
        assert raised.value.exit_code == 9
    assert not [path for path in served.rglob("*") if path.is_file()]
