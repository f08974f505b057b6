"""The end of an upload in parts, where the answer to it is lost, comes late, or is no answer."""

from pathlib import Path

import pytest
from s3.lying_s3 import IN_PARTS, KEY, up
from s3.scripted_s3 import NAME_SPACE, Answer, Asked, ScriptedS3, error

OTHER = IN_PARTS[::-1]
KMS = {"x-amz-server-side-encryption": "aws:kms"}


class LosesAnswers:
    """Completes uploads, says that it failed, and knows nothing of them any more.

    `completes`: whether it has done so; `headers`: of each answer, in place of ETags that are MD5s.
    """

    def __init__(self, server: ScriptedS3, headers: dict[str, str], *, completes: bool = True) -> None:
        self._server, self._headers, self._completes = server, headers, completes
        self._was_asked = False

    def __call__(self, asked: Asked) -> Answer | None:
        if asked.what == "complete":
            if not self._was_asked and self._completes:
                self._server._answer(asked)
            was_asked, self._was_asked = self._was_asked, True
            return error(404, "NoSuchUpload") if was_asked else error(500, "InternalError")
        if asked.what not in ("part", "HEAD"):
            return None
        status, headers, body = self._server._answer(asked)
        if tag := headers.get("ETag", "").strip('"'):  # which tells objects apart, and is no MD5
            tag = tag[::-1] if self._headers else f"v1-{tag}"
            return status, {**headers, "ETag": f'"{tag}"', **self._headers}, body
        return status, headers, body


@pytest.mark.parametrize("headers", [KMS, {}], ids=["kms", "opaque"])
@pytest.mark.parametrize("old", [None, b"old", OTHER], ids=["nothing", "other size", "same size"])
def test_it_is_there_all_the_same(
    server: ScriptedS3, small_parts: None, tmp_path: Path, headers: dict[str, str], old: bytes | None
) -> None:
    """No checksum shows it: it has the right size, and came after it was asked for. No byte goes twice."""
    server.objects = {KEY: old} if old is not None else {}
    server.instead = LosesAnswers(server, headers)
    done = up(server, tmp_path, IN_PARTS, retries=3)
    assert done.code == 0 and server.objects[KEY] == IN_PARTS, done
    assert any("unverified" in note for note in done.notes)
    assert server.count("part") == 3


@pytest.mark.parametrize("old", [b"old", OTHER], ids=["other size", "same size"])
def test_an_older_one_is_not_taken_for_it(
    server: ScriptedS3, small_parts: None, tmp_path: Path, old: bytes
) -> None:
    server.objects[KEY] = old
    server.instead = LosesAnswers(server, KMS, completes=False)
    done = up(server, tmp_path, IN_PARTS, retries=3)
    assert done.code == 4 and "copy it again" in done.text, done
    assert server.objects[KEY] == old
    server.instead = lambda _: None
    assert up(server, tmp_path, IN_PARTS).code == 0


@pytest.mark.parametrize(
    "answer",
    [
        error(200, "InternalError"),
        error(200, "SlowDown"),
        (200, {}, b"    <CompleteMult"),
        (200, {}, b""),
        (200, {"Content-Length": "500", "Connection": "close"}, b"  \n  "),
    ],
    ids=["failed", "busy", "cut off", "nothing", "blanks"],
)
def test_200_is_no_success_by_itself(
    server: ScriptedS3, small_parts: None, tmp_path: Path, answer: Answer
) -> None:
    answers = [answer]
    server.instead = lambda asked: answers.pop() if asked.what == "complete" and answers else None
    done = up(server, tmp_path, IN_PARTS, retries=3)
    assert done.code == 0 and not answers, done
    assert server.count("part") == 3


def test_blanks_before_the_answer(server: ScriptedS3, small_parts: None, tmp_path: Path) -> None:
    """By which a server that needs long keeps the connection."""

    def blanks(asked: Asked, answer: Answer) -> Answer:
        return (
            (*answer[:2], b"<?xml version='1.0'?>\n" + b" " * 9000 + answer[2])
            if asked.is_completion
            else answer
        )

    server.after = blanks
    assert up(server, tmp_path, IN_PARTS).code == 0


@pytest.mark.parametrize("body", [b"", b"<R/>", b"<html>", f"<R {NAME_SPACE}><UploadId/></R>".encode()])
def test_an_upload_without_a_name(server: ScriptedS3, small_parts: None, tmp_path: Path, body: bytes) -> None:
    server.instead = lambda asked: (200, {}, body) if asked.what == "begin" else None
    done = up(server, tmp_path, IN_PARTS, retries=0)
    assert done.code in (4, 6), done
    assert not server.count("part")


def test_the_server_forgets_the_upload_again_and_again(
    server: ScriptedS3, small_parts: None, tmp_path: Path
) -> None:
    server.instead = lambda asked: (
        error(404, "NoSuchUpload") if asked.query.get("partNumber") == "2" else None
    )
    done = up(server, tmp_path, IN_PARTS, retries=2)
    assert done.code == 4 and "forgets uploads" in done.text, done
    assert server.count("begin") == 3


@pytest.mark.parametrize("is_as_long", [True, False])
def test_a_part_was_stored_twice(
    is_as_long: bool, server: ScriptedS3, small_parts: None, tmp_path: Path
) -> None:
    """By two workers, each of which was told another ETag, as of encrypted objects: it has the last one."""

    def tag_of(number: str, is_listed: bool) -> str:
        return f'"tag-{number}-{"last" if is_listed or number != "2" else "first"}"'

    def answer(asked: Asked) -> Answer | None:
        if asked.what == "part":
            status, _, body = server._answer(asked)
            return status, {"ETag": tag_of(asked.query["partNumber"], is_listed=False), **KMS}, body
        if asked.what == "parts":
            sizes = {
                number: len(data) - (number == "2" and not is_as_long)
                for number, data in server._parts.items()
            }
            parts = (
                f"<Part><PartNumber>{number}</PartNumber><ETag>{tag_of(number, is_listed=True)}</ETag>"
                f"<Size>{size}</Size></Part>"
                for number, size in sizes.items()
            )
            return 200, {}, f"<R {NAME_SPACE}>{''.join(parts)}</R>".encode()
        is_refused = asked.what == "complete" and b"tag-2-first" in asked.body
        return error(400, "InvalidPart") if is_refused else None

    server.instead = answer
    done = up(server, tmp_path, IN_PARTS, retries=0)
    assert done.code == (0 if is_as_long else 4), done
    assert server.count("parts") == 1
    assert server.count("complete") == 1 + is_as_long
