"""Copies from one XRootD to another by HTTP-TPC, in one network: data never come through this host."""

import json
import os
import shutil
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Unpack

import pytest
from random_bytes import random_bytes
from web.given_options import GivenOptions
from web.servers.nginx import nginx_site
from web.servers.private_network import within
from web.servers.xrootd import ACCOUNT, XrootdSite, xrootd_site

from mpx.errors import DestinationError, Interrupted, PartialFailure
from mpx.options import CopyOptions
from mpx.report import Progress, Report
from mpx.transfer.copy import copy

SIZE = 100_000
PULL, PUSH = "(pull)", "(push)"

Pair = tuple[XrootdSite, XrootdSite]


@pytest.fixture(scope="module")
def sites() -> Iterator[Pair]:
    """Source and destination, which all tests here share."""
    with tempfile.TemporaryDirectory(prefix="mpx-web-", ignore_cleanup_errors=True) as root:
        folders = [Path(root) / name for name in ("source", "destination")]
        Path(root).chmod(0o755)  # the servers work as somebody else
        for folder in folders:
            folder.mkdir()
        with (
            xrootd_site(folders[0]) as source,
            within(source.namespace),
            xrootd_site(folders[1], beside=source) as destination,
        ):
            yield source, destination


@pytest.fixture
def pair(sites: Pair, monkeypatch: pytest.MonkeyPatch) -> Iterator[Pair]:
    """Both; the test is in their network, and has a token."""
    monkeypatch.setenv("BEARER_TOKEN", sites[0].issuer.token())
    with within(sites[0].namespace):
        yield sites


def written(site: XrootdSite, name: str, size_bytes: int = SIZE) -> bytes:
    data = random_bytes(size_bytes)
    path = site.folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return data


def go(pair: Pair, source: str, to: str, **options: Unpack[GivenOptions]) -> Report:
    given: GivenOptions = {"ca": str(pair[0].ca), "third_party": "only", **options}
    return copy(pair[0].url + source, pair[1].url + to, CopyOptions(**given))


def said(report: Report, words: str) -> bool:
    return any(words in note for note in report.notes)


@pytest.mark.parametrize(("given", "way"), [("auto", PULL), ("only", PULL), ("pull", PULL), ("push", PUSH)])
def test_one_file_is_copied_straight_and_compared(pair: Pair, given: str, way: str) -> None:
    data = written(pair[0], f"one {given}")
    report = go(pair, f"one%20{given}", given, third_party=given, checksum="adler32")
    assert (pair[1].folder / given).read_bytes() == data
    assert report.checksum == {"algorithm": "adler32", "result": "verified", "bytes": {"adler32": SIZE}}
    assert said(report, way) and not said(report, "this host")
    passive = pair[0] if way == PULL else pair[1]
    assert said(report, f"with your token for localhost:{passive.port}")
    assert os.environ["BEARER_TOKEN"] not in json.dumps(report.as_dict())


@pytest.mark.parametrize("way", ["pull", "push"])
def test_a_tree(pair: Pair, way: str) -> None:
    """Two at once: XRootD 5.5 crashes now and then when there are many."""
    data = {f"sub{i % 3}/{i}": written(pair[0], f"tree-{way}/sub{i % 3}/{i}", 999 * i) for i in range(50)}
    report = go(
        pair, f"tree-{way}", f"tree-{way}", third_party=way, recursive=True, streams=2, checksum="none"
    )
    assert report.files.moved == 50 and not said(report, "this host")
    folder = pair[1].folder / f"tree-{way}"
    assert data == {str(path.relative_to(folder)): path.read_bytes() for path in folder.glob("sub*/*")}


@pytest.mark.parametrize("way", ["pull", "push"])
def test_files_that_are_refused_at_first_keep_no_others(pair: Pair, way: str) -> None:
    """By push with 401, by pull with 403 of the other server; this way of copying is not refused."""
    data = {str(i): written(pair[0], f"closed-{way}/{i}", 1000) for i in range(4)}
    for name in ("0", "1", "3"):
        (pair[0].folder / f"closed-{way}" / name).chmod(0)
    with pytest.raises(PartialFailure, match="3 of 4 files were not copied") as raised:
        go(pair, f"closed-{way}", f"closed-{way}", third_party=way, recursive=True, streams=1)
    assert (pair[1].folder / f"closed-{way}" / "2").read_bytes() == data["2"]
    assert raised.value.report is not None and not said(raised.value.report, "this host")


def test_a_folder_that_cannot_be_written_keeps_no_others(pair: Pair) -> None:
    """XRootD answers COPY with 401, as if it did not know who asks."""
    data = {f"{folder}/file": written(pair[0], f"sealed/{folder}/file") for folder in "abc"}
    (pair[1].folder / "sealed" / "b").mkdir(parents=True)
    shutil.chown(pair[1].folder / "sealed", ACCOUNT)
    with pytest.raises(PartialFailure, match=r"1 of 3 files were not copied.* 401 .* for this file"):
        go(pair, "sealed", "sealed", third_party="pull", recursive=True, streams=1)
    for name in ("a/file", "c/file"):
        assert (pair[1].folder / "sealed" / name).read_bytes() == data[name]


def test_a_folder_that_is_not_ours_is_told_at_once(pair: Pair) -> None:
    """By no other way could it be written in."""
    written(pair[0], "file")
    (pair[1].folder / "of root").mkdir()
    with pytest.raises(DestinationError, match=r"does not store .*: 403 Forbidden") as raised:
        go(pair, "file", "of%20root/file", third_party="auto")
    report = raised.value.report
    assert report and not said(report, "this host") and not said(report, PUSH)
    assert not [*(pair[1].folder / "of root").iterdir()]


def test_a_large_file_in_several_streams(pair: Pair) -> None:
    data = written(pair[0], "large", 40 << 20)
    report = go(pair, "large", "large", streams=3)
    assert (pair[1].folder / "large").read_bytes() == data
    assert report.checksum["result"] == "verified"


@pytest.mark.parametrize("way", ["pull", "push"])
def test_a_macaroon_is_handed_over_by_the_holder_of_a_proxy(
    pair: Pair, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("BEARER_TOKEN")
    monkeypatch.setenv("X509_USER_PROXY", str(pair[0].proxy))
    data = written(pair[0], f"with {way}")
    report = go(pair, f"with%20{way}", f"macaroon-{way}", third_party=way)
    assert (pair[1].folder / f"macaroon-{way}").read_bytes() == data
    assert said(report, "with a macaroon for that file, for an hour")


def test_a_server_that_knows_no_others_is_written_to_or_read_from(pair: Pair, tmp_path: Path) -> None:
    data = written(pair[0], "plain")
    (tmp_path / "plain").mkdir()
    with nginx_site(tmp_path / "plain", tls=True) as plain:
        options = CopyOptions(ca=str(pair[0].ca), third_party="only")
        report = copy(f"{pair[0].url}plain", f"{plain.url}there", options)
        assert said(report, PUSH) and (plain.folder / "there").read_bytes() == data
        report = copy(f"{plain.url}there", f"{pair[1].url}back", options)
        assert said(report, PULL) and (pair[1].folder / "back").read_bytes() == data


def test_a_copy_that_is_cancelled_leaves_nothing(pair: Pair) -> None:
    """By pull: XRootD 5.5 may crash where it is written to by one that stops."""
    source, folder, cancel = (
        pair[0].folder / "endless",
        pair[1].folder / "cancelled",
        threading.Event(),
    )
    with source.open("wb") as file:
        file.truncate(4 << 30)
    folder.mkdir()
    folder.chmod(0o777)

    def stop_once_it_grows(_: Progress) -> None:
        if any(path.stat().st_size for path in folder.iterdir()):
            cancel.set()

    options = CopyOptions(ca=str(pair[0].ca), third_party="pull", streams=1)
    with pytest.raises(Interrupted):
        copy(
            f"{pair[0].url}endless",
            f"{pair[1].url}cancelled/file",
            options,
            on_progress=stop_once_it_grows,
            cancel=cancel,
        )
    assert not list(folder.iterdir())
