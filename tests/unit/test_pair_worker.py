"""Transfers between two servers, one worker: what is under way as its sessions end."""

from collections import deque
from types import SimpleNamespace

import pytest
from unit.made_up_context import a_context, a_file

from mpx.endpoints.ftp.session import SessionOptions
from mpx.endpoints.ftp.two_servers.pair_worker import PairWorker
from mpx.endpoints.ftp.two_servers.paired_transfer import PairedTransfer
from mpx.endpoints.ftp.two_servers.session_pair import SessionPair
from mpx.endpoints.ftp.wire import Reply
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


@pytest.mark.parametrize(
    ("is_stored", "has_begun", "waits"),
    [
        ([False], [True], True),
        ([False], [False], False),
        ([True], [True], False),
        ([True, False], [True, True], True),  # the next one, behind a refusal
    ],
)
def test_the_receiver_is_left_once_it_has_ended_what_has_begun(
    is_stored: list[bool], has_begun: list[bool], waits: bool
) -> None:
    said: list[str] = []

    def poll_reply(_: float) -> Reply:
        said.append("waited")
        return Reply(426, ("cut",))

    stop = SimpleNamespace(stop=lambda: False)
    receiver = SimpleNamespace(is_aborted=False, features={}, options=stop, tickets=None)
    receiver.poll_reply, receiver.close = poll_reply, lambda: said.append("closed")
    sender = SimpleNamespace(close=lambda: said.append("sender closed"))
    pair = SessionPair(sender, receiver, mode_e=True, marked=lambda _, __: None)  # type: ignore[arg-type]
    for stored, begun in zip(is_stored, has_begun, strict=True):
        transfer = PairedTransfer(Piece(a_file(SIZE), 0, SIZE), parts=True)
        transfer.has_begun, transfer.stored = begun, Reply(552, ("no",)) if stored else None
        pair.transfers.append(transfer)
    pair.close()
    assert said == ["sender closed", *(["waited"] if waits else []), "closed"]
