"""Storing in MODE E from elsewhere: whether a server owes its last word, as its session is left."""

import socket
from collections.abc import Iterator
from types import SimpleNamespace

import pytest
from unit.made_up_context import a_context, a_file

from mpx.endpoints.ftp.two_servers.block_store import BlockStore
from mpx.endpoints.ftp.two_servers.paired_transfer import PairedTransfer
from mpx.endpoints.ftp.wire import Reply
from mpx.engine.range_scheduler import Piece
from mpx.engine.stream import StreamCounters
from mpx.errors import ConnectionLost

DONE, REFUSED = Reply(226, ("done",)), Reply(550, ("no",))
CONTENT = b"content"


@pytest.fixture
def counters() -> Iterator[StreamCounters]:
    ours, theirs = socket.socketpair()
    with theirs:
        made = StreamCounters()
        made.opened(ours)
        yield made
        made.closed(clean=True)


@pytest.mark.parametrize(
    ("says", "count", "is_owed"),
    [([DONE, DONE], 2, False), ([DONE, REFUSED], 1, True), ([DONE, ConnectionLost("lost")], None, True)],
)
def test_whole_files(
    says: list[Reply | Exception], count: int | None, is_owed: bool, counters: StreamCounters
) -> None:
    """Whoever leaves the session waits for that, as the server may write until then."""
    left = iter(says)

    def final_reply(work_bytes: int) -> Reply:
        assert work_bytes == len(CONTENT)
        said = next(left)
        if isinstance(said, Exception):
            raise said
        return said

    session = SimpleNamespace(
        features={"DSI": ""}, name=str, tickets=None, send=lambda *_: None, final_reply=final_reply
    )
    store = BlockStore(a_context(), session, counters)  # type: ignore[arg-type]  what it reads
    files = [a_file(len(CONTENT)) for _ in says]
    contents = [(PairedTransfer(Piece(file, 0, len(CONTENT)), parts=True), CONTENT) for file in files]
    if count is None:
        with pytest.raises(ConnectionLost):
            store.store_all(contents)
    else:
        assert store.store_all(contents) == count
    assert store.is_owed is is_owed
