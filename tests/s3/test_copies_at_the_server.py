"""Copies that the server makes by itself, where it refuses, fails, or says 200 before it knows."""

from pathlib import Path
from typing import Any

import pytest
from s3.lying_s3 import IN_PARTS, KEY, PART_BYTES, URL
from s3.scripted_s3 import NAME_SPACE, Answer, Asked, ResetInstead, ScriptedS3, error
from web.lying import Outcome, copied

from mpx.endpoints.s3 import copy_worker
from mpx.endpoints.s3.access import S3Access

NEW = "new/key"
CODES = {"AccessDenied": (403, 4), "PreconditionFailed": (412, 8), "InternalError": (500, 6)}


@pytest.fixture(params=["PUT", "part", "complete"])
def what(
    request: pytest.FixtureRequest, server: ScriptedS3, small_parts: None, monkeypatch: pytest.MonkeyPatch
) -> str:
    """The kind of request by which it copies: of a whole object, or of one in parts."""
    server.objects = {KEY: IN_PARTS}
    if request.param != "PUT":
        monkeypatch.setattr(copy_worker, "MOST_COPIED_BYTES", PART_BYTES)
        monkeypatch.setattr(copy_worker, "COPIED_PART_BYTES", PART_BYTES)
    return str(request.param)


def copy(server: ScriptedS3, **options: Any) -> Outcome:
    """Copy; the new object is there only where that succeeds."""
    outcome = copied(URL, f"s3://bucket/{NEW}", **{"timeout_s": 20.0, "third_party": "only", **options})
    assert server.objects.get(NEW) == (IN_PARTS if outcome.code == 0 else None), outcome
    assert not server.count("GET"), "data pass through this host"
    return outcome


@pytest.mark.parametrize("code", CODES)
def test_it_is_refused(server: ScriptedS3, what: str, code: str) -> None:
    """By a status, or by 200 with an error in its body."""
    status, exit_code = CODES[code]
    for refusal in (error(status, code), error(200, code)):
        server.instead = lambda asked, refusal=refusal: refusal if asked.what == what else None
        done = copy(server, retries=0)
        assert done.code == (4 if (status, what) == (412, "complete") else exit_code), done
        assert code in done.text


def test_it_fails_once(server: ScriptedS3, what: str) -> None:
    cut = f"<CopyResult {NAME_SPACE}>".encode()
    answers: list[Answer] = [
        error(200, "InternalError"),
        error(503, "SlowDown"),
        (200, {}, cut),
        (200, {}, b""),
    ]
    if what == "PUT":
        del answers[2:]  # see test_what_is_no_answer
    server.instead = lambda asked: answers.pop(0) if asked.what == what and answers else None
    assert copy(server, retries=5).code == 0
    assert not answers


@pytest.mark.parametrize("body", [b"", b"<html>", b"<CopyObjectResult>"])
def test_what_is_no_answer(server: ScriptedS3, small_parts: None, tmp_path: Path, body: bytes) -> None:
    """A copy of a whole object that the server does not say it has made is not taken for made."""
    server.objects = {KEY: IN_PARTS}
    server.instead = lambda asked: (200, {}, body) if asked.what == "PUT" else None
    done = copy(server, retries=1, checksum="none")
    assert done.code == 6, done


@pytest.mark.parametrize("what", ["PUT", "part"], indirect=True)
def test_the_source_changed_where_none_is_to_be_replaced(server: ScriptedS3, what: str) -> None:
    """Servers say the same of both conditions."""
    server.instead = lambda asked: error(412, "PreconditionFailed") if asked.what == what else None
    done = copy(server, overwrite="never")
    assert done.code == 8 and "the source changed" in done.text
    assert "come into being" not in done.text


@pytest.mark.parametrize("what", ["PUT"], indirect=True)
@pytest.mark.parametrize("looks", [True, False])
def test_a_copy_whose_answer_was_lost_is_known_again(
    looks: bool, server: ScriptedS3, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though none is to be replaced; whether it is looked for before, or not, as at AWS."""
    if not looks:
        monkeypatch.setattr(S3Access, "looks_before", False)
    lost: list[Asked] = []

    def answer(asked: Asked) -> Answer | None:
        if asked.what == what and not lost:
            lost.append(asked)
            server._answer(asked)
            raise ResetInstead
        is_taken = asked.what == what and asked.key in server.objects
        return error(412, "PreconditionFailed") if is_taken else None

    server.instead = answer
    assert copy(server, overwrite="never").code == 0
    assert lost
