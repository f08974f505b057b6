"""The end of what answers bring: how long the file is then, and that one that is finished is left alone."""

import os
import threading
from pathlib import Path

import pytest
from unit.made_up_context import a_context

from mpx.endpoints.web.fetch import WebFetch
from mpx.endpoints.web.receiving import Receiver
from mpx.endpoints.web.url import Origin, WebUrl
from mpx.engine.endpoint import FileInfo, Kind
from mpx.engine.file_transfer import FileTransfer
from mpx.engine.range_scheduler import RangeScheduler
from mpx.engine.rate_limiter import RateLimiter

SIZE = 1000
LONG_AGO_S = 1_000_000_000


@pytest.mark.parametrize("there_bytes", [SIZE, SIZE + 1])
def test_only_a_file_that_is_too_long_is_changed_at_the_end(there_bytes: int, tmp_path: Path) -> None:
    """Another worker may have brought all of it, and it has its name and its time when the last ends."""
    partial = tmp_path / "partial"
    file = FileTransfer("/file", str(tmp_path / "file"), str(partial), FileInfo(Kind.FILE, SIZE))
    fetch = WebFetch(
        file,
        0,
        SIZE,
        WebUrl(Origin(False, "localhost", 80), "/file"),
        is_whole=False,
        fd=file.open(file.partial, os.O_RDWR | os.O_CREAT),
    )
    os.write(fetch.fd, bytes(there_bytes))
    file.landed(0, SIZE)
    fetch.position = SIZE
    os.utime(partial, (LONG_AGO_S, LONG_AGO_S))
    context = a_context()
    receiver = Receiver(RateLimiter(threading.Event()), RangeScheduler(context), context.supervisor)
    assert receiver.ended(fetch) is None
    status = partial.stat()
    assert status.st_size == SIZE
    assert (status.st_mtime == LONG_AGO_S) == (there_bytes == SIZE)
    file.close()
    file.release()
