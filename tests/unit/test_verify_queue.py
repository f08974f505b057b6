"""What waits to be verified and committed: nothing is proven that was not compared, nothing is forgotten."""

import hypothesis.strategies as st
import pytest
from hypothesis import given

from mpx.engine.checksum import SECTION_BYTES
from mpx.engine.endpoint import FileInfo, Kind
from mpx.engine.file_transfer import FileTransfer
from mpx.engine.ranges import RangeSet
from mpx.transfer.verify_queue import GROUP, LARGEST_SHARE, Batch, Section, Sections, VerifyQueue

LARGE = 5 * SECTION_BYTES + 7


def a_file(size: int = 10, name: str = "file") -> FileTransfer:
    return FileTransfer("source", name, f".{name}", FileInfo(Kind.FILE, size, 1.0, 0o644))


def arrived(file: FileTransfer) -> FileTransfer:
    file.take_all()
    file.landed(0, file.size_bytes)
    return file


# --- sections ----------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.integers(0, LARGE), st.integers(0, LARGE)), max_size=12), st.data())
def test_every_section_is_due_once_when_all_of_it_has_arrived(pieces, data) -> None:
    sections, there, taken = Sections(LARGE), RangeSet(), RangeSet()
    for one, other in [*pieces, (0, LARGE)]:
        there.add(min(one, other), max(one, other))
        due = sections.take_due(there.missing(0, LARGE))
        for start, end in due:
            assert start % SECTION_BYTES == 0
            assert end in (start + SECTION_BYTES, LARGE)
            assert there.covers(start, end)
            assert taken.add(start, end) == end - start  # never before
        if due and data.draw(st.booleans()):
            sections.put_back(*due[0])
            taken.remove(*due[0])
    taken.update(sections.take_due([]))
    assert taken == RangeSet([(0, LARGE)])


# --- the queue ---------------------------------------------------------------------------------------


def test_files_are_compared_then_committed_in_groups() -> None:
    verify_queue = VerifyQueue(verifies=True, sessions=4)
    files = [arrived(a_file(name=str(i))) for i in range(GROUP + 5)]
    assert all(verify_queue.whole(file) for file in files)
    first = verify_queue.take(0)
    assert [section.file for section in first.sections] == files[:GROUP]
    assert first.proven == []
    assert all(verify_queue.same(section, "md5") for section in first.sections)
    assert verify_queue.take(0).proven == files[:GROUP]
    assert [section.file for section in verify_queue.take(0).sections] == files[GROUP:]
    assert verify_queue.take(0).is_empty


def test_without_checksums_files_are_committed_as_they_are() -> None:
    verify_queue = VerifyQueue(verifies=False, sessions=1)
    file = arrived(a_file(LARGE))
    verify_queue.watch(file)
    assert verify_queue.take(0).is_empty
    verify_queue.whole(file)
    assert verify_queue.take(0) == Batch(proven=[file])


def test_a_server_that_compares_whole_files_is_asked_for_no_sections() -> None:
    verify_queue = VerifyQueue(verifies=True, sessions=1, by_section=False)
    file = a_file(LARGE)
    verify_queue.watch(file)
    file.take_all()
    file.landed(0, 2 * SECTION_BYTES)
    assert verify_queue.take(0).is_empty
    file.landed(2 * SECTION_BYTES, LARGE)
    verify_queue.whole(file)
    (section,) = verify_queue.take(0).sections
    assert (section.start, section.end, section.is_whole) == (0, LARGE, True)
    verify_queue.damaged(section)
    assert file.take_all() is None
    file.landed(0, LARGE)
    verify_queue.whole(file)
    (section,) = verify_queue.take(0).sections
    assert section.is_whole
    assert verify_queue.same(section, "adler32")
    assert verify_queue.take(0).proven == [file]


def test_an_empty_file_needs_no_comparison() -> None:
    verify_queue = VerifyQueue(verifies=True, sessions=1)
    file = a_file(0)
    verify_queue.whole(file)
    assert verify_queue.take(0) == Batch(proven=[file])


def test_a_large_file_is_shared_out_while_it_moves() -> None:
    verify_queue = VerifyQueue(verifies=True, sessions=8)
    file = a_file(40 * SECTION_BYTES)
    verify_queue.watch(file)
    assert verify_queue.take(0).is_empty
    file.landed(1, file.size_bytes)
    batch = verify_queue.take(0)
    assert next((s.start, s.end) for s in batch.sections) == (SECTION_BYTES, 2 * SECTION_BYTES)
    assert SECTION_BYTES <= sum(s.end - s.start for s in batch.sections) <= LARGEST_SHARE + SECTION_BYTES
    assert verify_queue.full_batches > 1
    assert not {s.start for s in batch.sections} & {s.start for s in verify_queue.take(0).sections}


def test_damaged_bytes_move_again_and_are_compared_again() -> None:
    verify_queue = VerifyQueue(verifies=True, sessions=1)
    file = arrived(a_file())
    verify_queue.whole(file)
    (section,) = verify_queue.take(0).sections
    assert not verify_queue.damaged(section)  # so the caller has it moved again
    assert verify_queue.take(0).is_empty
    assert file.missing_within(0, 10).size == 10
    file.landed(0, 10)
    assert verify_queue.whole(file)
    (section,) = verify_queue.take(0).sections
    assert verify_queue.same(section, "md5")
    assert verify_queue.take(0).proven == [file]


def test_damage_in_a_file_that_still_moves_needs_no_second_round() -> None:
    verify_queue = VerifyQueue(verifies=True, sessions=1)
    file = a_file(LARGE)
    verify_queue.watch(file)
    file.landed(0, SECTION_BYTES)
    (section,) = verify_queue.take(0).sections
    assert verify_queue.damaged(section)
    file.landed(0, LARGE)
    assert len(verify_queue.take(0).sections) + len(verify_queue.take(0).sections) > 1
    assert file.verified.size == 0


def test_a_whole_file_moves_again_once_after_all_of_it_was_compared() -> None:
    verify_queue = VerifyQueue(verifies=True, sessions=1)
    file = arrived(a_file(LARGE))
    verify_queue.whole(file)
    first, *rest, last = [section for _ in range(6) for section in verify_queue.take(0).sections]
    assert verify_queue.damaged(first)
    assert all(verify_queue.same(section, "md5") for section in rest)
    assert not verify_queue.same(last, "md5")  # now


def test_bytes_that_cannot_be_compared_are_tried_again_at_the_end_and_then_fail() -> None:
    verify_queue = VerifyQueue(verifies=True, sessions=1)
    file = a_file(LARGE)
    verify_queue.watch(file)
    file.landed(0, SECTION_BYTES)
    (section,) = verify_queue.take(0).sections
    assert verify_queue.unknown(section)
    assert verify_queue.take(0).is_empty  # not at once
    file.landed(0, LARGE)
    verify_queue.whole(file)
    again = verify_queue.take(0).sections[0]
    assert (again.start, again.end) == (section.start, section.end)
    assert not verify_queue.unknown(again)
    assert verify_queue.take(0).is_empty


def test_a_file_whose_parts_have_no_checksum_is_compared_as_a_whole() -> None:
    verify_queue = VerifyQueue(verifies=True, sessions=1)
    file = a_file(LARGE)
    verify_queue.watch(file)
    file.landed(0, 2 * SECTION_BYTES)
    first, second = verify_queue.take(0).sections
    assert verify_queue.in_one_piece(first)
    assert verify_queue.same(second, "md5")  # too late to count
    assert verify_queue.take(0).is_empty  # as long as it moves
    file.landed(0, LARGE)
    assert verify_queue.whole(file)
    (section,) = verify_queue.take(0).sections
    assert section.is_whole
    assert verify_queue.take(0).is_empty
    assert verify_queue.same(section, "md5")
    assert verify_queue.take(0).proven == [file]
    assert file.verified.bytes_by_algorithm() == {"md5": LARGE}


def test_a_file_without_a_checksum_is_committed_and_not_called_verified() -> None:
    verify_queue = VerifyQueue(verifies=True, sessions=1)
    file = arrived(a_file())
    verify_queue.whole(file)
    (section,) = verify_queue.take(0).sections
    assert verify_queue.exempt(section)
    assert verify_queue.take(0).proven == [file]
    assert file.verified.size == 0


def test_a_lost_session_gives_its_batch_back() -> None:
    verify_queue = VerifyQueue(verifies=True, sessions=2)
    file = arrived(a_file())
    verify_queue.whole(file)
    batch = verify_queue.take(0)
    assert verify_queue.take(0).is_empty
    verify_queue.put_back(batch)
    assert verify_queue.take(0) == batch
    verify_queue.same(batch.sections[0], "md5")
    batch = verify_queue.take(0)
    verify_queue.put_back(batch)
    assert verify_queue.take(0) == batch == Batch(proven=[file])


def test_what_was_compared_before_it_was_forgotten_counts_for_nothing() -> None:
    verify_queue = VerifyQueue(verifies=True, sessions=1)
    file = a_file(LARGE)
    verify_queue.watch(file)
    file.landed(0, LARGE)
    compared = [section for _ in range(6) for section in verify_queue.take(0).sections]
    assert verify_queue.same(compared[0], "md5")
    file.forget_arrived()
    verify_queue.forgot(file)
    assert all(verify_queue.same(section, "md5") for section in compared[1:])
    assert file.verified.size == 0
    file.landed(0, LARGE)
    verify_queue.whole(file)
    assert verify_queue.take(0).proven == []


def test_what_is_moved_again_is_compared_again_and_nothing_else_is() -> None:
    verify_queue = VerifyQueue(verifies=True, sessions=1)
    file = a_file(LARGE)
    verify_queue.watch(file)
    file.landed(0, LARGE)
    first, second, third, *_ = [section for _ in range(6) for section in verify_queue.take(0).sections]
    assert verify_queue.same(first, "md5") and verify_queue.same(second, "md5")
    verify_queue.again(file, 0, 1000)
    assert list(file.missing_within(0, LARGE)) == [(0, 1000)]
    assert verify_queue.same(third, "md5")  # its result was out, and does not count any more
    file.landed(0, 1000)
    verify_queue.whole(file)
    due = [(section.start, section.end) for section in verify_queue.take(0).sections]
    assert due == [(i * SECTION_BYTES, min((i + 1) * SECTION_BYTES, LARGE)) for i in (0, 2, 3, 4, 5)]


def test_a_file_that_was_given_up_is_not_handed_out() -> None:
    verify_queue = VerifyQueue(verifies=True, sessions=1)
    file = arrived(a_file())
    verify_queue.whole(file)
    verify_queue.drop(file)
    assert verify_queue.take(0).is_empty


SIZES = st.lists(st.sampled_from([0, 1, 10, SECTION_BYTES, LARGE]), min_size=1, max_size=6)
ANSWERS = st.lists(
    st.sampled_from(["same", "same", "same", "damaged", "unknown", "lost", "no parts"]), max_size=60
)


@given(SIZES, ANSWERS)
def test_whatever_comparing_says_only_what_is_the_same_is_committed(sizes, answers) -> None:
    """Plays a committer of which sessions are lost, with files that arrive at once."""
    verify_queue = VerifyQueue(verifies=True, sessions=3)
    files = [a_file(size, f"{i}") for i, size in enumerate(sizes)]
    compared: dict[FileTransfer, RangeSet] = {file: RangeSet() for file in files}
    settled: set[FileTransfer] = set()
    answer = iter(answers)

    def bring(file: FileTransfer) -> None:
        file.landed(0, file.size_bytes)
        if not verify_queue.whole(file):
            pytest.fail("a file that is whole must not move again")

    for file in files:
        verify_queue.watch(file)
        bring(file)
    for _ in range(1000):
        batch = verify_queue.take(0)
        if batch.is_empty:
            break
        for section in batch.sections:
            play(verify_queue, section, next(answer, "same"), compared, settled, bring)
        for file in batch.proven:
            assert compared[file].covers(0, file.size_bytes)
            assert file not in settled
            settled.add(file)
    assert settled == set(files)


def play(verify_queue: VerifyQueue, section: Section, told: str, compared, settled, bring) -> None:
    file = section.file
    if told == "same":
        compared[file].add(section.start, section.end)
        if not verify_queue.same(section, "md5"):
            bring(file)
    elif told == "damaged":
        compared[file].remove(section.start, section.end)
        if not verify_queue.damaged(section):
            bring(file)
    elif told == "no parts":
        if not verify_queue.in_one_piece(section):
            bring(file)
    elif told == "unknown" and file not in settled:
        if not verify_queue.unknown(section):
            settled.add(file)
    else:
        verify_queue.put_back(Batch(sections=[section]))
