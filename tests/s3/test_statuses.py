"""What each status means, of whichever request; and that a copy goes on after those that pass."""

import itertools
import threading
from pathlib import Path

import pytest
from s3.lying_s3 import IN_PARTS, KEY, SMALL, URL, down, up
from s3.scripted_s3 import Answer, Asked, ScriptedS3, error
from web.lying import copied

CODES = {
    403: "AccessDenied",
    404: "NoSuchBucket",
    409: "BucketAlreadyExists",
    412: "PreconditionFailed",
    416: "InvalidRange",
    429: "TooManyRequests",
    500: "InternalError",
    503: "SlowDown",
    507: "InsufficientStorage",
}
READ = {403: 3, 404: 3, 409: 3, 412: 8, 416: 3, 429: 6, 500: 6, 503: 6, 507: 6}
WRITTEN = {403: 4, 404: 4, 409: 4, 412: 4, 416: 4, 429: 6, 500: 6, 503: 6, 507: 9}
PASSING = {409: "OperationAborted", 429: "", 500: "InternalError", 503: "SlowDown"}


def answered(what: str, *answers: Answer, last: bool = True) -> "Refuse":
    """Have requests of a kind answered so, once each; the last answer for good where it `last`s."""
    return Refuse(what, itertools.chain(answers, itertools.repeat(answers[-1]) if last else ()))


class Refuse:
    """Answers requests of a kind."""

    def __init__(self, what: str, answers: "itertools.chain[Answer]") -> None:
        self._what, self._answers = what, answers

    def __call__(self, asked: Asked) -> Answer | None:
        return next(self._answers, None) if asked.what == self._what else None


@pytest.mark.parametrize(
    ("what", "is_told"), [("HEAD", False), ("GET", True), ("GET", False), ("list", True)]
)
def test_what_is_read_is_refused(server: ScriptedS3, tmp_path: Path, what: str, *, is_told: bool) -> None:
    """`is_told`: a body says why, where there is one; else the status has to do."""
    for status, code in CODES.items():
        server.instead = answered(what, error(status, code) if is_told else (status, {}, b""))
        if what == "list":
            done = copied(f"{URL}/below", tmp_path / "x", recursive=True, timeout_s=20.0, retries=0)
        else:
            done = down(server, tmp_path, retries=0)
        if (what, status) == ("HEAD", 403):  # what GET answers counts
            assert done.code == 0, done
            (tmp_path / "file").unlink()
            continue
        assert done.code == (8 if (what, status) == ("GET", 416) else READ[status]), (status, done)
        why = code if is_told else str(status)
        assert why in done.text or status in (404, 416), (status, done)


@pytest.mark.parametrize("signs", [True, False])
def test_who_does_not_sign_is_not_told_not_to(server: ScriptedS3, tmp_path: Path, *, signs: bool) -> None:
    server.instead = answered("GET", error(403, "AccessDenied"))
    done = down(server, tmp_path, retries=0, sign_request=signs)
    assert done.code == 3 and "open to all" not in done.text
    assert ("run aws configure" in done.text, "leave out --no-sign-request" in done.text) == (not signs,) * 2


@pytest.mark.parametrize(
    ("what", "is_told"), [("PUT", True), ("PUT", False), ("begin", True), ("part", True), ("complete", True)]
)
def test_what_is_written_is_refused(
    server: ScriptedS3, small_parts: None, tmp_path: Path, what: str, *, is_told: bool
) -> None:
    server.objects[KEY] = b"old"
    for status, code in CODES.items():
        server.instead = answered(what, error(status, code) if is_told else (status, {}, b""))
        done = up(server, tmp_path, SMALL[:10] if what == "PUT" else IN_PARTS, retries=0)
        assert done.code == WRITTEN[status], (status, done)
        assert (code if is_told else str(status)) in done.text, done
        assert server.objects[KEY] == b"old"


@pytest.mark.parametrize("what", ["HEAD", "GET", "PUT", "begin", "part", "complete"])
def test_what_passes(server: ScriptedS3, small_parts: None, tmp_path: Path, what: str) -> None:
    """Of a busy server, which tells how long to wait, and one that fails once."""
    answers = [error(status, code, Retry_After="0") for status, code in PASSING.items()]
    server.instead = answered(what, *answers, last=False)
    if what in ("HEAD", "GET"):
        done = down(server, tmp_path, retries=5)
        assert done.code == 0, done
        return
    done = up(server, tmp_path, SMALL[:10] if what == "PUT" else IN_PARTS, retries=5)
    assert done.code == 0, done
    assert server.count(what) >= len(PASSING)


def test_nobody_waits_for_what_others_have_done(server: ScriptedS3, tmp_path: Path) -> None:
    """One stream is told to leave the server alone for long, and another one stores the file meanwhile."""
    busy = [error(503, "SlowDown", Retry_After="280")]
    server.instead = lambda asked: busy.pop() if asked.what == "PUT" and busy else None
    ended: list[int] = []
    copy = threading.Thread(
        target=lambda: ended.append(up(server, tmp_path, SMALL, streams=2).code), daemon=True
    )
    copy.start()
    copy.join(60)
    assert ended == [0]
