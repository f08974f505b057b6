"""What a server tells of an upload that an earlier run has begun: page after page, and whatever it says."""

import base64
import hashlib
import os
import zlib
from pathlib import Path

import pytest
from mpx_command import copied as is_copied
from mpx_command import mpx
from s3.lying_s3 import IN_PARTS, KEY, PART_BYTES, WHOLE_BYTES, up
from s3.scripted_s3 import NAME_SPACE, Answer, Asked, ScriptedS3, error

from mpx.endpoints.s3 import beginning
from mpx.engine import file_transfer

FAILED = error(500, "InternalError")
EMPTY = hashlib.md5(b"").hexdigest()


def part(number: object, data: bytes, *, etag: str = "", size: object = None, more: str = "") -> str:
    etag = etag or hashlib.md5(data).hexdigest()
    size = len(data) if size is None else size
    what = f"<PartNumber>{number}</PartNumber><ETag>&quot;{etag}&quot;</ETag><Size>{size}</Size>"
    return f"<Part>{what}{more}</Part>"


def page(*parts: str, more: object = None) -> Answer:
    goes_on = (
        ""
        if more is None
        else f"<IsTruncated>true</IsTruncated><NextPartNumberMarker>{more}</NextPartNumberMarker>"
    )
    return 200, {}, f"<ListPartsResult {NAME_SPACE}>{''.join(parts)}{goes_on}</ListPartsResult>".encode()


FIRST, SECOND = IN_PARTS[:PART_BYTES], IN_PARTS[PART_BYTES : 2 * PART_BYTES]


@pytest.fixture
def interrupted(
    server: ScriptedS3, small_parts: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> ScriptedS3:
    """An upload whose first two parts are stored, and the last was refused."""
    monkeypatch.setattr(file_transfer, "SMALL_FILE_BYTES", WHOLE_BYTES)
    server.objects.clear()
    server.instead = lambda asked: FAILED if asked.query.get("partNumber") == "3" else None
    assert up(server, tmp_path, IN_PARTS, streams=1, retries=0).code == 6
    assert not server.count("abort")
    server.asked.clear()
    return server


def again(server: ScriptedS3, tmp_path: Path, pages: dict[str, Answer]) -> set[str]:
    """Copy once more, where the server tells these pages by their markers; return the parts that are sent."""

    def listed(asked: Asked) -> Answer | None:
        if asked.what != "parts":
            return None
        return pages[asked.query["part-number-marker"]]

    server.instead = listed
    assert up(server, tmp_path, IN_PARTS).code == 0
    return {asked.query["partNumber"] for asked in server.asked if asked.what == "part"}


def test_page_after_page(interrupted: ScriptedS3, tmp_path: Path) -> None:
    pages = {"0": page(part(1, FIRST), more=1), "1": page(part(2, SECOND))}
    assert again(interrupted, tmp_path, pages) == {"3"}


@pytest.mark.parametrize("kind", ["", "<ChecksumType>FULL_OBJECT</ChecksumType>"])
def test_it_goes_on_with_checksums(interrupted: ScriptedS3, tmp_path: Path, kind: str) -> None:
    """Whether or not the server lists of what they are: some take no part without one then."""
    told = f"<ChecksumAlgorithm>CRC32</ChecksumAlgorithm>{kind}{part(1, FIRST)}{part(2, SECOND)}"
    assert again(interrupted, tmp_path, {"0": page(told)}) == {"3"}
    (last,) = [asked for asked in interrupted.asked if asked.what == "part"]
    assert "x-amz-checksum-crc32" in last.headers


def crc32(data: bytes) -> str:
    told = base64.b64encode(zlib.crc32(data).to_bytes(4, "big")).decode()
    return f"<ChecksumCRC32>{told}</ChecksumCRC32>"


OPAQUE = "0" * 32


@pytest.mark.parametrize(
    ("parts", "sent"),
    [
        ((part(1, FIRST, etag=OPAQUE, more=crc32(FIRST)), part(2, SECOND, etag=OPAQUE)), {"2", "3"}),
        ((part(1, FIRST, etag=OPAQUE, more=crc32(SECOND)),), {"1", "2", "3"}),
        ((part(1, FIRST, etag=OPAQUE, more=crc32(FIRST)), part(2, SECOND)), {"1", "3"}),
    ],
    ids=["no MD5s", "other bytes", "another MD5"],
)
def test_parts_whose_etags_are_no_md5s(
    interrupted: ScriptedS3, tmp_path: Path, parts: tuple[str, ...], sent: set[str]
) -> None:
    """As with keys of a key service: the CRC-32 of a part shows that it is ours."""
    told = page("<ChecksumAlgorithm>CRC32</ChecksumAlgorithm>", *parts)
    assert again(interrupted, tmp_path, {"0": told}) == sent


@pytest.mark.parametrize(
    "told",
    [
        part(1, SECOND),
        part(1, FIRST, size=PART_BYTES - 1),
        part(1, FIRST, etag=f"{hashlib.md5(FIRST).hexdigest()}-1"),
        part(1, FIRST, size="x"),
        part(0, FIRST),
        part(-1, FIRST),
        part(4, b"", etag=EMPTY),
        part(10**30, FIRST),
        part("", FIRST),
    ],
)
def test_parts_that_are_none_of_ours(interrupted: ScriptedS3, tmp_path: Path, told: str) -> None:
    assert again(interrupted, tmp_path, {"0": page(told, part(2, SECOND))}) == {"1", "3"}


def test_a_part_beyond_the_last(interrupted: ScriptedS3, tmp_path: Path) -> None:
    """Of a file that has whole parts only, it begins where that ends."""
    data = IN_PARTS[: 2 * PART_BYTES]
    interrupted.instead = lambda asked: FAILED if asked.what == "complete" else None
    assert up(interrupted, tmp_path, data, retries=0).code == 6
    told = page(part(3, b"", etag=EMPTY), part(1, FIRST), part(2, SECOND))
    interrupted.instead = lambda asked: told if asked.what == "parts" else None
    assert up(interrupted, tmp_path, data).code == 0


def test_the_file_is_short_by_now(interrupted: ScriptedS3, tmp_path: Path) -> None:
    """It goes in one request, and nobody would hear of the parts any more, which cost money."""
    interrupted.instead = lambda _: None
    assert up(interrupted, tmp_path, b"short").code == 0
    assert interrupted.count("abort") == 1 and not interrupted.count("begin")


def test_parts_that_stay_are_told_of(interrupted: ScriptedS3, tmp_path: Path) -> None:
    """Nobody hears of them again: which upload it is says how to be rid of them."""
    interrupted.instead = lambda asked: error(403, "AccessDenied") if asked.what == "abort" else None
    done = up(interrupted, tmp_path, IN_PARTS, resume=False)
    assert done.code == 0 and any("the upload one to" in note and "stay" in note for note in done.notes), done


def test_nothing_is_discarded_that_is_not_known(interrupted: ScriptedS3, tmp_path: Path) -> None:
    """As nobody can read which upload it is."""
    state = Path(os.environ["MPX_STATE_DIR"]) / "uploads.sqlite"
    rows = state.read_bytes()
    state.write_bytes(b"no database" * 1000)
    done = mpx("unfinished", "--discard")
    assert done.code == 4 and "uploads.sqlite" in done.err and "Traceback" not in done.err, done
    state.write_bytes(rows)
    interrupted.instead = lambda _: None
    is_copied(mpx("unfinished", "--discard"))
    assert interrupted.count("abort") == 1


def test_more_than_fits(server: ScriptedS3, small_parts: None, tmp_path: Path, largest_part: None) -> None:
    """Into parts as large as may be: it is refused before any byte is sent."""
    done = up(server, tmp_path, IN_PARTS)
    assert done.code == 4 and "the most in S3" in done.text, done
    assert not server.count("begin") and not server.count("part")


@pytest.fixture
def largest_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have S3 take no parts of the size that a file would need."""
    monkeypatch.setattr(beginning, "MOST_PART_BYTES", PART_BYTES - 1)


@pytest.mark.parametrize("more", ["", 0, "x"])
def test_a_list_that_does_not_say_how_it_goes_on(
    interrupted: ScriptedS3, tmp_path: Path, more: object
) -> None:
    told = page(part(1, FIRST), more=more)
    interrupted.instead = lambda asked: told if asked.what == "parts" else None
    done = up(interrupted, tmp_path, IN_PARTS, retries=1)
    assert done.code == 6 and "how a list of parts goes on" in done.text, done
    assert interrupted.objects.get(KEY) is None


def test_a_source_that_changes_on_the_way(server: ScriptedS3, small_parts: None, tmp_path: Path) -> None:
    """No mixture has a name: the upload is not completed."""

    def change(asked: Asked, answer: Answer) -> Answer:
        if asked.query.get("partNumber") == "2":
            (tmp_path / "source").write_bytes(IN_PARTS[::-1])
            os.utime(tmp_path / "source", (2e9, 2e9))
        return answer

    server.objects.clear()
    server.after = change
    done = up(server, tmp_path, IN_PARTS, streams=1, retries=0)
    assert done.code == 8 and "changed" in done.text, done
    assert not server.objects and not server.count("complete")
