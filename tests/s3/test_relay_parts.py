"""From another server to S3 through this host: in parts that are not kept here, and completed at the end."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from mpx_command import copied as is_copied
from mpx_command import mpx
from s3.buckets import Bucket
from s3.lying_s3 import IN_PARTS, KEY, LEAST_BYTES, PART_BYTES, URL, WHOLE_BYTES
from s3.scripted_s3 import Answer, Asked, ResetInstead, ScriptedS3, error
from sites import make
from web.lying import NAME, Outcome, copied
from web.scripted_http import Answer as HttpAnswer
from web.scripted_http import Exchange, ScriptedHttp

from mpx.serve import Server

OLD = b"the old one"


@pytest.fixture
def source() -> Iterator[ScriptedHttp]:
    with ScriptedHttp({}, {NAME: IN_PARTS}) as server:
        yield server


def passed(source: ScriptedHttp, server: ScriptedS3, **options: object) -> Outcome:
    """Copy from one server to the other, where an old object is replaced or stays as it is."""
    server.objects[KEY] = OLD
    options = {"timeout_s": 20.0, "overwrite": "always", **options}
    outcome = copied(f"{source.origin}{NAME}", URL, **options)
    assert server.objects[KEY] == (source.files[NAME] if outcome.code == 0 else OLD), outcome
    return outcome


def test_it_is_whole_before_it_has_its_name(any_bucket: Bucket, least_parts: None, tmp_path: Path) -> None:
    (tmp_path / "served").mkdir()
    data = make(tmp_path / "served/file", 2 * LEAST_BYTES + 7).read_bytes()
    with Server(tmp_path / "served") as server:
        done = mpx("copy", f"{server.url}file", f"{any_bucket.url}key", "--report", tmp_path / "r.json")
    is_copied(done)
    assert any_bucket.get("key") == data and not any_bucket.uploads()
    report = json.loads((tmp_path / "r.json").read_text())
    assert report["checksum"]["result"] == "verified", report["notes"]
    assert report["checksum"]["bytes"] == {"md5": len(data)}


def test_parts_are_passed_on(source: ScriptedHttp, server: ScriptedS3, small_parts: None) -> None:
    assert passed(source, server).code == 0
    sizes = [len(asked.body) for asked in server.asked if asked.what == "part"]
    assert sizes == [PART_BYTES, PART_BYTES, len(IN_PARTS) - 2 * PART_BYTES]


@pytest.mark.parametrize("size", [0, 1, WHOLE_BYTES, WHOLE_BYTES + 1, len(IN_PARTS)])
def test_a_size_that_nobody_tells(
    source: ScriptedHttp, server: ScriptedS3, small_parts: None, size: int
) -> None:
    source.files[NAME] = IN_PARTS[:size]

    def untold(exchange: Exchange) -> HttpAnswer:
        usual = exchange.usual()
        body = b"%X\r\n%s\r\n0\r\n\r\n" % (size, usual.body) if size else b"0\r\n\r\n"
        if exchange.asked.method == "HEAD":
            body = b""
        return HttpAnswer(200, {"Transfer-Encoding": "chunked"}, body)

    source.script, source.is_dav = {"GET": untold, "HEAD": untold}, False
    assert passed(source, server).code == 0


@pytest.mark.parametrize("code", ["AccessDenied", "SlowDown", "NoSuchUpload", "ExpiredToken", "BadDigest"])
def test_a_part_is_refused(source: ScriptedHttp, server: ScriptedS3, small_parts: None, code: str) -> None:
    """Once: what passes is tried again, from the first part on, as nobody has those before."""
    refusals = [error(503 if code == "SlowDown" else 403, code)]

    def refuse(asked: Asked) -> Answer | None:
        return refusals.pop() if asked.query.get("partNumber") == "2" and refusals else None

    server.instead = refuse
    done = passed(source, server, retries=3)
    assert done.code == {"AccessDenied": 4, "ExpiredToken": 5}.get(code, 0), done


def test_a_part_is_cut_off(source: ScriptedHttp, server: ScriptedS3, small_parts: None) -> None:
    faults = [ResetInstead]

    def fail(asked: Asked) -> None:
        if asked.query.get("partNumber") == "3" and faults:
            raise faults.pop()

    server.instead = fail
    assert passed(source, server).code == 0


def test_an_idle_connection_ends(source: ScriptedHttp, server: ScriptedS3, small_parts: None) -> None:
    """While the source takes its time, as a tape does: each attempt would fail by that."""

    def end(asked: Asked, answer: Answer) -> Answer:
        if asked.what == "begin":
            server.end_all_but(asked)
        return answer

    server.after = end
    assert passed(source, server, retries=0).code == 0


def test_other_bytes_are_stored(source: ScriptedHttp, server: ScriptedS3, small_parts: None) -> None:
    def lie(asked: Asked, answer: Answer) -> Answer:
        return (200, {"ETag": f'"{"0" * 32}"'}, b"") if asked.what == "part" else answer

    server.after = lie
    done = passed(source, server, retries=1)
    assert done.code == 8 and "stored other bytes" in done.text, done


@pytest.mark.parametrize("cut", [-1, 1])
def test_another_number_of_bytes_comes(
    source: ScriptedHttp, server: ScriptedS3, small_parts: None, cut: int
) -> None:
    """Than was told before: what is stored has no name."""

    def lies(exchange: Exchange) -> HttpAnswer:
        usual = exchange.usual()
        if exchange.asked.method == "HEAD":
            return HttpAnswer(200, {**usual.headers, "Content-Length": str(len(IN_PARTS) + cut)})
        return usual

    source.script, source.is_dav = {"HEAD": lies}, False
    assert passed(source, server, retries=1).code in (0, 6, 8)
