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


def arrived(move: FileTransfer) -> FileTransfer:
    move.take_all()
    move.landed(0, move.size_bytes)
    return move


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


# --- the backlog -------------------------------------------------------------------------------------


def test_files_are_compared_then_committed_in_groups() -> None:
    backlog = VerifyQueue(verifies=True, sessions=4)
    moves = [arrived(a_file(name=str(i))) for i in range(GROUP + 5)]
    assert all(backlog.whole(move) for move in moves)
    first = backlog.take(0)
    assert [section.move for section in first.sections] == moves[:GROUP]
    assert first.proven == []
    assert all(backlog.same(section, "md5") for section in first.sections)
    assert backlog.take(0).proven == moves[:GROUP]
    assert [section.move for section in backlog.take(0).sections] == moves[GROUP:]
    assert backlog.take(0).is_empty


def test_without_checksums_files_are_committed_as_they_are() -> None:
    backlog = VerifyQueue(verifies=False, sessions=1)
    move = arrived(a_file(LARGE))
    backlog.watch(move)
    assert backlog.take(0).is_empty
    backlog.whole(move)
    assert backlog.take(0) == Batch(proven=[move])


def test_an_empty_file_needs_no_comparison() -> None:
    backlog = VerifyQueue(verifies=True, sessions=1)
    move = a_file(0)
    backlog.whole(move)
    assert backlog.take(0) == Batch(proven=[move])


def test_a_large_file_is_shared_out_while_it_moves() -> None:
    backlog = VerifyQueue(verifies=True, sessions=8)
    move = a_file(40 * SECTION_BYTES)
    backlog.watch(move)
    assert backlog.take(0).is_empty
    move.landed(1, move.size_bytes)
    batch = backlog.take(0)
    assert next((s.start, s.end) for s in batch.sections) == (SECTION_BYTES, 2 * SECTION_BYTES)
    assert SECTION_BYTES <= sum(s.end - s.start for s in batch.sections) <= LARGEST_SHARE + SECTION_BYTES
    assert backlog.full_batches > 1
    assert not {s.start for s in batch.sections} & {s.start for s in backlog.take(0).sections}


def test_damaged_bytes_move_again_and_are_compared_again() -> None:
    backlog = VerifyQueue(verifies=True, sessions=1)
    move = arrived(a_file())
    backlog.whole(move)
    (section,) = backlog.take(0).sections
    assert not backlog.damaged(section)  # so the caller has it moved again
    assert backlog.take(0).is_empty
    assert move.missing_within(0, 10).size == 10
    move.landed(0, 10)
    assert backlog.whole(move)
    (section,) = backlog.take(0).sections
    assert backlog.same(section, "md5")
    assert backlog.take(0).proven == [move]


def test_damage_in_a_file_that_still_moves_needs_no_second_round() -> None:
    backlog = VerifyQueue(verifies=True, sessions=1)
    move = a_file(LARGE)
    backlog.watch(move)
    move.landed(0, SECTION_BYTES)
    (section,) = backlog.take(0).sections
    assert backlog.damaged(section)
    move.landed(0, LARGE)
    assert len(backlog.take(0).sections) + len(backlog.take(0).sections) > 1
    assert move.verified.size == 0


def test_a_whole_file_moves_again_once_after_all_of_it_was_compared() -> None:
    backlog = VerifyQueue(verifies=True, sessions=1)
    move = arrived(a_file(LARGE))
    backlog.whole(move)
    first, *rest, last = [section for _ in range(6) for section in backlog.take(0).sections]
    assert backlog.damaged(first)
    assert all(backlog.same(section, "md5") for section in rest)
    assert not backlog.same(last, "md5")  # now


def test_bytes_that_cannot_be_compared_are_tried_again_at_the_end_and_then_fail() -> None:
    backlog = VerifyQueue(verifies=True, sessions=1)
    move = a_file(LARGE)
    backlog.watch(move)
    move.landed(0, SECTION_BYTES)
    (section,) = backlog.take(0).sections
    assert backlog.unknown(section)
    assert backlog.take(0).is_empty  # not at once
    move.landed(0, LARGE)
    backlog.whole(move)
    again = backlog.take(0).sections[0]
    assert (again.start, again.end) == (section.start, section.end)
    assert not backlog.unknown(again)
    assert backlog.take(0).is_empty


def test_a_file_whose_parts_have_no_checksum_is_compared_as_a_whole() -> None:
    backlog = VerifyQueue(verifies=True, sessions=1)
    move = a_file(LARGE)
    backlog.watch(move)
    move.landed(0, 2 * SECTION_BYTES)
    first, second = backlog.take(0).sections
    assert backlog.in_one_piece(first)
    assert backlog.same(second, "md5")  # too late to count
    assert backlog.take(0).is_empty  # as long as it moves
    move.landed(0, LARGE)
    assert backlog.whole(move)
    (section,) = backlog.take(0).sections
    assert section.is_whole
    assert backlog.take(0).is_empty
    assert backlog.same(section, "md5")
    assert backlog.take(0).proven == [move]
    assert move.verified.bytes_by_algorithm() == {"md5": LARGE}


def test_a_file_without_a_checksum_is_committed_and_not_called_verified() -> None:
    backlog = VerifyQueue(verifies=True, sessions=1)
    move = arrived(a_file())
    backlog.whole(move)
    (section,) = backlog.take(0).sections
    assert backlog.exempt(section)
    assert backlog.take(0).proven == [move]
    assert move.verified.size == 0


def test_a_lost_session_gives_its_batch_back() -> None:
    backlog = VerifyQueue(verifies=True, sessions=2)
    move = arrived(a_file())
    backlog.whole(move)
    batch = backlog.take(0)
    assert backlog.take(0).is_empty
    backlog.put_back(batch)
    assert backlog.take(0) == batch
    backlog.same(batch.sections[0], "md5")
    batch = backlog.take(0)
    backlog.put_back(batch)
    assert backlog.take(0) == batch == Batch(proven=[move])


def test_what_was_compared_before_it_was_forgotten_counts_for_nothing() -> None:
    backlog = VerifyQueue(verifies=True, sessions=1)
    move = a_file(LARGE)
    backlog.watch(move)
    move.landed(0, LARGE)
    compared = [section for _ in range(6) for section in backlog.take(0).sections]
    assert backlog.same(compared[0], "md5")
    move.forget_arrived()
    backlog.forgot(move)
    assert all(backlog.same(section, "md5") for section in compared[1:])
    assert move.verified.size == 0
    move.landed(0, LARGE)
    backlog.whole(move)
    assert backlog.take(0).proven == []


def test_a_file_that_was_given_up_is_not_handed_out() -> None:
    backlog = VerifyQueue(verifies=True, sessions=1)
    move = arrived(a_file())
    backlog.whole(move)
    backlog.drop(move)
    assert backlog.take(0).is_empty


SIZES = st.lists(st.sampled_from([0, 1, 10, SECTION_BYTES, LARGE]), min_size=1, max_size=6)
ANSWERS = st.lists(
    st.sampled_from(["same", "same", "same", "damaged", "unknown", "lost", "no parts"]), max_size=60
)


@given(SIZES, ANSWERS)
def test_whatever_comparing_says_only_what_is_the_same_is_committed(sizes, answers) -> None:
    """Plays a finisher of which sessions are lost, with files that arrive at once."""
    backlog = VerifyQueue(verifies=True, sessions=3)
    moves = [a_file(size, f"{i}") for i, size in enumerate(sizes)]
    compared: dict[FileTransfer, RangeSet] = {move: RangeSet() for move in moves}
    settled: set[FileTransfer] = set()
    answer = iter(answers)

    def bring(move: FileTransfer) -> None:
        move.landed(0, move.size_bytes)
        if not backlog.whole(move):
            pytest.fail("a file that is whole must not move again")

    for move in moves:
        backlog.watch(move)
        bring(move)
    for _ in range(1000):
        batch = backlog.take(0)
        if batch.is_empty:
            break
        for section in batch.sections:
            play(backlog, section, next(answer, "same"), compared, settled, bring)
        for move in batch.proven:
            assert compared[move].covers(0, move.size_bytes)
            assert move not in settled
            settled.add(move)
    assert settled == set(moves)


def play(backlog: VerifyQueue, section: Section, told: str, compared, settled, bring) -> None:
    move = section.move
    if told == "same":
        compared[move].add(section.start, section.end)
        if not backlog.same(section, "md5"):
            bring(move)
    elif told == "damaged":
        compared[move].remove(section.start, section.end)
        if not backlog.damaged(section):
            bring(move)
    elif told == "no parts":
        if not backlog.in_one_piece(section):
            bring(move)
    elif told == "unknown" and move not in settled:
        if not backlog.unknown(section):
            settled.add(move)
    else:
        backlog.put_back(Batch(sections=[section]))
