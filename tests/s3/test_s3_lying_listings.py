"""Listings: very many keys, what is no name of a file, and pages that make no sense."""

from pathlib import Path
from xml.sax.saxutils import escape

import pytest
from mpx_command import mpx
from s3.scripted_s3 import NAME_SPACE, Answer, Asked, ScriptedS3
from web.lying import copied

PAGES, PAGE = 12, 1000
END = b"</ListBucketResult>"


def page(keys: list[str], more: str = "", *, size: object = 1, prefixes: list[str] | None = None) -> Answer:
    contents = "".join(f"<Contents><Key>{escape(key)}</Key><Size>{size}</Size></Contents>" for key in keys)
    common = "".join(
        f"<CommonPrefixes><Prefix>{escape(each)}</Prefix></CommonPrefixes>" for each in prefixes or []
    )
    body = f"<ListBucketResult {NAME_SPACE}>{contents}{common}{more}</ListBucketResult>"
    return 200, {}, body.encode("utf-8", "surrogateescape")


def goes_on(token: object) -> str:
    return f"<IsTruncated>true</IsTruncated><NextContinuationToken>{token}</NextContinuationToken>"


def test_very_many(server: ScriptedS3) -> None:
    """All are listed, page after page, in little memory."""

    def listed(asked: Asked) -> Answer | None:
        if asked.what != "list":
            return None
        number = int(asked.query.get("continuation-token", "0"))
        keys = [f"d/{number:02}-{each:04}" for each in range(PAGE)]
        return page(keys, goes_on(number + 1) if number + 1 < PAGES else "")

    server.instead = listed
    done = mpx("list", "s3://bucket/d")
    assert done.code == 0, done
    names = done.out.split()
    assert len(set(names)) == len(names) == PAGES * PAGE
    assert server.count("list") == PAGES + 1  # and one that asks whether there is such a folder


@pytest.mark.parametrize("token", ["", "the same"])
def test_a_listing_that_does_not_say_how_it_goes_on(server: ScriptedS3, tmp_path: Path, token: str) -> None:
    server.instead = lambda asked: page(["d/a"], goes_on(token)) if asked.what == "list" else None
    done = copied("s3://bucket/d", tmp_path / "d", recursive=True, retries=0, timeout_s=20.0)
    assert done.code == 6 and "how a listing goes on" in done.text, done


@pytest.mark.parametrize(
    "answer",
    [
        (200, {}, b"<html>welcome</html>"),
        (200, {}, page(["d/a"])[2].removesuffix(END)),
        (200, {"Content-Length": "5000", "Connection": "close"}, page(["d/a"])[2]),
        (200, {}, b""),
        (204, {}, b""),
        (200, {}, b"\xff\xfe" * 50),
    ],
    ids=["html", "cut off", "short", "empty", "nothing", "noise"],
)
def test_what_is_no_listing(server: ScriptedS3, tmp_path: Path, answer: Answer) -> None:
    server.instead = lambda asked: answer if asked.what == "list" else None
    done = copied("s3://bucket/d", tmp_path / "d", recursive=True, retries=0, timeout_s=20.0)
    assert done.code in (3, 6), done
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "key", ["elsewhere", "d/../up", "d/a/b", "d/a\tb", "d/", "d//", "d/.", "\x85d/x", "d/x/", "d/%2e%2e"]
)
def test_keys_that_are_no_files_in_the_folder(server: ScriptedS3, tmp_path: Path, key: str) -> None:
    """What is there beside them is copied; nothing is written outside of the folder."""
    server.objects |= {"d/fine": b"1"}
    server.instead = lambda asked: page(["d/fine", key]) if asked.what == "list" else None
    (tmp_path / "to").mkdir()
    done = copied("s3://bucket/d", tmp_path / "to/d", recursive=True, retries=0, timeout_s=20.0)
    assert done.code in (3, 10), done
    assert [path.name for path in tmp_path.iterdir()] == ["to"]
    assert {path.name for path in (tmp_path / "to/d").rglob("*")} == {"fine"}


@pytest.mark.parametrize("size", ["", "-1", "1e3", 10**30, "x"])
def test_sizes_that_are_none(server: ScriptedS3, tmp_path: Path, size: object) -> None:
    server.objects |= {"d/fine": b"12345"}
    server.instead = lambda asked: page(["d/fine"], size=size) if asked.what == "list" else None
    done = copied("s3://bucket/d", tmp_path / "d", recursive=True, retries=0, timeout_s=20.0)
    assert done.code in (0, 3, 6, 8, 9, 10), done
    if done.code == 0:
        assert (tmp_path / "d/fine").read_bytes() == b"12345"


@pytest.mark.parametrize(("name", "came"), [("x", b"object"), ("x/", b"below")])
def test_an_object_with_the_name_of_a_folder(
    server: ScriptedS3, tmp_path: Path, name: str, came: bytes
) -> None:
    """The one or the other is copied, as it was named, and the user told that there is another."""
    server.objects |= {"d/x": b"object", "d/x/y": b"below"}
    below = page(["d/x/y"], size=5)
    server.instead = lambda asked: below if asked.query.get("prefix") == "d/x/" else None
    done = copied(f"s3://bucket/d/{name}", tmp_path / "to", recursive=True, retries=0, timeout_s=20.0)
    assert done.code == 0, done
    told = any("others begin with s3://bucket/d/x/" in note for note in done.notes)
    assert told == (name == "x")
    assert (tmp_path / "to" if name == "x" else tmp_path / "to/y").read_bytes() == came


def test_one_name_twice(server: ScriptedS3, tmp_path: Path) -> None:
    """A folder and an object of one name, which S3 permits, and no file system."""
    server.objects |= {"d/x": b"object", "d/x/y": b"below"}

    def listed(asked: Asked) -> Answer | None:
        if asked.what != "list":
            return None
        below = asked.query["prefix"] == "d/x/"
        return page(["d/x/y"]) if below else page(["d/x"], prefixes=["d/x/"])

    server.instead = listed
    done = copied("s3://bucket/d", tmp_path / "d", recursive=True, retries=0, timeout_s=20.0)
    assert done.code in (3, 4, 10), done
    assert "x" in done.text
