"""Parts of an upload to S3 that a second worker sends, as the first one takes long: whose word counts."""

import pytest
from unit.made_up_context import a_context, a_file

from mpx.endpoints.s3 import part_scheduler
from mpx.endpoints.s3.part_scheduler import PartScheduler, SendPart
from mpx.endpoints.s3.parts import PartedFile
from mpx.endpoints.s3.uploads import BegunUpload, StoredPart, Uploads
from mpx.engine.file_transfer import FileTransfer

PART_BYTES, PARTS = 10, 3


@pytest.fixture
def uploads() -> Uploads:
    return Uploads("bucket")


@pytest.fixture
def parted(uploads: Uploads) -> PartedFile:
    begun = BegunUpload("/key", "one", PART_BYTES, "http://localhost")
    return PartedFile(a_file(PARTS * PART_BYTES), begun, uploads, has_crc32=False)


@pytest.fixture
def scheduler(monkeypatch: pytest.MonkeyPatch) -> PartScheduler:
    """It has a part taken over at once."""
    monkeypatch.setattr(part_scheduler, "STUCK_PART_S", 0.0)
    monkeypatch.setattr(part_scheduler, "STUCK_TIMES", 0)
    context = a_context()
    context.queue.end_listing()
    return PartScheduler(context)


def a_part(number: int, etag: str = '"tag"') -> StoredPart:
    return StoredPart(number, PART_BYTES, etag, b"", 0)


def handed_out(scheduler: PartScheduler) -> SendPart | None:
    work = scheduler.take_work()
    assert work is None or isinstance(work, SendPart)
    return work


def all_in_hand(scheduler: PartScheduler, parted: PartedFile) -> list[SendPart]:
    """Have all parts in the hands of workers, of which the first has stored its own."""
    scheduler.put(parted)
    works = [work for _ in range(PARTS) if (work := handed_out(scheduler))]
    parted.stored(a_part(1), "")
    scheduler.part_ended(works[0])
    return works[1:]


def test_the_server_knows_no_upload_that_is_complete(parted: PartedFile) -> None:
    """As a late worker hears: nothing is to begin anew."""
    for number in range(1, PARTS):
        parted.stored(a_part(number), "")
    assert not parted.is_dead
    parted.stored(a_part(PARTS), "")
    assert not parted.die()
    assert not parted.is_dead and parted.file.is_whole


def test_an_upload_that_was_forgotten_before_begins_anew_once(parted: PartedFile) -> None:
    parted.stored(a_part(1), "")
    assert [parted.die(), parted.die()] == [True, False]
    assert parted.is_dead


def test_of_a_part_that_is_stored_twice_the_last_counts(parted: PartedFile, uploads: Uploads) -> None:
    """Of encrypted ones each has a tag of its own, and the server completes by the last."""
    for number, etag in ((1, '"a"'), (2, '"b"'), (2, '"c"'), (3, '"d"'), (1, '"e"')):
        parted.stored(a_part(number, etag), "")
    ready = uploads.ready_at(parted.file.partial)
    assert ready and [part.etag for part in ready.parts] == ['"e"', '"c"', '"d"']


def test_a_part_is_taken_over_once_and_counts_once(scheduler: PartScheduler, parted: PartedFile) -> None:
    late, _ = all_in_hand(scheduler, parted)
    second, third = handed_out(scheduler), handed_out(scheduler)
    assert second and second.number == late.number
    assert third and third.number == PARTS
    assert handed_out(scheduler) is None
    parted.stored(a_part(second.number), "")
    scheduler.part_ended(second)
    known = len(scheduler._took_s)
    scheduler.part_ended(late)
    assert len(scheduler._took_s) == known  # how long it was stuck is not how long parts take


@pytest.mark.parametrize("ends", [PartedFile.die, lambda parted: given_up(parted.file)])
def test_nobody_takes_over_what_is_of_no_use(ends, scheduler: PartScheduler, parted: PartedFile) -> None:
    all_in_hand(scheduler, parted)
    ends(parted)
    assert handed_out(scheduler) is None


def given_up(file: FileTransfer) -> None:
    assert file.claim_given_up()
