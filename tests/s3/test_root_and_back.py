"""Between XRootD and S3, through this host: what is told of each copy that it is the same."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from s3.buckets import Bucket, buckets_of
from sites import sftp_site
from web.servers.moto import MotoSite, moto_site
from web.servers.private_network import servers_folder
from web.servers.root_server import RootServer, root_server

import mpx
from mpx.errors import UsageError

MIB = 1024 * 1024
TREE = mpx.CopyOptions(recursive=True)
SIZES = {"a": 2, "below/b": 70_001, "below/c": 3 * MIB + 1}


@pytest.fixture(scope="module")
def running() -> Iterator[tuple[RootServer, MotoSite]]:
    with servers_folder() as folder:
        (folder / "moto").mkdir()
        with root_server(folder / "root") as server, moto_site(folder / "moto") as moto:
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


IN_PARTS = [bytes(5 * MIB), b"another size\n" * 500_000, b"the end"]


@pytest.mark.parametrize("asked", ["auto", "md5", "adler32"])
def test_what_is_in_odd_parts_is_compared_as_it_passed(
    server: RootServer, s3: Bucket, tmp_path: Path, asked: str
) -> None:
    """S3 tells an MD5 of MD5s of it, of parts of several sizes."""
    s3.put_in_parts("parts", IN_PARTS)
    name = f"{tmp_path.name}-{asked}"
    options = mpx.CopyOptions(checksum=asked)
    if asked == "adler32":  # S3 has none at all
        with pytest.raises(UsageError, match="offers no such checksum"):
            mpx.copy(f"{s3.url}parts", f"{server.url}{name}", options)
        assert not (server.folder / name).exists()
        return
    report = mpx.copy(f"{s3.url}parts", f"{server.url}{name}", options)
    size = sum(map(len, IN_PARTS))
    by = "adler32" if asked == "auto" else asked
    assert report.checksum == {"algorithm": by, "result": "verified", "bytes": {by: size}, "of_passed": size}
    assert not [note for note in report.notes if "unverified" in note]
    assert any("compared with what passed through this host" in note for note in report.notes)
    assert (server.folder / name).read_bytes() == b"".join(IN_PARTS)


@pytest.mark.parametrize("asked", ["auto", "md5"])
def test_what_is_one_part(server: RootServer, s3: Bucket, tmp_path: Path, asked: str) -> None:
    s3.put_in_parts("part", [b"ab"])
    name = f"{tmp_path.name}-{asked}"
    report = mpx.copy(f"{s3.url}part", f"{server.url}{name}", mpx.CopyOptions(checksum=asked))
    assert report.checksum == {"algorithm": "md5", "result": "verified", "bytes": {"md5": 2}, "of_passed": 2}
    assert (server.folder / name).read_bytes() == b"ab"


def test_what_is_sent_in_parts_is_compared_as_it_passed(
    server: RootServer, s3: Bucket, tmp_path: Path
) -> None:
    path = server.folder / tmp_path.name
    path.write_bytes(b"".join(IN_PARTS))
    report = mpx.copy(f"{server.url}{tmp_path.name}", f"{s3.url}up")
    assert report.checksum["result"] == "verified", report.notes
    assert s3.get("up") == b"".join(IN_PARTS)


@pytest.mark.parametrize(("size", "by"), [(1000, "md5"), (9 * MIB, "adler32")])
def test_by_ssh_without_mpx_there(server: RootServer, tmp_path: Path, size: int, by: str) -> None:
    """Its host computes SHA-256, and XRootD does not."""
    (tmp_path / "served").mkdir()
    with sftp_site(tmp_path / "served") as there:
        data = there.write("file", os.urandom(size)).read_bytes()
        report = mpx.copy(there.url_of("file"), f"{server.url}{tmp_path.name}")
        told = {"algorithm": by, "result": "verified", "bytes": {by: size}, "of_passed": size}
        assert report.checksum == told, report.notes
        assert (server.folder / tmp_path.name).read_bytes() == data
        back = mpx.copy(f"{server.url}{tmp_path.name}", there.url_of("back"))
        assert (there.folder / "back").read_bytes() == data
        if size > MIB:  # it comes in pieces, its end first: of those SHA-256 is not of the whole
            assert back.checksum["result"] == "unverified"
            assert any("passed through this host in its order" in note for note in back.notes)
            return
        told = {"algorithm": "sha256", "result": "verified", "bytes": {"sha256": size}, "of_passed": size}
        assert back.checksum == told, back.notes
