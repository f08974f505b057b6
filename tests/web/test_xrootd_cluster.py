"""XRootD that leads to a data server, with the token in the URL that it leads to."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from web.servers.private_network import within
from web.servers.xrootd import XrootdSite
from web.servers.xrootd_cluster import xrootd_cluster

from mpx.errors import UsageError
from mpx.options import CopyOptions
from mpx.transfer.copy import copy

SIZE = 100_000

Cluster = tuple[XrootdSite, XrootdSite]


@pytest.fixture(scope="module")
def running() -> Iterator[Cluster]:
    """Head and data server, which all tests here share."""
    with tempfile.TemporaryDirectory(prefix="mpx-web-", ignore_cleanup_errors=True) as root:
        Path(root).chmod(0o755)  # the servers work as somebody else
        with xrootd_cluster(Path(root)) as cluster:
            yield cluster


@pytest.fixture
def cluster(running: Cluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    """Both; the test is in their network, and has a token."""
    monkeypatch.setenv("BEARER_TOKEN", running[0].issuer.token())
    with within(running[0].namespace):
        yield running


def test_a_file_goes_up_and_down(cluster: Cluster, tmp_path: Path) -> None:
    """What was stored is given its name by the data server, too, which is shown the token as it was led."""
    head, data = cluster
    (tmp_path / "file").write_bytes(os.urandom(SIZE))
    options = CopyOptions(ca=str(head.ca))
    copy(str(tmp_path / "file"), f"{head.url}up", options)
    assert (data.folder / "up").read_bytes() == (tmp_path / "file").read_bytes()
    report = copy(f"{head.url}up", str(tmp_path / "down"), options)
    assert (tmp_path / "down").read_bytes() == (tmp_path / "file").read_bytes()
    assert report.checksum["result"] == "verified"


def test_the_data_server_is_told_to_copy_where_it_may_have_the_token(cluster: Cluster) -> None:
    head, data = cluster
    content = os.urandom(SIZE)
    (data.folder / "source").write_bytes(content)
    places = f"{head.url}source", f"{head.url}copied"
    with pytest.raises(UsageError, match=r"--send-token-to 127\.0\.0\.1 permits that"):
        copy(*places, CopyOptions(ca=str(head.ca), third_party="push"))
    permitted = CopyOptions(ca=str(head.ca), third_party="push", send_token_to=("127.0.0.1",))
    report = copy(*places, permitted)
    assert (data.folder / "copied").read_bytes() == content
    assert any("(push)" in str(note) for note in report.notes)


def test_by_its_own_protocol(cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The head has no file itself: a listing is of all its servers."""
    head, data = cluster
    monkeypatch.setenv("X509_CERT_DIR", str(head.trusted))
    for name in ("tree/a", "tree/below/b"):
        (data.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (data.folder / name).write_bytes(os.urandom(SIZE))
    options = CopyOptions(recursive=True)
    report = copy(f"{head.root_url}tree", str(tmp_path / "tree"), options)
    assert report.files.moved == 2
    for name in ("tree/a", "tree/below/b"):
        assert (tmp_path / name).read_bytes() == (data.folder / name).read_bytes()
    report = copy(str(tmp_path / "tree"), f"{head.root_url}up again", options)
    assert report.files.moved == 2
    assert (data.folder / "up again/below/b").read_bytes() == (tmp_path / "tree/below/b").read_bytes()
