"""What uploads in MODE E store together: never what cannot be read again with anything else."""

import pytest
from unit.made_up_context import a_context, a_file

from mpx.endpoints.ftp.mode_e.batch_size import MOST_FILES, BatchSize
from mpx.engine.endpoint import FileInfo, Kind
from mpx.engine.file_transfer import FileTransfer


def a_pipe() -> FileTransfer:
    return FileTransfer("pipe", "final", ".part", FileInfo(Kind.FILE, None))


@pytest.mark.parametrize("kinds", ["ffpff", "pff", "fp", "pp"])
def test_a_pipe_goes_alone(kinds: str) -> None:
    queue = a_context().queue
    for kind in kinds:
        queue.put(a_pipe() if kind == "p" else a_file(1))
    queue.end_listing()
    batches = []
    while queue.waiting_bytes or sum(map(len, batches)) < len(kinds):
        first = queue.take(lambda: None)
        assert first
        batches.append(BatchSize().fill(first, queue, 1))
    assert all(len(batch) == 1 for batch in batches if any(file.listed_bytes is None for file in batch))
    assert sum(map(len, batches)) == len(kinds)


def test_more_is_taken_once_a_part_was_stored() -> None:
    queue, size = a_context().queue, BatchSize()
    for number in range(3 * MOST_FILES):
        queue.put(a_pipe() if number == MOST_FILES + 100 else a_file(1))
    first = queue.take(lambda: None)
    assert first
    batch = size.fill(first, queue, 1)
    assert len(batch) == 64  # so that each of several sessions gets some of few
    batch += size.refill(batch, queue, 1)
    assert len(batch) == MOST_FILES
    assert not size.refill(batch[50:], queue, 1)
    assert len(size.refill(batch[70:], queue, 1)) == 70
    assert len(size.refill(batch[70:], queue, 1)) == 30  # the next one is the pipe
    assert not size.refill([a_file(1)], queue, 1)
    queue.take(lambda: None)
    queue.put(named := FileTransfer("a", "z\udcff", ".z\udcff.part", FileInfo(Kind.FILE, 1)))
    while len(queue_left := size.refill([], queue, 1)) > 0:
        assert named not in queue_left
    assert queue.take(lambda: None) is named  # its name is to be asked about, at a session that is idle
    size.failed()
    assert not size.refill(batch[-1:], queue, 1)


def test_no_session_has_too_many_files_open() -> None:
    for sessions in (1, 4, 8, 100):
        queue = a_context().queue
        for _ in range(2 * MOST_FILES):
            queue.put(a_file(1))
        first = queue.take(lambda: None)
        assert first
        size = BatchSize()
        batch = size.fill(first, queue, sessions)
        batch += size.refill(batch, queue, sessions)
        assert len(batch) == max(64, min(MOST_FILES, 512 // sessions))
