"""Servers that refuse, lie, or are elsewhere: what the copy makes of it."""

import itertools
import json
import re
from email.utils import formatdate
from pathlib import Path

import pytest
from mpx_command import copied, mpx, refused
from s3.scripted_s3 import NAME_SPACE, Answer, Asked, ScriptedS3, error
from sites import make

LARGE = (16 << 20) + 1
ELSEWHERE = "eu-south-9"


@pytest.fixture
def server(scripted: ScriptedS3) -> ScriptedS3:
    return scripted


def up(tmp_path: Path, size: int = 10, *options: str) -> tuple[Path, list[object]]:
    source = make(tmp_path / "source", size)
    return source, ["copy", source, "s3://bucket/key", "--report", tmp_path / "r.json", *options]


def notes(tmp_path: Path) -> str:
    return json.dumps(json.loads((tmp_path / "r.json").read_text())["notes"])


def test_completion_may_fail_with_status_200(server: ScriptedS3, tmp_path: Path) -> None:
    server.instead = lambda asked: error(200, "InternalError", "try again") if asked.is_completion else None
    _, words = up(tmp_path, LARGE, "--retries", "0")
    refused(mpx(*words), 6, "InternalError: try again")
    server.instead = lambda asked: error(200, "AccessDenied") if asked.is_completion else None
    refused(mpx(*words), 4, "AccessDenied")
    assert not server.objects


def test_another_region(server: ScriptedS3, tmp_path: Path) -> None:
    def moved(asked: Asked) -> Answer | None:
        if f"/{ELSEWHERE}/s3/aws4_request" in asked.headers["authorization"]:
            return None
        return 301, {"x-amz-bucket-region": ELSEWHERE}, b""

    server.instead = moved
    source, words = up(tmp_path)
    copied(mpx(*words))
    assert server.objects["key"] == source.read_bytes()
    assert f"is in the region {ELSEWHERE}, which is used" in notes(tmp_path)


def test_one_region_after_the_other(server: ScriptedS3, tmp_path: Path) -> None:
    """Who names another one each time is soon believed no more."""
    numbers = itertools.count()
    server.instead = lambda _: (301, {"x-amz-bucket-region": f"eu-south-{next(numbers)}"}, b"")
    refused(mpx(*up(tmp_path)[1], "--retries", "0"), 4, "301")
    assert len(server.asked) < 20


def test_connections_are_no_more_for_more_files(server: ScriptedS3, tmp_path: Path) -> None:
    for number in range(6):
        make(tmp_path / "from" / f"{number}", LARGE)
    copied(mpx("copy", "-r", tmp_path / "from", "s3://bucket/to", "--streams", "1"))
    assert len(server.objects) == 6
    assert server.connections <= 5


def test_a_clock_that_is_wrong(server: ScriptedS3, tmp_path: Path) -> None:
    then = formatdate(1_000_000_000, usegmt=True)
    server.instead = lambda _: error(403, "RequestTimeTooSkewed", Date=then)
    refused(mpx(*up(tmp_path)[1]), 5, "RequestTimeTooSkewed", "ahead of the server's; set it right")


def test_a_busy_server_is_asked_again(server: ScriptedS3, tmp_path: Path) -> None:
    busy = [error(503, "SlowDown")] * 2
    server.instead = lambda asked: busy.pop() if asked.method == "PUT" and busy else None
    source, words = up(tmp_path)
    copied(mpx(*words))
    assert server.objects["key"] == source.read_bytes() and "SlowDown" in notes(tmp_path)


@pytest.mark.parametrize("size", [10, LARGE])
def test_bytes_that_are_stored_otherwise(server: ScriptedS3, tmp_path: Path, size: int) -> None:
    def lie(asked: Asked, answer: Answer) -> Answer:
        return (200, {"ETag": f'"{"0" * 32}"'}, b"") if asked.method == "PUT" else answer

    server.after = lie
    refused(mpx(*up(tmp_path, size)[1]), 8, "stored other bytes than were sent, by their md5")


@pytest.mark.parametrize("size", [10, LARGE])
def test_encrypted_by_a_key_service(server: ScriptedS3, tmp_path: Path, size: int) -> None:
    """An ETag is no MD5 there, so nothing shows what is stored."""

    def encrypted(asked: Asked, answer: Answer) -> Answer:
        status, headers, body = answer
        if "ETag" in headers:
            headers = {"ETag": f'"{"0" * 32}"', "x-amz-server-side-encryption": "aws:kms"}
        return status, headers, body.replace(b"-", b"-x")

    server.after = encrypted
    source, words = up(tmp_path, size)
    copied(mpx(*words))
    assert server.objects["key"] == source.read_bytes()
    assert "unverified: " in notes(tmp_path)
    report = json.loads((tmp_path / "r.json").read_text())
    assert report["checksum"]["result"] != "verified"


def test_crc32_of_the_whole_object(server: ScriptedS3, tmp_path: Path) -> None:
    def offers(asked: Asked, answer: Answer) -> Answer:
        if asked.method == "POST" and not asked.is_completion:
            return 200, {"x-amz-checksum-type": asked.headers["x-amz-checksum-type"]}, answer[2]
        if asked.is_completion:
            told = asked.headers["x-amz-checksum-crc32"] if honest else "AAAAAA=="
            body = answer[2].replace(b"</R>", f"<ChecksumCRC32>{told}</ChecksumCRC32></R>".encode())
            return 200, {}, body
        return answer

    server.after, honest = offers, True
    words = up(tmp_path, LARGE)[1]
    copied(mpx(*words))
    assert all("x-amz-checksum-crc32" in each.headers for each in server.asked if each.is_part)
    honest = False
    refused(mpx(*words, "--overwrite", "always"), 8, "another CRC-32")


def wants_sums_of_parts(asked: Asked) -> Answer | None:
    """As MinIO does once an upload was begun with checksums: they are of parts, and of the object none is."""
    if "x-amz-checksum-algorithm" in asked.headers:
        body = f"<R {NAME_SPACE}><UploadId>with sums</UploadId></R>".encode()
        return 200, {"x-amz-checksum-algorithm": "CRC32"}, body
    has_sums = asked.query.get("uploadId") == "with sums"
    if asked.is_part and has_sums != ("x-amz-checksum-crc32" in asked.headers):
        return error(400, "InvalidArgument", "checksum missing, or not expected")
    return None


def test_checksums_of_parts_alone(server: ScriptedS3, tmp_path: Path) -> None:
    """They tell nothing of an object; MD5s do, and nothing stays of the upload that was begun with them."""
    server.instead = wants_sums_of_parts
    words = up(tmp_path, LARGE)[1]
    copied(mpx(*words))
    assert [asked.query["uploadId"] for asked in server.asked if asked.what == "abort"] == ["with sums"]
    assert json.loads((tmp_path / "r.json").read_text())["checksum"]["result"] == "verified"


def test_an_upload_to_a_server_that_knows_no_checksums(server: ScriptedS3, tmp_path: Path) -> None:
    def refuses(asked: Asked) -> Answer | None:
        knows = "x-amz-checksum-algorithm" not in asked.headers and not (
            asked.is_part and "x-amz-checksum-crc32" in asked.headers
        )
        return None if knows else error(501, "NotImplemented")

    server.instead = refuses
    source, words = up(tmp_path, LARGE)
    copied(mpx(*words))
    assert server.objects["key"] == source.read_bytes()


def test_a_clock_that_is_right_is_not_blamed(server: ScriptedS3, tmp_path: Path) -> None:
    """As where a proxy keeps a request for long."""
    server.instead = lambda _: error(403, "RequestTimeTooSkewed")
    refused(mpx(*up(tmp_path)[1]), 5, "RequestTimeTooSkewed", "compare the clock of this host")


def test_an_error_within_a_success_stores_nothing(server: ScriptedS3, tmp_path: Path) -> None:
    """Also of an object that goes in one request, and that nobody compares."""
    server.instead = lambda asked: error(200, "AccessDenied") if asked.method == "PUT" else None
    refused(mpx(*up(tmp_path)[1], "--checksum", "none"), 4, "AccessDenied")


@pytest.mark.parametrize("status", [429, 503])
def test_a_busy_server_may_say_so_in_words_of_its_own(
    server: ScriptedS3, tmp_path: Path, status: int
) -> None:
    busy = [error(status, "PleaseReduceYourRate", Retry_After="0")]
    server.instead = lambda asked: busy.pop() if asked.method == "PUT" and busy else None
    copied(mpx(*up(tmp_path)[1]))


def test_data_that_change_on_their_way_are_sent_again(server: ScriptedS3, tmp_path: Path) -> None:
    damaged = [error(400, "BadDigest")]
    server.instead = lambda asked: damaged.pop() if asked.is_part and damaged else None
    source, words = up(tmp_path, LARGE)
    copied(mpx(*words))
    assert server.objects["key"] == source.read_bytes()


@pytest.mark.parametrize(
    "body", [b"", b"<Error>", b"<!DOCTYPE x><Error/>", b"<Error><Code>AccessDen", b"\xff" * 99]
)
def test_refusals_that_cannot_be_read(server: ScriptedS3, tmp_path: Path, body: bytes) -> None:
    server.instead = lambda _: (403, {}, body)
    refused(mpx(*up(tmp_path)[1]), 4, "403")


def test_an_older_object_is_not_taken_for_what_was_completed(server: ScriptedS3, tmp_path: Path) -> None:
    """Of a server whose ETags tell nothing of parts, nor of objects."""

    def untold(asked: Asked, answer: Answer) -> Answer:
        if asked.is_completion:
            server.objects["key"] = b"older"
            return error(404, "NoSuchUpload")
        return answer[0], {"ETag": '"opaque"'} if asked.is_part else {}, answer[2]

    server.after = untold
    refused(mpx(*up(tmp_path, LARGE)[1]), 4, "NoSuchUpload")


def test_a_completion_is_answered_by_something_else(server: ScriptedS3, tmp_path: Path) -> None:
    """By a page of a proxy that has not passed it on, say."""
    server.instead = lambda asked: (200, {}, b"<html>welcome</html>") if asked.is_completion else None
    refused(mpx(*up(tmp_path, LARGE)[1], "--retries", "0"), 6, "does not say what it has stored")
    server.instead = lambda _: None
    copied(mpx(*up(tmp_path, LARGE)[1]))


def test_the_answer_to_a_completion_is_lost(server: ScriptedS3, tmp_path: Path) -> None:
    """The object is there all the same: its ETag is that of the parts."""
    etags: list[str] = []

    def lost(asked: Asked, answer: Answer) -> Answer:
        if asked.is_completion:
            if etags:
                return error(404, "NoSuchUpload")
            etags.append(re.findall(rb"<ETag>(.*)</ETag>", answer[2])[0].decode())
            return error(500, "InternalError")
        if asked.method == "HEAD" and etags and asked.key in server.objects:
            return 200, {"ETag": etags[0]}, answer[2]
        return answer

    server.after = lost
    source, words = up(tmp_path, LARGE)
    copied(mpx(*words))
    assert server.objects["key"] == source.read_bytes()
    assert sum(asked.is_completion for asked in server.asked) == 2
