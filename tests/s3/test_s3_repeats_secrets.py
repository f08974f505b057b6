"""Servers of S3 that repeat what lets us in, or what signs a request: nobody is shown it."""

from pathlib import Path

import pytest
from s3.lying_s3 import SMALL, down, up
from s3.scripted_s3 import Answer, Asked, ScriptedS3, error
from web.lying import copied

TOKEN = "a-session-token-that-nobody-prints"


def repeats(asked: Asked, *, code: str = "AccessDenied") -> Answer:
    sent = asked.headers
    told = f"{sent['authorization']} and {sent.get('x-amz-security-token')}".replace("Credential=", "from ")
    return error(403, code, f"{told[-230:]} {told}")


@pytest.mark.parametrize("what", ["HEAD", "GET", "PUT", "list"])
@pytest.mark.parametrize("code", ["AccessDenied", "InvalidAccessKeyId", "SlowDown", "Unheard"])
def test_no_error_shows_it(
    code: str, what: str, server: ScriptedS3, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SESSION_TOKEN", TOKEN)
    server.instead = lambda asked: repeats(asked, code=code) if asked.what == what else None
    if what == "PUT":
        outcome = up(server, tmp_path, SMALL, retries=0)
    elif what == "list":
        outcome = copied("s3://bucket/folder/", tmp_path / "to", recursive=True, retries=0, timeout_s=20.0)
    else:
        outcome = down(server, tmp_path, retries=0)
    asked = [each for each in server.asked if each.what == what]
    assert asked
    texts = [outcome.text, *outcome.notes]
    for each in asked:
        signature = each.headers["authorization"].rpartition("Signature=")[2]
        for secret in (signature, "AKIAOFTHETEST", TOKEN):
            assert not any(secret in text for text in texts), texts
    if outcome.code:
        assert "[secret]" in outcome.text, outcome
