"""A pipe to S3: it can be read once only, so that what fails on its way is sent again from memory."""

import contextlib
import os
import threading
from pathlib import Path

import pytest
from s3.lying_s3 import IN_PARTS, KEY, URL, WHOLE_BYTES
from s3.scripted_s3 import Answer, Asked, ResetInstead, ScriptedS3, error
from web.lying import Outcome, copied

FAULTS = [error(503, "SlowDown"), error(500, "InternalError"), error(400, "BadDigest"), ResetInstead]


def piped(server: ScriptedS3, tmp_path: Path, data: bytes, **options: int) -> Outcome:
    """Copy what comes from a pipe; a whole object is there, or the old one."""
    server.objects[KEY] = b"old"
    os.mkfifo(tmp_path / "pipe")

    def write() -> None:
        with contextlib.suppress(BrokenPipeError), (tmp_path / "pipe").open("wb") as pipe:
            pipe.write(data)

    writer = threading.Thread(target=write)
    writer.start()
    done = copied(tmp_path / "pipe", URL, **{"timeout_s": 20.0, "retries": 5, **options})
    writer.join(60)
    assert not writer.is_alive()
    assert server.objects[KEY] == (data if done.code == 0 else b"old"), done
    return done


@pytest.mark.parametrize("what", ["PUT", "begin", "part", "complete"])
def test_what_passes(server: ScriptedS3, small_parts: None, tmp_path: Path, what: str) -> None:
    faults = list(FAULTS)

    def fail(asked: Asked) -> Answer | None:
        if asked.what != what or not faults:
            return None
        fault = faults.pop()
        if isinstance(fault, type):
            raise fault
        return fault

    server.instead = fail
    done = piped(server, tmp_path, IN_PARTS[:10] if what == "PUT" else IN_PARTS)
    assert done.code == 0 and not faults, done


@pytest.mark.parametrize("what", ["PUT", "begin", "part", "complete"])
def test_what_does_not(server: ScriptedS3, small_parts: None, tmp_path: Path, what: str) -> None:
    server.instead = lambda asked: error(403, "AccessDenied") if asked.what == what else None
    done = piped(server, tmp_path, IN_PARTS[:10] if what == "PUT" else IN_PARTS)
    assert done.code == 4 and "AccessDenied" in done.text, done


@pytest.mark.parametrize("size", [0, 1, WHOLE_BYTES, WHOLE_BYTES + 1, len(IN_PARTS)])
def test_sizes(server: ScriptedS3, small_parts: None, tmp_path: Path, size: int) -> None:
    assert piped(server, tmp_path, IN_PARTS[:size]).code == 0
