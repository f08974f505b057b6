"""Objects that are not what was told of them: cut off, damaged, replaced on the way, or of another digest."""

import hashlib
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from s3.lying_s3 import KEY, SMALL, URL, down
from s3.scripted_s3 import Answer, Asked, FallSilent, ResetInstead, ScriptedS3, error
from web.lying import copied

LARGE = random.Random(3).randbytes(5_000_000)  # several pieces
KMS = {"x-amz-server-side-encryption": "aws:kms"}
Bend = Callable[[Asked, Answer], Answer]


def of_gets(bend: Callable[[Answer], Answer], times: int = 1_000_000) -> Bend:
    """Bend answers to GET of the object, so many times."""
    left = [None] * times if times < 100 else []

    def after(asked: Asked, answer: Answer) -> Answer:
        if asked.what != "GET" or (times < 100 and not left):
            return answer
        if left:
            left.pop()
        return bend(answer)

    return after


def cut_off(answer: Answer) -> Answer:
    status, headers, body = answer
    told = {"Content-Length": str(len(body)), "Connection": "close"}
    return status, {**headers, **told}, body[: len(body) // 2]


def damaged(answer: Answer) -> Answer:
    status, headers, body = answer
    return status, headers, body[:-1] + bytes([body[-1] ^ 1])


def fall_silent(_: Answer) -> Answer:
    raise FallSilent


def reset(_: Answer) -> Answer:
    raise ResetInstead


@pytest.mark.parametrize("bend", [cut_off, damaged, fall_silent, reset], ids=lambda bend: bend.__name__)
@pytest.mark.parametrize("size", [300_000, len(LARGE)])
def test_what_goes_wrong_once(
    server: ScriptedS3, tmp_path: Path, bend: Callable[[Answer], Answer], size: int
) -> None:
    server.objects[KEY] = LARGE[:size]
    server.after = of_gets(bend, times=2)
    done = down(server, tmp_path, retries=5, timeout_s=0.5 if bend is fall_silent else 20.0)
    assert done.code == 0, done


@pytest.mark.parametrize(
    ("bend", "codes"),
    [(cut_off, {6}), (damaged, {8}), (fall_silent, {6, 7}), (reset, {6})],
    ids=["cut off", "damaged", "silent", "reset"],
)
def test_what_goes_wrong_always(
    server: ScriptedS3, tmp_path: Path, bend: Callable[[Answer], Answer], codes: set[int]
) -> None:
    server.after = of_gets(bend)
    done = down(server, tmp_path, retries=1, timeout_s=0.5 if bend is fall_silent else 20.0)
    assert done.code in codes, done


@pytest.mark.parametrize("size", [0, 1, 300_000, len(LARGE)])
def test_ranges_are_ignored(server: ScriptedS3, tmp_path: Path, size: int) -> None:
    server.objects[KEY] = LARGE[:size]

    def ignores(asked: Asked) -> Answer | None:
        return server._answer(replace(asked, headers={})) if asked.what == "GET" else None

    server.instead = ignores
    assert down(server, tmp_path).code == 0


def test_another_part_comes(server: ScriptedS3, tmp_path: Path) -> None:
    """It says so, and is not taken for what was asked for."""
    server.objects[KEY] = LARGE

    def other(asked: Asked) -> Answer | None:
        if (
            asked.what != "GET"
            or "range" not in asked.headers
            or asked.headers["range"].startswith("bytes=0-")
        ):
            return None
        return server._answer(replace(asked, headers={"range": "bytes=7-999"}))

    server.instead = other
    assert down(server, tmp_path).code in (0, 8)


def test_it_is_replaced_between_parts(server: ScriptedS3, tmp_path: Path) -> None:
    """By one of the same size: all parts are of one object, or there is none."""
    server.objects[KEY], other = LARGE, LARGE[::-1]

    def replaces(asked: Asked, answer: Answer) -> Answer:
        if asked.what == "GET":
            server.objects[KEY] = other
        return answer

    server.after = replaces
    done = copied(URL, tmp_path / "file", timeout_s=20.0, retries=0)
    assert done.code == 8 and "changed" in done.text, done
    assert not (tmp_path / "file").exists()


@pytest.mark.parametrize("told", [1000, 400_000])
def test_a_size_that_is_told_wrongly(server: ScriptedS3, tmp_path: Path, told: int) -> None:
    def lies(asked: Asked, answer: Answer) -> Answer:
        return (
            (answer[0], {**answer[1], "Content-Length": str(told)}, b"") if asked.what == "HEAD" else answer
        )

    server.after = lies
    done = copied(URL, tmp_path / "file", timeout_s=20.0, retries=0)
    assert done.code in (6, 8), done
    assert not (tmp_path / "file").exists()


# --- checksums -------------------------------------------------------------------------------------------


def with_etag(etag: str, **headers: str) -> Bend:
    """Have the object told with another ETag."""

    def after(asked: Asked, answer: Answer) -> Answer:
        if asked.what not in ("HEAD", "GET"):
            return answer
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return answer[0], {**answer[1], "ETag": f'"{etag}"', **named}, answer[2]

    return after


@pytest.mark.parametrize(
    "bend",
    [
        with_etag("0" * 32, x_amz_server_side_encryption="aws:kms"),
        with_etag("0" * 32, x_amz_server_side_encryption_customer_algorithm="AES256"),
        with_etag("0" * 32 + "-3"),
        with_etag("anything"),
    ],
    ids=["kms", "customer", "parts of others", "opaque"],
)
def test_etags_that_are_no_digests(server: ScriptedS3, tmp_path: Path, bend: Bend) -> None:
    server.after = bend
    done = down(server, tmp_path)
    assert done.code == 0, done
    assert any("unverified" in note or "no md5" in note for note in done.notes), done


@pytest.mark.parametrize("parts", [1, 3])
def test_the_digest_of_parts_is_another(server: ScriptedS3, tmp_path: Path, parts: int) -> None:
    """The server tells of parts of 100,000 bytes, and an ETag that they do not make."""

    def lies(asked: Asked, answer: Answer) -> Answer:
        if asked.what not in ("HEAD", "GET"):
            return answer
        headers = {**answer[1], "ETag": f'"{"0" * 32}-{parts}"', "x-amz-mp-parts-count": str(parts)}
        if "partNumber" not in asked.query:
            return answer[0], headers, answer[2]
        return 206, {**headers, "Content-Length": str(len(SMALL) // parts)}, b""

    server.after = lies
    assert down(server, tmp_path, retries=0).code == 8


def test_encrypted_with_a_key_that_we_lack(server: ScriptedS3, tmp_path: Path) -> None:
    server.instead = lambda asked: (
        error(400, "InvalidRequest", "The object was stored using a form of Server Side Encryption.")
        if asked.key
        else None
    )
    done = down(server, tmp_path, retries=0)
    assert done.code == 3 and "Server Side Encryption" in done.text, done


def test_archived(server: ScriptedS3, tmp_path: Path) -> None:
    server.instead = lambda asked: error(403, "InvalidObjectState") if asked.what == "GET" else None
    done = down(server, tmp_path, retries=0)
    assert done.code == 3 and "have it restored" in done.text, done


def test_the_checksum_is_that_of_what_is_stored(server: ScriptedS3, tmp_path: Path) -> None:
    """An object that was damaged where it is stored: its ETag tells what it was."""
    server.after = with_etag(hashlib.md5(b"what it was").hexdigest())
    done = down(server, tmp_path, retries=0)
    assert done.code == 8 and "md5" in done.text.lower(), done
