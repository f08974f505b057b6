"""Credentials that permit some requests and not others, as policies of buckets do."""

from pathlib import Path

import pytest
from s3.lying_s3 import IN_PARTS, KEY, SMALL, URL, down, up
from s3.scripted_s3 import Answer, Asked, ScriptedS3, error
from web.lying import copied

DENIED = error(403, "AccessDenied")


class Permits:
    """Permits these kinds of requests; like AWS it does not tell that what may not be listed is missing."""

    def __init__(self, server: ScriptedS3, *kinds: str) -> None:
        self._server, self._kinds = server, kinds

    def __call__(self, asked: Asked) -> Answer | None:
        is_missing = asked.what in ("HEAD", "GET") and asked.key not in self._server.objects
        return None if asked.what in self._kinds and not is_missing else DENIED


WRITES = ("PUT", "begin", "part", "complete")


def test_requesters_pay(server: ScriptedS3, small_parts: None, tmp_path: Path) -> None:
    """Every request says so, and is signed so; without the option none does."""

    def wants(asked: Asked) -> Answer | None:
        is_signed = "x-amz-request-payer" in asked.headers["authorization"]
        return None if asked.headers.get("x-amz-request-payer") == "requester" and is_signed else DENIED

    server.instead = wants
    assert down(server, tmp_path).code == 3
    server.asked.clear()
    assert down(server, tmp_path, request_payer="requester").code == 0
    assert up(server, tmp_path, IN_PARTS, request_payer="requester").code == 0
    done = copied(URL, "s3://bucket/copy", request_payer="requester", timeout_s=20.0, overwrite="always")
    assert done.code == 0 and server.objects["copy"] == IN_PARTS, done
    assert not any("x-amz-request-payer" not in asked.headers for asked in server.asked)


def test_objects_and_no_listings(server: ScriptedS3, small_parts: None, tmp_path: Path) -> None:
    """Each object that is named can be had and replaced; a folder is told as what nobody may list."""
    server.instead = Permits(server, "HEAD", "GET", *WRITES)
    assert down(server, tmp_path).code == 0
    assert up(server, tmp_path, IN_PARTS).code == 0
    done = copied("s3://bucket/folder", tmp_path / "x", recursive=True, timeout_s=20.0)
    assert done.code == 3 and "AccessDenied" in done.text, done


@pytest.mark.parametrize("data", [SMALL[:10], IN_PARTS], ids=["at once", "in parts"])
@pytest.mark.parametrize("kinds", [WRITES, ("HEAD", "GET", *WRITES)], ids=["only adds", "no listings"])
def test_new_objects(
    server: ScriptedS3, small_parts: None, tmp_path: Path, data: bytes, kinds: tuple[str, ...]
) -> None:
    """It is not known whether there is one, so that the user is told."""
    server.objects.clear()
    server.instead = Permits(server, *kinds)
    done = up(server, tmp_path, data, overwrite="different")
    assert done.code == 0, done
    assert sum("do not permit to see" in note for note in done.notes) == 1, done.notes


def test_a_tree_of_new_objects(server: ScriptedS3, tmp_path: Path) -> None:
    server.objects.clear()
    server.instead = Permits(server, *WRITES)
    names = [f"{number}" for number in range(12)]
    (tmp_path / "tree").mkdir()
    for name in names:
        (tmp_path / "tree" / name).write_text(name)
    done = copied(tmp_path / "tree", "s3://bucket/tree", recursive=True, timeout_s=20.0)
    assert done.code == 0, done
    assert server.objects == {f"tree/{name}": name.encode() for name in names}


def test_nothing_unseen_is_replaced_where_nothing_is_to_be(server: ScriptedS3, tmp_path: Path) -> None:
    server.instead = Permits(server, *WRITES)
    done = up(server, tmp_path, b"new", overwrite="never")
    assert done.code == 4 and "AccessDenied" in done.text, done
    assert server.objects[KEY] == SMALL


def test_what_may_not_be_stored(server: ScriptedS3, small_parts: None, tmp_path: Path) -> None:
    server.instead = Permits(server, "HEAD", "GET", "list", "begin", "part", "abort")
    for data in (SMALL[:10], IN_PARTS):
        done = up(server, tmp_path, data)
        assert done.code == 4 and "do not permit this" in done.text, done
