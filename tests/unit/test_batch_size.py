"""What uploads in MODE E store together: never what cannot be read again with anything else."""

import pytest
from unit.made_up_context import a_context, a_file

from mpx.endpoints.ftp.mode_e.batch_size import BatchSize
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
