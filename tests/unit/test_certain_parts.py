"""What counts of retrieves that are not complete when their session ends, and whether it may end."""

import pytest
from unit.made_up_context import a_file

from mpx.endpoints.ftp.mode_e.certain_parts import are_in_vain, certain, lost_bytes
from mpx.endpoints.ftp.mode_e.retrieve import PartialRetrieve
from mpx.engine.file_transfer import FileTransfer
from mpx.engine.stream import StreamTotals

SIZE = 1000


class NoChannel:
    """Stands for connections over which nothing comes."""

    def add(self, retrieve: PartialRetrieve) -> None: ...

    def forget(self, retrieve: PartialRetrieve) -> None: ...

    def totals(self) -> StreamTotals:
        return StreamTotals()


def a_retrieve(
    file: FileTransfer, start: int, end: int, *, begun: bool = True, **more: bool
) -> PartialRetrieve:
    retrieve = PartialRetrieve(file, start, end, -1, NoChannel(), **more)
    retrieve.begun = begun
    return retrieve


@pytest.mark.parametrize(
    ("start", "proven_to", "is_last", "counts"),
    [
        (0, 0, False, True),
        (0, 0, True, False),  # its length shows whether it is what was asked for
        (100, 0, False, False),
        (100, 99, False, False),
        (100, 100, False, True),
        (100, 100, True, False),
    ],
)
def test_what_came_counts_where_its_offset_is_proven(
    start: int, proven_to: int, is_last: bool, counts: bool
) -> None:
    retrieve = a_retrieve(a_file(SIZE), start, SIZE, is_last=is_last)
    assert list(certain([retrieve], proven_to)) == [retrieve] * counts


def test_nothing_counts_behind_one_that_may_be_refused() -> None:
    file = a_file(SIZE)
    first, second = a_retrieve(file, 0, 100, begun=False), a_retrieve(file, 0, 200)
    assert list(certain([first, second], SIZE)) == []
    first.replied = True
    assert list(certain([first, second], SIZE)) == [first, second]


@pytest.mark.parametrize("by_others_bytes", [699, 700])
@pytest.mark.parametrize("proven_to", [0, 100])
def test_what_is_sent_is_in_vain_once_all_of_it_is_here(by_others_bytes: int, proven_to: int) -> None:
    file = a_file(SIZE)
    retrieve = a_retrieve(file, 100, SIZE)
    retrieve.to_write(100, 300)
    file.hold(SIZE - by_others_bytes, SIZE)
    assert are_in_vain([retrieve]) == (by_others_bytes == 700)
    assert lost_bytes([retrieve], proven_to) == (0 if proven_to else 200)


def test_a_session_that_has_brought_all_of_it_is_not_left_nor_one_that_reads_a_stream() -> None:
    file = a_file(SIZE)
    retrieve = a_retrieve(file, 0, SIZE)
    retrieve.to_write(0, SIZE)
    assert not are_in_vain([retrieve])
    other = a_retrieve(a_file(SIZE), 0, SIZE)
    other.file.landed(0, SIZE)
    assert are_in_vain([other])
    stream = a_file(SIZE)
    stream.stream()
    assert not are_in_vain([other, a_retrieve(stream, 0, 0)])


def test_bytes_that_came_twice_count_as_sent() -> None:
    file = a_file(SIZE)
    file.landed(0, SIZE)
    retrieve = a_retrieve(file, 0, SIZE)
    assert retrieve.left_bytes == SIZE
    assert retrieve.to_write(0, 400) == []
    assert retrieve.left_bytes == SIZE - 400
