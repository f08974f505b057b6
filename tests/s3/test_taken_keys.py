"""With `--overwrite never` an object stays that others have stored at the last moment."""

import hashlib
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from s3.buckets import Bucket
from s3.lying_s3 import IN_PARTS, KEY, LEAST_BYTES, URL
from s3.scripted_s3 import Answer, Asked, ResetInstead, ScriptedS3, error
from sites import make
from web.lying import Outcome, copied
from web.servers.moto import MotoSite

import mpx
from mpx.endpoints.s3 import access
from mpx.endpoints.s3.access import S3Access
from mpx.errors import IsThere

THEIRS = b"of others"
NEVER = mpx.CopyOptions(overwrite="never")
SIZES = {"one request": 1000, "parts": LEAST_BYTES * 2}


def to_server(tmp_path: Path, data: bytes, retries: int = 1) -> Outcome:
    (tmp_path / "source").write_bytes(data)
    return copied(tmp_path / "source", URL, overwrite="never", timeout_s=20.0, retries=retries)


def makes_object(asked: Asked) -> bool:
    return (asked.method == "PUT" and not asked.is_part) or asked.is_completion


def heeding(server: ScriptedS3, asked: Asked) -> Answer | None:
    """Refuse to replace an object, as servers that know the condition do."""
    if makes_object(asked) and asked.headers.get("if-none-match") == "*" and asked.key in server.objects:
        return error(412, "PreconditionFailed")
    return None


def stores_theirs(server: ScriptedS3, what: str, heeds: Callable[..., Answer | None]) -> None:
    """Have others store an object right before the request by which ours would appear."""

    def answer(asked: Asked) -> Answer | None:
        if asked.what == what:
            server.objects.setdefault(KEY, THEIRS)
        return heeds(server, asked)

    server.instead = answer


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize(("what", "data"), [("PUT", b"new"), ("complete", IN_PARTS)])
def test_a_server_that_heeds_the_condition(
    what: str, data: bytes, scripted: ScriptedS3, tmp_path: Path
) -> None:
    stores_theirs(scripted, what, heeding)
    outcome = to_server(tmp_path, data)
    assert outcome.code == 4, outcome
    assert "has come into being meanwhile; --overwrite never" in outcome.text
    assert scripted.objects[KEY] == THEIRS
    assert scripted.count("abort") == (what == "complete")


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("data", [b"new", IN_PARTS], ids=["one request", "parts"])
@pytest.mark.parametrize("how", ["refuses", "AWS refuses", "takes it for an error", "ignores"])
def test_a_server_that_knows_no_condition(
    how: str, data: bytes, scripted: ScriptedS3, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is asked again without, which is no failure, and what is there is looked for before."""
    refuses = how != "ignores"
    refusal = error(501, "NotImplemented")
    if how == "takes it for an error":
        refusal = error(400, "InvalidArgument", "the header if-none-match is not supported")
    if how == "AWS refuses":  # as it did for copies; it ignores none
        monkeypatch.setattr(access, "_AWS", re.compile(""))

    def answer(asked: Asked) -> Answer | None:
        return refusal if refuses and "if-none-match" in asked.headers else None

    scripted.instead = answer
    assert to_server(tmp_path, data, retries=0).code == 0
    assert scripted.objects[KEY] == data
    last = max(i for i, asked in enumerate(scripted.asked) if makes_object(asked))
    looks = sum(asked.what == "HEAD" for asked in scripted.asked[:last])
    scripted.objects.clear()
    scripted.asked.clear()

    def comes_late(asked: Asked) -> Answer | None:
        if asked.what == "HEAD" and scripted.count("HEAD") == looks:
            scripted.objects.setdefault(KEY, THEIRS)
        return answer(asked)

    scripted.instead = comes_late
    outcome = to_server(tmp_path, data)
    assert outcome.code == 4, outcome
    assert scripted.objects[KEY] == THEIRS


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize(("what", "data"), [("PUT", b"new"), ("complete", IN_PARTS)])
def test_an_answer_that_is_lost_is_not_taken_for_an_object_of_others(
    what: str, data: bytes, scripted: ScriptedS3, tmp_path: Path
) -> None:
    lost: list[Asked] = []

    def answer(asked: Asked) -> Answer | None:
        if asked.what == what and not lost:
            lost.append(asked)
            scripted._answer(asked)
            raise ResetInstead
        if what == "complete" and asked.what == what:
            return error(404, "NoSuchUpload")
        return heeding(scripted, asked)

    def tell_tag(asked: Asked, told: Answer) -> Answer:
        status, headers, body = told
        if asked.what == "HEAD" and status == 200 and what == "complete":
            digests = b"".join(hashlib.md5(scripted._parts[number]).digest() for number in "123")
            return status, {**headers, "ETag": f'"{hashlib.md5(digests).hexdigest()}-3"'}, body
        return told

    scripted.instead, scripted.after = answer, tell_tag
    outcome = to_server(tmp_path, data)
    assert outcome.code == 0, outcome
    assert lost and scripted.objects[KEY] == data


def test_an_answer_is_lost_where_tags_are_no_checksums(scripted: ScriptedS3, tmp_path: Path) -> None:
    """As of objects that are encrypted with a key of the user: by the checksum that was sent with them."""
    stored: list[str] = []

    def answer(asked: Asked) -> Answer | None:
        if asked.method == "PUT" and not stored:
            stored.append(asked.headers["x-amz-checksum-crc32"])
            scripted._answer(asked)
            raise ResetInstead
        return heeding(scripted, asked)

    def tell_sum(asked: Asked, told: Answer) -> Answer:
        status, headers, body = told
        if not (asked.what == "HEAD" and status == 200):
            return told
        wants_sums = "x-amz-checksum-mode" in asked.headers
        sums = {"x-amz-checksum-crc32": stored[0], "x-amz-checksum-type": "FULL_OBJECT"} if wants_sums else {}
        return status, {**headers, "ETag": '"opaque"', **sums}, body

    scripted.instead, scripted.after = answer, tell_sum
    assert to_server(tmp_path, b"new").code == 0
    assert stored and scripted.objects[KEY] == b"new"


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("what", ["HEAD", "complete"])
def test_an_object_of_others_that_is_as_long(what: str, scripted: ScriptedS3, tmp_path: Path) -> None:
    """Of a server that tells no checksum: it is not taken for ours, which nobody has stored yet."""
    theirs = bytes(len(IN_PARTS))

    def answer(asked: Asked) -> Answer | None:
        if asked.what == what and scripted.count("part") == 3:
            if what == "HEAD" and scripted.asked[-2].what != "HEAD":
                return None  # what is there before the first try
            scripted.objects.setdefault(KEY, theirs)
        return heeding(scripted, asked)

    def opaque(asked: Asked, told: Answer) -> Answer:
        status, headers, body = told
        tag = {"ETag": f'"of {len(scripted.asked)}"'} if "ETag" in headers else {}
        return status, {**headers, **tag}, body

    scripted.instead, scripted.after = answer, opaque
    outcome = to_server(tmp_path, IN_PARTS)
    assert outcome.code == 4, outcome
    assert scripted.objects[KEY] == theirs


@pytest.mark.usefixtures("least_parts")
@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
@pytest.mark.parametrize("how", ["upload", "copy"])
def test_real_servers(
    how: str,
    size: int,
    any_bucket: Bucket,
    before: ScriptedS3,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """By the condition alone: nobody looks right before."""
    if how == "copy" and size == SIZES["one request"] and isinstance(any_bucket.site, MotoSite):
        pytest.skip("moto knows no condition of copies")
    monkeypatch.setattr(S3Access, "looks_before", False)
    monkeypatch.setenv("MPX_STATE_DIR", str(tmp_path))
    data = make(tmp_path / "near", size).read_bytes()
    source = str(tmp_path / "near")
    if how == "copy":
        any_bucket.put("from", data)
        source = f"{any_bucket.url}from"

    def answer(asked: Asked) -> None:
        if (asked.method == "PUT" and not asked.query) or asked.is_completion:
            any_bucket.put("key", THEIRS)

    before.instead = answer
    with pytest.raises(IsThere):
        mpx.copy(source, f"{any_bucket.url}key", NEVER)
    assert any_bucket.get("key") == THEIRS


def test_many_at_once_at_a_server_that_knows_no_condition(scripted: ScriptedS3, tmp_path: Path) -> None:
    """One finds that out while others are refused, too."""
    (tmp_path / "many").mkdir()
    names = [f"file {number}" for number in range(8)]
    for name in names:
        (tmp_path / "many" / name).write_bytes(name.encode())

    def answer(asked: Asked) -> Answer | None:
        return error(501, "NotImplemented") if "if-none-match" in asked.headers else None

    scripted.instead = answer
    to = "s3://bucket/many/"
    outcome = copied(
        f"{tmp_path}/many/", to, recursive=True, overwrite="never", timeout_s=20.0, retries=0, streams=4
    )
    assert outcome.code == 0, outcome
    assert scripted.objects == {f"many/{name}": name.encode() for name in names}
