"""Uploads in parts that begin without the copy hearing of it: they are aborted where they are surely ours."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest
from mpx_command import copied as is_copied
from mpx_command import mpx, running
from s3.buckets import buckets_of
from s3.lying_s3 import IN_PARTS, KEY, up
from s3.scripted_s3 import NAME_SPACE, Answer, Asked, FallSilent, ResetInstead, ScriptedS3, error, scripted_s3
from sites import make
from web.servers.s3_site import S3Site

from mpx.endpoints.s3.access import S3Access
from mpx.endpoints.s3.beginning import new_upload
from mpx.endpoints.s3.options import S3Options
from mpx.endpoints.s3.questions import S3Questions
from mpx.endpoints.web.options import WebOptions
from mpx.engine.endpoint import FileInfo, Kind
from mpx.engine.file_transfer import FileTransfer
from mpx.errors import ConnectionLost, DestinationError
from mpx.location import Location
from mpx.report import no_note

WITHIN_S = 60.0
PART = "<Part><PartNumber>1</PartNumber><Size>1</Size><ETag>x</ETag></Part>"


@dataclass
class Listing:
    """Loses the answer to the first request for an upload, and lists that, as others may be, and ours."""

    key: str = KEY
    initiator: str = "me"
    before_s: float = 0.0  # our request
    parts: str = ""
    own: str = "me"
    next_page: Callable[[int, int], str] | None = None  # what ends a page of one, by its number
    names: tuple[str, ...] = ("lost",)
    lost: list[str] = field(default_factory=list)
    aborted: list[str] = field(default_factory=list)

    def __call__(self, asked: Asked) -> Answer | None:
        if asked.what == "begin" and not self.lost:
            begun = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(time.time() - self.before_s))
            self.lost.append(begun)
            raise ResetInstead
        if asked.what == "abort":
            self.aborted.append(asked.query["uploadId"])
            return 204, {}, b""
        if asked.what == "parts":
            return 200, {}, f"<ListPartsResult {NAME_SPACE}>{self.parts}</ListPartsResult>".encode()
        if "uploads" not in asked.query or asked.method != "GET":
            return None
        (begun,) = self.lost
        uploads = [self._upload(KEY, "one", self.own, begun)]
        uploads += [self._upload(self.key, name, self.initiator, begun) for name in self.names]
        at = int(asked.query.get("upload-id-marker", "0"))
        page = self.next_page(at, len(uploads)) if self.next_page else ""
        here = uploads[at : at + 1] if self.next_page else uploads
        body = f"<ListMultipartUploadsResult {NAME_SPACE}>{page}{''.join(here)}</ListMultipartUploadsResult>"
        return 200, {}, body.encode()

    @staticmethod
    def _upload(key: str, name: str, initiator: str, begun: str) -> str:
        who = f"<Initiator><ID>{initiator}</ID></Initiator>" if initiator else ""
        what = f"<Key>{key}</Key><UploadId>{name}</UploadId><Initiated>{begun}</Initiated>"
        return f"<Upload>{what}{who}<Owner><ID>owner</ID></Owner></Upload>"


@pytest.fixture
def empty(server: ScriptedS3, small_parts: None) -> ScriptedS3:
    server.objects.clear()
    return server


def test_it_is_aborted(empty: ScriptedS3, tmp_path: Path) -> None:
    empty.instead = listing = Listing()
    done = up(empty, tmp_path, IN_PARTS, retries=3)
    assert done.code == 0 and listing.aborted == ["lost"], done
    assert any("whose answer was lost, is aborted" in note for note in done.notes)


def test_it_is_discarded_with_the_one_that_followed(empty: ScriptedS3, tmp_path: Path) -> None:
    listing, failed = Listing(), error(500, "InternalError")
    empty.instead = lambda asked: failed if asked.query.get("partNumber") == "2" else listing(asked)
    assert up(empty, tmp_path, IN_PARTS, retries=1).code == 6 and not listing.aborted
    is_copied(mpx("unfinished", "--discard"))
    assert sorted(listing.aborted) == ["lost", "one"]


@pytest.mark.parametrize(
    "what",
    [
        partial(Listing, key=f"{KEY}/below"),
        partial(Listing, initiator="another"),
        partial(Listing, before_s=60.0),
        partial(Listing, before_s=-60.0),
        partial(Listing, parts=PART),
        partial(Listing, names=("two", "three")),
        partial(Listing, names=()),
    ],
    ids=["key", "initiator", "before", "after", "has a part", "too many", "none"],
)
def test_what_may_be_of_others_stays(empty: ScriptedS3, tmp_path: Path, what: Callable[[], Listing]) -> None:
    empty.instead = listing = what()
    done = up(empty, tmp_path, IN_PARTS, retries=3)
    assert done.code == 0 and not listing.aborted and listing.lost, done
    assert any("two, three" in note for note in done.notes) == (len(listing.names) > 1)


@pytest.mark.parametrize(("own", "initiator"), [("", ""), ("", "another"), (" ", " ")])
def test_where_nobody_is_told_it_is_named(
    empty: ScriptedS3, tmp_path: Path, own: str, initiator: str
) -> None:
    empty.instead = listing = Listing(own=own, initiator=initiator)
    done = up(empty, tmp_path, IN_PARTS, retries=3)
    assert done.code == 0 and not listing.aborted, done
    how = f"--bucket bucket --key {KEY} --upload-id lost --endpoint-url {empty.url}"
    assert any("does not tell who" in note and how in note for note in done.notes), done


def test_one_that_tells_nobody_is_not_by_who_began_ours(empty: ScriptedS3, tmp_path: Path) -> None:
    empty.instead = listing = Listing(initiator="")
    assert up(empty, tmp_path, IN_PARTS, retries=3).code == 0 and not listing.aborted


def test_all_pages_are_read(empty: ScriptedS3, tmp_path: Path) -> None:
    """Two that may be ours, of which the first page has one, are too many."""
    empty.instead = listing = Listing(names=("two", "three"), next_page=pages)
    done = up(empty, tmp_path, IN_PARTS, retries=3)
    assert done.code == 0 and not listing.aborted, done
    assert any("two, three" in note for note in done.notes)


def pages(at: int, count: int) -> str:
    return endless(at, count) if at + 1 < count else ""


def endless(at: int, _: int) -> str:
    marker = f"<NextKeyMarker>{KEY}</NextKeyMarker><NextUploadIdMarker>{at + 1}</NextUploadIdMarker>"
    return f"<IsTruncated>true</IsTruncated>{marker}"


def repeated(_: int, __: int) -> str:
    return endless(0, 0)


def without_marker(_: int, __: int) -> str:
    return "<IsTruncated>true</IsTruncated>"


@pytest.mark.parametrize("next_page", [endless, repeated, without_marker])
def test_a_list_without_end_aborts_nothing(
    empty: ScriptedS3, tmp_path: Path, next_page: Callable[[int, int], str]
) -> None:
    empty.instead = listing = Listing(next_page=next_page)
    done = up(empty, tmp_path, IN_PARTS, retries=3)
    assert done.code == 0 and not listing.aborted, done
    assert any("may stay at the server" in note for note in done.notes)


def denied() -> Answer:
    return error(403, "AccessDenied")


def broken() -> Answer:
    return error(500, "InternalError")


def slow() -> Answer:
    raise FallSilent


@pytest.mark.parametrize("how", [denied, broken, slow])
@pytest.mark.parametrize("what", ["uploads", "abort", "parts"])
def test_what_cannot_be_looked_for_is_told_and_stops_nothing(
    empty: ScriptedS3, tmp_path: Path, what: str, how: Callable[[], Answer]
) -> None:
    listing = Listing()

    def refuse(asked: Asked) -> Answer | None:
        is_list = asked.method == "GET" and "uploads" in asked.query
        return how() if (is_list if what == "uploads" else asked.what == what) else listing(asked)

    empty.instead = refuse
    done = up(empty, tmp_path, IN_PARTS, retries=3, timeout_s=0.5)
    assert done.code == 0 and any("may stay at the server" in note for note in done.notes), done
    assert empty.objects[KEY] == IN_PARTS


def test_what_cannot_be_looked_for_is_discarded_all_the_same(empty: ScriptedS3, tmp_path: Path) -> None:
    listing = Listing()

    def refuse(asked: Asked) -> Answer | None:
        if asked.query.get("partNumber") == "2":
            return broken()
        return broken() if asked.method == "GET" and "uploads" in asked.query else listing(asked)

    empty.instead = refuse
    assert up(empty, tmp_path, IN_PARTS, retries=1).code == 6
    done = mpx("unfinished", "--discard")
    is_copied(done)
    assert listing.aborted == ["one"] and "may stay at the server" in done.out, done
    assert listing.aborted == ["one"]


def test_nobody_lists_uploads_where_none_was_lost(empty: ScriptedS3, tmp_path: Path) -> None:
    assert up(empty, tmp_path, IN_PARTS).code == 0
    assert not any(asked.method == "GET" and "uploads" in asked.query for asked in empty.asked)


def test_one_is_not_looked_for_that_could_not_be_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody listens at the server: none of the uploads there is ours."""
    at = Location("s3", "/key", "bucket")
    access = S3Access(at, WebOptions(), S3Options(region="eu-west-1", endpoint_url="http://127.0.0.1:1"))
    file = FileTransfer("source", "/key", "/.key.part", FileInfo(Kind.FILE, 1))
    with pytest.raises(ConnectionLost):
        new_upload(S3Questions(access, DestinationError), file, 1, no_note)
    assert not access.asked.unanswered(file.partial)


def test_mpx_is_killed_before_it_hears(
    seaweedfs: S3Site, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The next copy finds what the server has begun, by what was noted before it was asked.

    SeaweedFS does not tell who began it, so that the user is told.
    """
    bucket, source = buckets_of(seaweedfs, monkeypatch), make(tmp_path / "source", (16 << 20) + 1)
    is_over = threading.Event()
    with scripted_s3(behind=bucket.site) as before:
        monkeypatch.setenv("AWS_ENDPOINT_URL", before.url)

        def kill(asked: Asked, answer: Answer) -> Answer:
            if asked.what == "begin":
                process.kill()
                assert is_over.wait(WITHIN_S)
            return answer

        with running("copy", source, f"{bucket.url}key") as process:
            before.after = kill
            assert process.wait() == -9
            is_over.set()
        (begun,) = bucket.uploads()
        before.after = lambda _, answer: answer
        done = mpx("copy", source, f"{bucket.url}key")
    is_copied(done)
    assert bucket.get("key") == source.read_bytes()
    assert f"--upload-id {begun['UploadId']}" in done.out and bucket.uploads() == [begun], done
