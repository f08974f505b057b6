"""Between XRootD and S3, through this host: what is told of each copy that it is the same."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from s3.buckets import Bucket, buckets_of
from web.servers.moto import MotoSite, moto_site
from web.servers.private_network import private_network, within
from web.servers.root_server import RootServer, root_server

import mpx

MIB = 1024 * 1024
TREE = mpx.CopyOptions(recursive=True)
SIZES = {"a": 2, "below/b": 70_001, "below/c": 3 * MIB + 1}


@pytest.fixture(scope="module")
def running() -> Iterator[tuple[RootServer, MotoSite]]:
    if os.geteuid() != 0:
        pytest.skip("a network of its own is made by root")
    with tempfile.TemporaryDirectory(prefix="mpx-s3-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        folder.chmod(0o755)  # the server works as somebody else
        (folder / "moto").mkdir()
        with (
            private_network() as namespace,
            within(namespace),
            root_server(folder / "root") as server,
            moto_site(folder / "moto") as moto,
        ):
            yield server, moto


@pytest.fixture
def server(running: tuple[RootServer, MotoSite], monkeypatch: pytest.MonkeyPatch) -> RootServer:
    monkeypatch.setenv("BEARER_TOKEN", "")
    return running[0]


@pytest.fixture
def s3(running: tuple[RootServer, MotoSite], monkeypatch: pytest.MonkeyPatch) -> Bucket:
    return buckets_of(running[1], monkeypatch)


def test_a_tree_there_and_back_is_verified(server: RootServer, s3: Bucket, tmp_path: Path) -> None:
    """Each file is one part, so that S3 tells its MD5, and so does XRootD."""
    for name, size in SIZES.items():
        path = server.folder / f"{tmp_path.name}/{name}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(os.urandom(size))
    tree = f"{server.url}{tmp_path.name}"
    there = mpx.copy(tree, f"{s3.url}tree", TREE)
    assert there.checksum["bytes"] == {"md5": sum(SIZES.values())}, there.notes
    back = mpx.copy(f"{s3.url}tree", f"{tree}-back", TREE)
    assert back.checksum["bytes"] == {"md5": sum(SIZES.values())}, back.notes
    for name in SIZES:
        copied, first = (server.folder / f"{tmp_path.name}{end}/{name}" for end in ("-back", ""))
        assert copied.read_bytes() == first.read_bytes()
