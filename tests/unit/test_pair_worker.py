"""Transfers between two servers, one worker: what is under way as its sessions end."""

from collections import deque
from types import SimpleNamespace

from unit.made_up_context import a_context, a_file

from mpx.endpoints.ftp.session import SessionOptions
from mpx.endpoints.ftp.two_servers.pair_worker import PairWorker
from mpx.endpoints.ftp.two_servers.paired_transfer import PairedTransfer
from mpx.engine.file_transfer import SMALL_FILE_BYTES
from mpx.engine.range_scheduler import Piece, RangeScheduler
from mpx.errors import ConnectionLost

SIZE = 3 * SMALL_FILE_BYTES


def test_others_get_nothing_that_the_receiver_may_store_still() -> None:
    """It may write blocks of a transfer that is cut until its session has ended."""
    context = a_context()
    servers = SimpleNamespace(
        hosts="two", shares_blocks=True, marker_s=1.0, mode_e=True, parts=True, destination=None
    )
    servers.for_worker, servers.destination_options = (lambda _: servers), SessionOptions()
    scheduler = RangeScheduler(context, 1, 1)
    worker = PairWorker(0, servers, context, scheduler, lambda: 0.0)  # type: ignore[arg-type]  what it reads
    file = a_file(SIZE)
    start, end = file.take(SIZE) or (0, 0)
    left_at_close: list[int] = []
    worker._pair = SimpleNamespace(  # type: ignore[assignment]
        transfers=deque([PairedTransfer(Piece(file, start, end), parts=True)]),
        close=lambda: left_at_close.append(file.todo_bytes),
    )
    lost = worker.lost(ConnectionLost("lost"))
    assert list(lost.files) == [file]
    assert left_at_close == [0]
    assert file.todo_bytes == SIZE
