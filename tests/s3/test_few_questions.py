"""What a copy asks for: round trips that it does without, as small files and starts consist of them."""

import json
from pathlib import Path

import pytest
from mpx_command import copied, mpx
from s3.scripted_s3 import Answer, Asked, ScriptedS3
from sites import make

from mpx.endpoints.s3.parts import WHOLE_BYTES


def test_an_upload_begins_after_two_round_trips(scripted: ScriptedS3, tmp_path: Path) -> None:
    """Object and folder are asked about once, and at once; then the upload is begun."""
    source = make(tmp_path / "source", WHOLE_BYTES + 1)
    copied(mpx("copy", source, "s3://bucket/key"))
    first_part = next(number for number, asked in enumerate(scripted.asked) if asked.is_part)
    before = [(asked.method, asked.key) for asked in scripted.asked[:first_part]]
    assert before == [("HEAD", "key"), ("GET", ""), ("POST", "key")]
    assert scripted.objects["key"] == source.read_bytes()


def test_a_copy_with_nothing_to_do_changes_nothing(
    scripted: ScriptedS3, small_parts: None, tmp_path: Path
) -> None:
    for name, size in (("small", 10), ("large", 100_000)):
        make(tmp_path / "from" / name, size)
    for _ in range(2):
        scripted.asked.clear()
        copied(mpx("copy", "-r", tmp_path / "from", "s3://bucket/to"))
    assert {asked.method for asked in scripted.asked} == {"HEAD", "GET"}


def test_an_upload_begins_over_the_connection_of_its_parts(scripted: ScriptedS3, tmp_path: Path) -> None:
    source = make(tmp_path / "source", WHOLE_BYTES + 1)
    copied(mpx("copy", source, "s3://bucket/key", "--streams", "1"))
    began = next(asked for asked in scripted.asked if "uploads" in asked.query)
    assert {asked.port for asked in scripted.asked if asked.is_part} == {began.port}


@pytest.mark.parametrize("encryption", ["", "aws:kms"])
def test_answers_with_data_tell_the_checksum(scripted: ScriptedS3, tmp_path: Path, encryption: str) -> None:
    """Where an ETag is that of something else nobody takes it for the MD5, and the server is asked."""
    keys = [f"object{number}" for number in range(5)]
    scripted.objects |= {key: key.encode() for key in keys}

    def encrypted(asked: Asked, answer: Answer) -> Answer:
        status, _, body = answer
        if not encryption or asked.method not in ("GET", "HEAD") or not asked.key:
            return answer
        return status, {"ETag": f'"{"0" * 32}"', "x-amz-server-side-encryption": encryption}, body

    scripted.after = encrypted
    sources = [f"s3://bucket/{key}" for key in keys]
    copied(mpx("copy", *sources, f"{tmp_path}/", "--report", tmp_path / "r.json"))
    assert [(tmp_path / key).read_text() for key in keys] == keys
    asked = [each for each in scripted.asked if "x-amz-checksum-mode" in each.headers]
    sums = json.loads((tmp_path / "r.json").read_text())["checksum"]["bytes"]
    if encryption:
        assert asked and "md5" not in sums
    else:
        assert not asked and sums == {"md5": sum(map(len, keys))}


def test_what_changed_on_its_way_is_noticed(scripted: ScriptedS3, tmp_path: Path) -> None:
    scripted.objects["key"] = b"what is stored"

    def bent(asked: Asked, answer: Answer) -> Answer:
        status, headers, _ = answer
        return (status, headers, b"what is bent!!") if asked.method == "GET" and asked.key else answer

    scripted.after = bent
    done = mpx("copy", "s3://bucket/key", tmp_path / "key", "--retries", "0")
    assert done.code == 8, done
