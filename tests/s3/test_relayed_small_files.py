"""Files that pass through this host to S3 and fit in one part: one request each, as those of this host."""

import base64
import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from s3.buckets import Bucket
from s3.lying_s3 import IN_PARTS, KEY, LEAST_BYTES, PART_BYTES, URL
from s3.scripted_s3 import Answer, Asked, ResetInstead, ScriptedS3, error
from sites import make
from web.lying import NAME, copied
from web.scripted_http import Answer as HttpAnswer
from web.scripted_http import Exchange, ScriptedHttp

import mpx
from mpx.serve import Server

ALWAYS = {"timeout_s": 20.0, "overwrite": "always"}


@pytest.fixture
def source() -> Iterator[ScriptedHttp]:
    with ScriptedHttp({}, {NAME: IN_PARTS[:PART_BYTES]}) as server:
        yield server


def md5_of(data: bytes) -> str:
    return hashlib.md5(data, usedforsecurity=False).hexdigest()


@pytest.mark.parametrize("size", [1, 2, PART_BYTES])
def test_one_request(source: ScriptedHttp, server: ScriptedS3, small_parts: None, size: int) -> None:
    data = source.files[NAME] = IN_PARTS[:size]
    done = copied(f"{source.origin}{NAME}", URL, **ALWAYS)
    assert done.code == 0 and server.objects[KEY] == data, done
    assert server.count("begin") == 0
    (stored,) = [asked for asked in server.asked if asked.method == "PUT"]
    told = base64.b64decode(stored.headers["content-md5"]).hex()
    assert told == md5_of(data) and "x-amz-checksum-crc32" in stored.headers


def test_one_byte_more_is_in_parts(source: ScriptedHttp, server: ScriptedS3, small_parts: None) -> None:
    data = source.files[NAME] = IN_PARTS[: PART_BYTES + 1]
    assert copied(f"{source.origin}{NAME}", URL, **ALWAYS).code == 0
    assert server.objects[KEY] == data and server.count("part") == 2


def test_many_that_go_together_tell_their_checksums(server: ScriptedS3) -> None:
    files = {f"/folder/{i}": f"content {i}".encode() for i in range(20)}
    with ScriptedHttp({}, files) as source:
        urls = [f"{source.origin}{name}" for name in files]
        mpx.copy(urls, "s3://bucket/to", mpx.CopyOptions(timeout_s=20.0))
    assert {key: server.objects[key] for key in server.objects if key.startswith("to/")} == {
        f"to/{i}": data for i, data in enumerate(files.values())
    }
    stored = [asked for asked in server.asked if asked.method == "PUT"]
    assert len(stored) == len(files) and server.count("begin") == 0
    for asked in stored:
        assert base64.b64decode(asked.headers["content-md5"]).hex() == md5_of(asked.body)


@pytest.mark.parametrize("cut", [-1, 1])
def test_another_number_of_bytes_comes(source: ScriptedHttp, server: ScriptedS3, cut: int) -> None:
    """Than was told before: what is stored is the whole, or nothing is."""
    size = len(source.files[NAME])

    def lies(exchange: Exchange) -> HttpAnswer:
        usual = exchange.usual()
        return HttpAnswer(200, {**usual.headers, "Content-Length": str(size + cut)})

    source.script, source.is_dav = {"HEAD": lies}, False
    before = server.objects[KEY]
    done = copied(f"{source.origin}{NAME}", URL, retries=1, **ALWAYS)
    assert done.code in (0, 6, 8)
    assert server.objects[KEY] == (source.files[NAME] if done.code == 0 else before)


@pytest.mark.parametrize("code", ["AccessDenied", "SlowDown", "BadDigest"])
def test_a_refusal(source: ScriptedHttp, server: ScriptedS3, code: str) -> None:
    refusals = [error(503 if code == "SlowDown" else 403, code)]

    def refuse(asked: Asked) -> Answer | None:
        return refusals.pop() if asked.method == "PUT" and refusals else None

    server.instead = refuse
    done = copied(f"{source.origin}{NAME}", URL, retries=3, **ALWAYS)
    assert not refusals and done.code == {"AccessDenied": 4}.get(code, 0), done


def test_a_lost_answer(source: ScriptedHttp, server: ScriptedS3) -> None:
    """What is stored is known again where nothing is to be replaced."""
    del server.objects[KEY]
    lost: list[Asked] = []

    def answer(asked: Asked) -> Answer | None:
        if asked.method == "PUT" and not lost:
            lost.append(asked)
            server._answer(asked)
            raise ResetInstead
        return None

    server.instead = answer
    done = copied(f"{source.origin}{NAME}", URL, timeout_s=20.0, retries=2, overwrite="never")
    assert done.code == 0 and lost and server.objects[KEY] == source.files[NAME], done


def test_other_bytes_are_stored(source: ScriptedHttp, server: ScriptedS3) -> None:
    def lie(asked: Asked, answer: Answer) -> Answer:
        return (200, {"ETag": f'"{"0" * 32}"'}, b"") if asked.method == "PUT" else answer

    server.after = lie
    done = copied(f"{source.origin}{NAME}", URL, retries=1, **ALWAYS)
    assert done.code == 8 and "stored other bytes" in done.text, done


@pytest.mark.parametrize("size", [2, 2_000_000, LEAST_BYTES])
def test_its_etag_is_an_md5_at_a_server(any_bucket: Bucket, tmp_path: Path, size: int) -> None:
    """Alone, and as one of several."""
    (tmp_path / "served").mkdir()
    data = make(tmp_path / "served/file", size).read_bytes()
    make(tmp_path / "served/other", size)
    with Server(tmp_path / "served") as server:
        mpx.copy(f"{server.url}file", f"{any_bucket.url}alone")
        mpx.copy([f"{server.url}file", f"{server.url}other"], f"{any_bucket.url}folder")
    for key in ("alone", "folder/file"):
        told = any_bucket.client.head_object(Bucket=any_bucket.name, Key=key)["ETag"]
        assert told.strip('"') == md5_of(data)
        assert any_bucket.get(key) == data
