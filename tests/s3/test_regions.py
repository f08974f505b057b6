"""A bucket of another region: it is found wherever the server names it, and else the user is told."""

import itertools
from pathlib import Path

import pytest
from s3.lying_s3 import IN_PARTS, down, up
from s3.scripted_s3 import Answer, Asked, ScriptedS3
from web.lying import copied

REGION = "eu-south-9"
NAMED = f"<Error><Code>{{}}</Code><Message>m</Message><Region>{REGION}</Region></Error>"
ELSEWHERE: dict[str, Answer] = {
    "header": (301, {"x-amz-bucket-region": REGION}, b""),
    "moved": (301, {}, NAMED.format("PermanentRedirect").encode()),
    "for now": (307, {"x-amz-bucket-region": REGION, "Location": "http://127.0.0.1:9/"}, b""),
    "signature": (400, {}, NAMED.format("AuthorizationHeaderMalformed").encode()),
}
OTHERS: dict[str, Answer] = {
    "moved": (301, {}, b"<Error><Code>PermanentRedirect</Code></Error>"),
    "nothing": (301, {}, b""),
    "nonsense": (301, {"x-amz-bucket-region": "../x"}, b""),
    "no label": (301, {"x-amz-bucket-region": "-"}, b""),
    "a number": (301, {"x-amz-bucket-region": "42"}, b""),
}


@pytest.mark.parametrize("how", ELSEWHERE)
def test_the_region_that_is_named_is_used(
    server: ScriptedS3, small_parts: None, tmp_path: Path, how: str
) -> None:
    def moved(asked: Asked) -> Answer | None:
        return None if f"/{REGION}/s3/aws4_request" in asked.headers["authorization"] else ELSEWHERE[how]

    server.instead = moved
    told = f"the bucket bucket is in the region {REGION}, which is used"
    for done in (down(server, tmp_path), up(server, tmp_path, IN_PARTS)):
        assert done.code == 0, done
        assert told in done.notes
    asked_wrongly = sum(REGION not in asked.headers["authorization"] for asked in server.asked)
    assert asked_wrongly <= 8, "every request goes to the wrong region first"


@pytest.mark.parametrize("how", OTHERS)
def test_one_that_is_not_named_is_asked_for(server: ScriptedS3, tmp_path: Path, how: str) -> None:
    server.instead = lambda _: OTHERS[how]
    done = down(server, tmp_path, retries=0)
    assert done.code == 3 and "another region" in done.text and "--region" in done.text, done


def test_the_answer_is_always_another_one(server: ScriptedS3, tmp_path: Path) -> None:
    numbers = itertools.count()
    server.instead = lambda _: (301, {"x-amz-bucket-region": f"eu-south-{next(numbers)}"}, b"")
    done = down(server, tmp_path, retries=0)
    assert done.code == 3 and "--region" in done.text, done
    assert len(server.asked) < 20


def test_a_server_that_leads_to_itself(server: ScriptedS3, tmp_path: Path) -> None:
    """S3 leads nowhere by Location; a proxy before it may."""

    def leads(asked: Asked) -> Answer | None:
        return (307, {"Location": asked.target}, b"") if asked.what == what else None

    server.instead = leads
    for what, code in (("GET", 3), ("PUT", 4), ("list", 3), ("HEAD", 0)):
        if what == "PUT":
            done = up(server, tmp_path, b"x", retries=0)
        elif what == "list":
            done = copied("s3://bucket/folder", tmp_path / "x", recursive=True, retries=0, timeout_s=20.0)
        else:
            done = down(server, tmp_path, retries=0)
        assert done.code == code, (what, done)
    assert len(server.asked) < 60


def test_https_in_place_of_http(server: ScriptedS3, tmp_path: Path) -> None:
    """A proxy before S3 that leads to TLS: the user is told what to name, without what is in the query."""
    server.instead = lambda _: (301, {"Location": "https://user:s3cr3t@host.example/x?s3cr3t"}, b"")
    done = down(server, tmp_path, retries=0)
    assert done.code == 3, done
    assert "leads to https://host.example; " in done.text and "--endpoint-url" in done.text, done
