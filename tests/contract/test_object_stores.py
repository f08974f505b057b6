"""What the endpoint of an object store must tell and do, where that differs from a folder of files.

Folders are what keys have in common, an object appears once it is whole, and there are no links.
"""

import hashlib
from collections.abc import Iterator

import pytest
from s3.buckets import Bucket, buckets_of
from s3.object_folder import ObjectPath
from sites import AWKWARD
from web.servers.moto import MotoSite

from mpx.endpoints.s3.endpoint import S3Endpoint
from mpx.engine.capabilities import Question
from mpx.engine.endpoint import Commit, Endpoint, FileInfo, Kind, Part, Stamp
from mpx.errors import DestinationError, NoChecksum, SourceError, UsageError
from mpx.location import parse_location
from mpx.options import CopyOptions
from mpx.transfer.registry import open_endpoint

ODD = [*AWKWARD, "a+b", "100%", "%2F", "ü", "日本", "é".encode().decode("latin-1"), "\u202e", ".hidden"]


@pytest.fixture(params=["moto", "seaweedfs"])
def bucket(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Bucket:
    return buckets_of(request.getfixturevalue(request.param), monkeypatch)


@pytest.fixture
def there(bucket: Bucket) -> ObjectPath:
    return ObjectPath(bucket)


def opened(bucket: Bucket, *, writing: bool) -> Endpoint:
    location = parse_location(bucket.url)
    return open_endpoint(location, CopyOptions(), lambda: False, writing=writing)


@pytest.fixture(params=[False, True], ids=["reading", "writing"])
def end(request: pytest.FixtureRequest, bucket: Bucket) -> Iterator[Endpoint]:
    end = opened(bucket, writing=request.param)
    yield end
    end.close()


@pytest.fixture
def source(bucket: Bucket) -> Iterator[Endpoint]:
    end = opened(bucket, writing=False)
    yield end
    end.close()


@pytest.fixture
def destination(bucket: Bucket) -> Iterator[Endpoint]:
    end = opened(bucket, writing=True)
    yield end
    end.close()


def test_stat(there: ObjectPath, end: Endpoint) -> None:
    (there / "sub/file").write_bytes(b"12345")
    (there / "empty").write_bytes(b"")
    (there / "made").mkdir()
    for name, size in (("/sub/file", 5), ("/empty", 0)):
        info = end.stat(name)
        assert info and (info.kind, info.size_bytes) == (Kind.FILE, size)
        assert info.modified_s and info.mode is None and info.tag
    for name in ("/", "/sub", "/sub/", "/made", "/made/"):
        info = end.stat(name)
        assert info and info.kind is Kind.FOLDER, name
    for name in ("/missing", "/su", "/sub/fil", "/sub/file/below", "/empty/", "/missing/"):
        assert end.stat(name) is None, name


def test_stats_in_their_order(there: ObjectPath, end: Endpoint) -> None:
    for number in range(0, 30, 2):
        (there / f"{number}").write_bytes(bytes(number))
    (there / "folder/x").write_bytes(b"")
    names = [f"/{number}" for number in range(30)]
    found = end.stats([*names, "/folder"])
    sizes = [info.size_bytes if isinstance(info, FileInfo) else info for info in found[:-1]]
    assert sizes == [None if number % 2 else number for number in range(30)]
    # What is written as a file has no folder in its way.
    assert isinstance(found[-1], FileInfo) or (isinstance(end, S3Endpoint) and found[-1] is None)
    assert list(end.stats([])) == []


def test_odd_names(there: ObjectPath, source: Endpoint, bucket: Bucket) -> None:
    taken = {"back\\slash"} if not isinstance(bucket.site, MotoSite) else set()  # for a slash by SeaweedFS
    odd = [name for name in ODD if name not in taken]
    for name in odd:
        (there / "sub" / name).write_bytes(name.encode())
    told = {f"/sub/{name}": len(name.encode()) for name in odd}
    found = source.stats(list(told))
    assert [info.size_bytes for info in found if isinstance(info, FileInfo)] == list(told.values())
    listed = dict(source.entries("/sub"))
    assert {f"/sub/{name}": info.size_bytes for name, info in listed.items()} == told


def test_entries(there: ObjectPath, source: Endpoint, bucket: Bucket) -> None:
    names = [f"{number:02}" for number in range(25)]  # three pages of moto
    for name in names:
        (there / "sub" / name).write_bytes(b"1")
    (there / "sub/folder/deep").write_bytes(b"1")
    (there / "sub/made").mkdir()
    (there / "subway").write_bytes(b"1")
    found = dict(source.entries("/sub"))
    assert {name for name, info in found.items() if info.kind is Kind.FOLDER} == {"folder", "made"}
    assert {name for name, info in found.items() if info.kind is Kind.FILE} == set(names)
    if isinstance(bucket.site, MotoSite):
        assert (
            sum("delimiter" in target for _, target, _ in bucket.moto.requests() if bucket.name in target)
            >= 3
        )
    assert list(source.entries("/sub/made")) == []
    assert {name for name, _ in source.entries("/")} == {"sub", "subway"}


def test_entries_of_what_is_no_folder(there: ObjectPath, source: Endpoint, destination: Endpoint) -> None:
    (there / "file").write_bytes(b"1")
    for name in ("/missing", "/file"):
        with pytest.raises(SourceError, match=f"{name}/ does not exist"):
            list(source.entries(name))
        assert list(destination.entries(name)) == []
    assert [name for name, _ in source.entries("/")] == ["file"]


def test_the_root_of_an_empty_bucket(source: Endpoint) -> None:
    assert list(source.entries("/")) == []


def test_checksums(there: ObjectPath, end: Endpoint) -> None:
    data = b"some data"
    (there / "a").write_bytes(data)
    whole = Part("/a", 0, len(data), is_whole=True)
    found = end.checksums(
        "md5", [whole, Part("/missing", 0, 1, is_whole=True), Part("/a", 1, 2)], lambda: False
    )
    assert found[0] == hashlib.md5(data).hexdigest()
    assert isinstance(found[1], SourceError | DestinationError) and "missing" in str(found[1])
    assert isinstance(found[2], NoChecksum)
    told = end.find_out(Question.CHECKSUMS)
    assert "md5" in told.checksums
    for algorithm in ("adler32", "sha256", "xxh3", "crc999"):
        assert algorithm not in told.checksums
        assert all(isinstance(told, NoChecksum) for told in end.checksums(algorithm, [whole], lambda: False))


def test_remove(there: ObjectPath, destination: Endpoint) -> None:
    for key in ("file", "folder/kept"):
        (there / key).write_bytes(b"1")
    for name in ("/file", "/file", "/no/such", "/folder"):
        destination.remove(name)
    assert [path.name for path in there.iterdir()] == ["folder"]
    assert (there / "folder/kept").exists()


def test_what_it_cannot_do(destination: Endpoint) -> None:
    assert destination.make_folders(["/a", "/a/b"]) == [False, False]
    assert not destination.find_out(Question.LINKS).links
    with pytest.raises(DestinationError, match="link"):
        destination.make_link("/link", "to")
    (error,) = destination.commit([Commit("/.x.part", "/x", None, None)], lambda _: None)
    assert isinstance(error, DestinationError) and "was not stored" in str(error)
    notes: list[str] = []
    destination.set_times([Stamp("/a", 1.0, 0o700)], notes.append)
    assert len(notes) == 1 and "keeps no folders" in notes[0]
    assert destination.free_bytes("/a") is None


@pytest.mark.parametrize("name", ["/a\0b", "/" + "x" * 1025, "/\udcff", "/a/../b", "/a/./b"])
def test_names_that_are_refused_before_anything_is_sent(destination: Endpoint, name: str) -> None:
    with pytest.raises(UsageError):
        destination.check_name(name)


def test_close_twice_and_use_again(there: ObjectPath, end: Endpoint) -> None:
    (there / "a").write_bytes(b"1")
    assert end.stat("/a")
    end.close()
    end.close()
    assert end.stat("/a")
