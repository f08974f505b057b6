"""Uploads in parts: several at once, continued after a kill, begun anew, and discarded."""

from collections.abc import Callable
from pathlib import Path

import pytest
from mpx_command import copied, mpx, running
from s3.buckets import Bucket, buckets_of
from sites import make
from web.servers.s3_site import S3Site

from mpx.endpoints.s3.parts import LEAST_PART_BYTES

MIB = 1 << 20
SIZE = 27 * MIB + 1
PARTS = -(-SIZE // LEAST_PART_BYTES)
SLOWLY = ("--rate", "60Mbit/s", "--streams", "2")  # a part takes more than a second
WITHIN_S = 60.0


def stored(bucket: Bucket) -> int:
    """How many parts were stored so far."""
    return sum(map(len, bucket.moto.parts(f"{bucket.name}/key")))


def assert_sent_once(bucket: Bucket) -> None:
    """Assert that no part was sent that was there when a run asked for those that are."""
    before: set[int] = set()
    for numbers in bucket.moto.parts(f"{bucket.name}/key"):
        assert not before & set(numbers), "a part was sent although it was there"
        before |= set(numbers)
    assert before == set(range(1, PARTS + 1))


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return make(tmp_path / "source", SIZE)


@pytest.fixture
def interrupted(bucket: Bucket, source: Path, eventually: Callable[..., None]) -> Bucket:
    """A bucket to which an upload was killed after two parts."""
    with running("copy", source, f"{bucket.url}key", *SLOWLY) as process:
        eventually(lambda: stored(bucket) >= 2)
        process.kill()
        process.wait()
    assert bucket.keys() == set() and len(bucket.uploads()) == 1
    return bucket


def test_a_killed_upload_goes_on(interrupted: Bucket, source: Path, tmp_path: Path) -> None:
    bucket = interrupted
    report = tmp_path / "report.json"
    copied(mpx("copy", source, f"{bucket.url}key", "--report", report))
    assert bucket.get("key") == source.read_bytes()
    assert_sent_once(bucket)
    assert not bucket.uploads()
    assert mpx("unfinished").err == "nothing is unfinished here\n"


def test_killed_again_and_again(interrupted: Bucket, source: Path, eventually: Callable[..., None]) -> None:
    bucket = interrupted
    before = stored(bucket)
    with running("copy", source, f"{bucket.url}key", *SLOWLY) as process:
        eventually(lambda: stored(bucket) > before)
        process.kill()
        process.wait()
    copied(mpx("copy", source, f"{bucket.url}key"))
    assert bucket.get("key") == source.read_bytes()
    assert_sent_once(bucket)


def test_parts_of_other_bytes_are_sent_again(interrupted: Bucket, source: Path) -> None:
    """As the server may have kept something else, with the right size."""
    bucket = interrupted
    (upload,) = bucket.uploads()
    names = {"Bucket": bucket.name, "Key": "key", "UploadId": upload["UploadId"]}
    (first, *_) = bucket.client.list_parts(**names)["Parts"]
    bucket.client.upload_part(**names, PartNumber=first["PartNumber"], Body=b"?" * first["Size"])
    copied(mpx("copy", source, f"{bucket.url}key"))
    assert bucket.get("key") == source.read_bytes()


def test_a_changed_source_begins_anew(interrupted: Bucket, source: Path) -> None:
    bucket = interrupted
    make(source, SIZE)
    copied(mpx("copy", source, f"{bucket.url}key"))
    assert bucket.get("key") == source.read_bytes() and not bucket.uploads()


def test_an_aborted_upload_begins_anew(interrupted: Bucket, source: Path) -> None:
    bucket = interrupted
    bucket.abort_all()
    copied(mpx("copy", source, f"{bucket.url}key"))
    assert bucket.get("key") == source.read_bytes()


def test_an_upload_that_is_aborted_on_its_way_begins_anew(
    seaweedfs: S3Site,
    monkeypatch: pytest.MonkeyPatch,
    source: Path,
    tmp_path: Path,
    eventually: Callable[..., None],
) -> None:
    bucket = buckets_of(seaweedfs, monkeypatch)
    report = tmp_path / "report.json"
    with running("copy", source, f"{bucket.url}key", *SLOWLY, "--report", report) as process:
        eventually(bucket.parts)
        bucket.abort_all()
        _, err = process.communicate(WITHIN_S)
        assert (process.wait(), err) == (0, b"")
    assert bucket.get("key") == source.read_bytes() and not bucket.uploads()
    assert "has forgotten the upload" in report.read_text()


def test_discarding_aborts(interrupted: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the server that has it, which is noted, wherever others go by now."""
    bucket = interrupted
    bucket.put("key", b"the old one")
    assert f"-> {bucket.url}key (s3:// at {bucket.site.url}): 0 files done" in mpx("unfinished").out
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    copied(mpx("unfinished", "--discard"))
    assert not bucket.uploads() and bucket.get("key") == b"the old one"
    assert mpx("unfinished").err == "nothing is unfinished here\n"


def test_the_same_url_at_another_server_is_another_copy(interrupted: Bucket, source: Path) -> None:
    """Neither continues or forgets the upload of the other; here it is one server by another name."""
    bucket, elsewhere = interrupted, interrupted.site.url.replace("localhost", "127.0.0.1")
    copied(mpx("copy", source, f"{bucket.url}key", "--endpoint-url", elsewhere))
    assert len(bucket.uploads()) == 1
    assert mpx("unfinished").out.count(f"(s3:// at {bucket.site.url}): 0 files done") == 1
    copied(mpx("copy", source, f"{bucket.url}key", "--overwrite", "always"))
    assert not bucket.uploads() and mpx("unfinished").err == "nothing is unfinished here\n"


def test_parts_are_sent_by_several(bucket: Bucket, source: Path) -> None:
    copied(mpx("copy", source, f"{bucket.url}key", "--streams", "4"))
    requests = [target for method, target, _ in bucket.moto.requests() if f"{bucket.name}/key" in target]
    assert sum("partNumber" in target for target in requests) == PARTS
    assert bucket.get("key") == source.read_bytes()


def test_the_old_object_stays_until_the_new_one_is_whole(
    interrupted: Bucket, source: Path, eventually: Callable[..., None]
) -> None:
    bucket = interrupted
    bucket.put("key", b"the old one")
    with running("copy", source, f"{bucket.url}key", *SLOWLY) as process:
        before = stored(bucket)
        eventually(lambda: stored(bucket) > before)
        assert bucket.get("key") == b"the old one"
        process.kill()
        process.wait()
