"""UploadScheduler: parts of files that are begun before further files, and whole files where parts fail."""

from unit.made_up_context import a_context

from mpx.endpoints.web.upload_scheduler import UploadScheduler
from mpx.engine.endpoint import FileInfo, Kind
from mpx.engine.file_transfer import FileTransfer
from mpx.engine.range_scheduler import SMALLEST_PIECE

SIZE = 64 * SMALLEST_PIECE


def a_scheduler(files: int = 2) -> tuple[UploadScheduler, list[FileTransfer]]:
    context = a_context()
    made = [FileTransfer(f"{i}", f"{i}", f".{i}.part", FileInfo(Kind.FILE, SIZE)) for i in range(files)]
    for file in made:
        context.queue.put(file)
    return UploadScheduler(context), made


def test_parts_are_of_files_that_are_begun() -> None:
    scheduler, files = a_scheduler()
    assert scheduler.take_part(SIZE) is None
    assert scheduler.take_next() is files[0]
    assert scheduler.take_part(SIZE) is None
    scheduler.put_back(files[0])
    piece = scheduler.take_part(SIZE)
    assert piece is not None and piece.file is files[0]


def test_all_of_a_file_is_handed_out_once() -> None:
    scheduler, files = a_scheduler(1)
    scheduler.streams = 4
    scheduler.take_next()
    scheduler.put_back(files[0])
    sizes = []
    while piece := scheduler.take_part(SIZE):
        sizes.append(piece.end - piece.start)
        assert files[0].landed(piece.start, piece.end) == sizes[-1]
    assert files[0].is_whole
    assert sizes[0] == SIZE // 8  # half of a stream's share
    assert sizes[-1] <= SMALLEST_PIECE


def test_a_file_that_is_to_be_stored_whole_is_divided_no_more() -> None:
    scheduler, files = a_scheduler(1)
    scheduler.take_next()
    assert scheduler.may_divide(files[0])
    scheduler.put_back(files[0])
    piece, other = scheduler.take_part(SMALLEST_PIECE), scheduler.take_part(SMALLEST_PIECE)
    assert piece is not None and other is not None
    files[0].landed(piece.start, piece.end)
    assert scheduler.only_whole(files[0])
    assert not scheduler.only_whole(files[0])
    scheduler.give_back(files[0], other.start, other.end)
    assert scheduler.take_part(SIZE) is None
    assert not scheduler.may_divide(files[0])
    assert scheduler.take_next() is files[0]
    whole = scheduler.take_whole(files[0])
    assert (whole.start, whole.end) == (0, SIZE)
    assert not files[0].arrived_bytes


def test_what_came_damaged_is_divided_no_more() -> None:
    scheduler, files = a_scheduler()
    files[0].retried_sections.add(0)
    files[1].was_misfit = True
    assert not any(map(scheduler.may_divide, files))
