"""Copies between two servers of which one, or both, are S3."""

import json
from pathlib import Path

import pytest
from mpx_command import copied, mpx, refused
from s3.buckets import Bucket, buckets_of
from sites import make
from web.servers.moto import MotoSite
from web.servers.s3_site import S3Site

import mpx as api
from mpx.endpoints.s3 import copy_worker
from mpx.engine.file_transfer import FileTransfer
from mpx.serve import Server

MIB = 1 << 20


@pytest.fixture
def other(any_bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> Bucket:
    """Another bucket of the same server."""
    return buckets_of(any_bucket.site, monkeypatch)


def test_the_server_copies(any_bucket: Bucket, other: Bucket, tmp_path: Path) -> None:
    data = {"t/one": b"1" * 300_000, "t/b c/ü+": b"2", "t/empty": b""}
    for key, content in data.items():
        any_bucket.put(key, content)
    done = mpx("copy", "-r", f"{any_bucket.url}t", f"{other.url}t", "--report", tmp_path / "r.json")
    copied(done)
    assert {key: other.get(key) for key in sorted(other.keys())} == data
    report = json.loads((tmp_path / "r.json").read_text())
    assert report["checksum"]["result"] == "verified", report["notes"]
    assert not any("congctl" in note for note in report["notes"]), report["notes"]
    if isinstance(any_bucket.site, MotoSite):
        asked = any_bucket.site.requests()
        sent = [line for line in asked if line[0] == "GET" and line[1].startswith(f"/{any_bucket.name}/t/")]
        assert not sent, "data passed through this host"


def test_large_ones_in_parts(
    any_bucket: Bucket, other: Bucket, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(copy_worker, "MOST_COPIED_BYTES", 6 * MIB)
    monkeypatch.setattr(copy_worker, "COPIED_PART_BYTES", 5 * MIB)
    monkeypatch.setattr(copy_worker, "part_bytes_of", lambda _: 5 * MIB)
    monkeypatch.setenv("MPX_STATE_DIR", str(tmp_path))
    data = make(tmp_path / "x", 11 * MIB + 3).read_bytes()
    any_bucket.put("large", data)
    api.copy(f"{any_bucket.url}large", f"{other.url}large")
    assert other.get("large") == data and not other.uploads()
    assert other.client.head_object(Bucket=other.name, Key="large")["ETag"].endswith('-3"')


def test_a_source_that_changed_is_not_copied(
    seaweedfs: S3Site, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The server is told what it must be."""
    bucket = buckets_of(seaweedfs, monkeypatch)
    monkeypatch.setenv("MPX_STATE_DIR", str(tmp_path))
    bucket.put("key", b"old")
    ask = copy_worker.S3CopyWorker._copy

    def changing(worker: copy_worker.S3CopyWorker, file: FileTransfer) -> None:
        bucket.put("key", b"new")
        ask(worker, file)

    monkeypatch.setattr(copy_worker.S3CopyWorker, "_copy", changing)
    with pytest.raises(api.MpxError, match="changed"):
        api.copy(f"{bucket.url}key", f"{bucket.url}copy")
    assert bucket.keys() == {"key"}


def test_through_this_host(any_bucket: Bucket, other: Bucket) -> None:
    data = {f"t/{number}": b"%d" % number * 1000 for number in range(20)} | {"t/large": b"x" * (9 * MIB)}
    for key, content in data.items():
        any_bucket.put(key, content)
    copied(mpx("copy", "-r", f"{any_bucket.url}t", f"{other.url}t", "--third-party", "never"))
    assert {key: other.get(key) for key in sorted(other.keys())} == data


@pytest.mark.parametrize("size", [0, 100_003, 9 * MIB + 1])
def test_to_and_from_mpx_serve(bucket: Bucket, tmp_path: Path, size: int) -> None:
    (tmp_path / "served").mkdir()
    source = make(tmp_path / "served/source", size)
    with Server(tmp_path / "served", writable=True) as server:
        copied(mpx("copy", f"{server.url}source", f"{bucket.url}key"))
        assert bucket.get("key") == source.read_bytes()
        copied(mpx("copy", f"{bucket.url}key", f"{server.url}back"))
    assert (tmp_path / "served/back").read_bytes() == source.read_bytes()


def test_nothing_goes_straight_to_others(bucket: Bucket, tmp_path: Path) -> None:
    bucket.put("key")
    with Server(tmp_path, writable=True) as server:
        words = ("copy", f"{bucket.url}key", f"{server.url}back", "--third-party", "only")
        refused(mpx(*words), 2, "--third-party only")
