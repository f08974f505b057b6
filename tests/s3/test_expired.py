"""Credentials that expire while a copy runs: others are looked for where the AWS tools look for them."""

import os
import time
from pathlib import Path

import pytest
from s3.lying_s3 import IN_PARTS, KEY, SMALL, down, up
from s3.scripted_s3 import Answer, Asked, ScriptedS3, error
from web.lying import Outcome

EXPIRED = error(400, "ExpiredToken", "The provided token has expired.")


class Expiring:
    """Takes a token for so many requests of a kind, from when it is first shown."""

    def __init__(self, what: str, times: int) -> None:
        self._what, self._times = what, times
        self.used: dict[str, int] = {}

    def __call__(self, asked: Asked) -> Answer | None:
        token = asked.headers["x-amz-security-token"]
        self.used[token] = self.used.get(token, 0) + (asked.what == self._what)
        return EXPIRED if self.used[token] > self._times else None


@pytest.fixture
def of_a_program(server: ScriptedS3, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Credentials of a program that gives others each time, and does not say until when they hold."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    program, asked = tmp_path / "program.sh", tmp_path / "asked"
    program.write_text(
        f"echo x >> {asked}\n"
        'echo \'{"Version":1,"AccessKeyId":"A","SecretAccessKey":"b","SessionToken":"\'$(wc -l < '
        f"{asked})'\"}}'\n"
    )
    Path(os.environ["AWS_CONFIG_FILE"]).write_text(f"[default]\ncredential_process = sh {program}\n")


@pytest.mark.parametrize(
    ("what", "times"), [("HEAD", 0), ("GET", 0), ("PUT", 0), ("begin", 0), ("part", 2), ("complete", 0)]
)
def test_others_are_used(
    server: ScriptedS3, of_a_program: None, small_parts: None, tmp_path: Path, what: str, times: int
) -> None:
    expiring = Expiring(what, times)
    server.instead = lambda asked: expiring(asked) if asked.headers["x-amz-security-token"] == "1" else None
    done = _moved(server, tmp_path, what)
    assert done.code == 0, done
    assert list(expiring.used) == ["1"] and expiring.used["1"] > times
    if what == "part":
        assert server.count("part") <= 3 + 2, "parts that were stored are sent again"


@pytest.mark.parametrize("what", ["HEAD", "GET", "PUT", "part", "complete"])
def test_there_are_no_others(
    server: ScriptedS3, small_parts: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, what: str
) -> None:
    monkeypatch.setenv("AWS_SESSION_TOKEN", "1")
    server.instead = Expiring(what, 0)
    done = _moved(server, tmp_path, what, retries=5)
    assert done.code == 5 and "ExpiredToken" in done.text and "get others" in done.text, done
    assert server.count(what) < 5


@pytest.mark.parametrize("says", ["echo no JSON", "rm $0", "exit 1"])
def test_a_program_that_fails_later(
    server: ScriptedS3, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, says: str
) -> None:
    """It is asked anew as what it gave ends soon; the third time it is not there, or says no such thing."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    program, asked = tmp_path / "program", tmp_path / "asked"
    until = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 300))
    program.write_text(
        f"#!/bin/sh\necho x >> {asked}\n[ $(wc -l < {asked}) -gt 2 ] && {{ {says}; exit; }}\n"
        f'echo \'{{"Version":1,"AccessKeyId":"A","SecretAccessKey":"b","Expiration":"{until}"}}\'\n'
    )
    program.chmod(0o755)
    Path(os.environ["AWS_CONFIG_FILE"]).write_text(f"[default]\ncredential_process = {program}\n")
    done = down(server, tmp_path, retries=1)
    assert done.code == 5 and "credentials for S3 cannot be had" in done.text, done


def test_a_file_that_was_written_anew(
    server: ScriptedS3, small_parts: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As a program of an institute does every hour: several workers notice, and all go on."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    file = Path(os.environ["AWS_SHARED_CREDENTIALS_FILE"])
    new = tmp_path / "new"
    text = "[default]\naws_access_key_id=A\naws_secret_access_key=b\naws_session_token="
    file.write_text(f"{text}old\n")

    def expire(asked: Asked) -> Answer | None:
        if asked.what == "part" and asked.headers["x-amz-security-token"] == "old":
            new.write_text(f"{text}new\n")
            new.replace(file)
            return EXPIRED
        return None

    server.instead = expire
    done = up(server, tmp_path, SMALL, streams=4, retries=3)
    assert done.code == 0, done


def _moved(server: ScriptedS3, tmp_path: Path, what: str, retries: int = 3) -> Outcome:
    if what in ("HEAD", "GET"):
        return down(server, tmp_path, retries=retries)
    server.objects.pop(KEY)
    return up(server, tmp_path, SMALL[:10] if what == "PUT" else IN_PARTS, retries=retries)
