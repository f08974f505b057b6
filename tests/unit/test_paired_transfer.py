"""What servers tell of a transfer between them: ranges of the file, and a count that grows smoothly."""

import threading
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from unit.made_up_context import a_file

from mpx.endpoints.ftp.extensions import sink
from mpx.endpoints.ftp.framing import performance_marker
from mpx.endpoints.ftp.mode_e.misplaced_blocks import FOREIGN_BLOCK_BYTES
from mpx.endpoints.ftp.two_servers.carrier import shares_of
from mpx.endpoints.ftp.two_servers.pair_ahead import PairAhead
from mpx.endpoints.ftp.two_servers.paired_transfer import PairedTransfer
from mpx.endpoints.ftp.two_servers.session_pair import SessionPair
from mpx.endpoints.ftp.wire import Reply, ReplyReader
from mpx.engine.endpoint import FileInfo, Kind
from mpx.engine.file_queue import FileQueue
from mpx.engine.file_transfer import SMALL_FILE_BYTES, FileTransfer
from mpx.engine.marked_bytes import SPREAD_S, MarkedBytes
from mpx.engine.range_scheduler import Piece
from mpx.errors import ConnectionLost
from mpx.net.reach import means_the_same_at

SIZE = 3 * SMALL_FILE_BYTES
LARGE = 3 * FOREIGN_BLOCK_BYTES


def a_transfer(start: int, end: int, size: int | None = SIZE) -> PairedTransfer:
    file = FileTransfer("a", "b", ".b.part", FileInfo(Kind.FILE, size), streamed=not size)
    return PairedTransfer(Piece(file, start, end), parts=True)


def restart(text: str) -> Reply:
    return Reply(111, (f"Range Marker {text}",))


def performance(moved: int) -> Reply:
    (reply,) = ReplyReader().feed(performance_marker(1.0, moved))
    return reply


def test_ranges_of_a_part_begin_where_it_does() -> None:
    transfer = a_transfer(1000, 5000)
    assert transfer.take_marker(restart("0-100,200-300")) == 200
    assert list(transfer.marked) == [(1000, 1100), (1200, 1300)]
    assert transfer.take_marker(restart("100-200")) == 100
    assert list(transfer.marked) == [(1000, 1300)]


def test_nothing_beyond_its_end_is_believed() -> None:
    transfer = a_transfer(1000, 5000)
    assert transfer.take_marker(restart("3000-9000,20000-30000")) == 1000
    assert list(transfer.marked) == [(4000, 5000)]
    assert transfer.take_marker(performance(10**12)) == 3000


@pytest.mark.parametrize(
    ("feature", "kept"), [("DSI", [(1000 + FOREIGN_BLOCK_BYTES, LARGE)]), (sink.FEATURE, [(1000, LARGE)])]
)
def test_what_a_server_may_overwrite_is_not_certain(feature: str, kept: list[tuple[int, int]]) -> None:
    transfer = a_transfer(1000, LARGE, LARGE)
    session = SimpleNamespace(features={feature: ""}, name=str.encode, tickets=None)
    transfer.store_command(session)  # type: ignore[arg-type]  of a session only what it reads
    transfer.take_marker(restart(f"0-{LARGE}"))
    assert transfer.told_bytes == LARGE - 1000
    assert list(transfer.certain) == kept


def test_what_was_told_before_is_told_once() -> None:
    transfer = a_transfer(0, 5000)
    assert transfer.take_marker(performance(3000)) == 3000
    assert transfer.take_marker(restart("0-2000")) == 0
    assert transfer.take_marker(performance(2500)) == 0
    assert transfer.take_marker(restart("2000-4000")) == 1000


@pytest.mark.parametrize("text", ["", "1", "5-3", "a-b", "-1-4", "1-99999999999999999999"])
def test_a_marker_that_is_none_loses_the_session(text: str) -> None:
    with pytest.raises(ConnectionLost, match="broken restart marker"):
        a_transfer(0, 5000).take_marker(restart(text))


@pytest.mark.parametrize(
    ("transfer", "is_whole"),
    [
        (a_transfer(0, SMALL_FILE_BYTES, SMALL_FILE_BYTES), True),
        (a_transfer(0, SIZE), False),  # others may write other parts of it
        (a_transfer(100, 200), False),
        (a_transfer(0, 0, 0), True),
        (a_transfer(0, 0, None), True),
    ],
)
def test_small_files_are_stored_anew(transfer: PairedTransfer, is_whole: bool) -> None:
    assert transfer.is_whole == is_whole


def test_what_is_stored_with_too_much_is_stored_anew() -> None:
    file = a_file(SIZE)
    file.was_misfit = True
    assert PairedTransfer(Piece(file, 0, SIZE), parts=True).is_whole


def test_the_refusal_of_the_receiver_says_more() -> None:
    transfer = a_transfer(0, 100)
    assert transfer.refusal is None
    transfer.sent = Reply(426, ("broken pipe",))
    assert transfer.refusal is transfer.sent
    transfer.stored = Reply(452, ("no space",))
    assert (transfer.refusal, transfer.is_over) == (transfer.stored, True)


@given(st.lists(st.tuples(st.floats(0.0, 3.0), st.integers(0, 10**9)), max_size=30))
def test_the_count_never_falls_and_ends_with_all(steps: list[tuple[float, int]]) -> None:
    counted, now_s, before, total = MarkedBytes(), 100.0, 0.0, 0
    for wait_s, size_bytes in steps:
        for part in (0.3, 0.7):
            now_s += wait_s * part
            assert before <= counted.shown(now_s) <= total + 1e-6
            before = counted.shown(now_s)
        counted.add(now_s, size_bytes)
        total += size_bytes
        assert counted.shown(now_s) == pytest.approx(before)
    assert counted.told == total
    assert counted.shown(now_s + SPREAD_S) == pytest.approx(total)


def test_what_was_told_is_spread_over_some_time() -> None:
    counted = MarkedBytes()
    counted.add(10.0, 1000)
    shown = [counted.shown(10.0 + share * SPREAD_S) for share in (0, 0.1, 0.5, 1, 2)]
    assert shown == pytest.approx([0, 100, 500, 1000, 1000])


def test_what_is_told_less_often_is_spread_over_more_time() -> None:
    counted = MarkedBytes()
    counted.add(10.0, 1000, spread_s=5.0)
    assert [counted.shown(10.0 + after_s) for after_s in (1, 5, 6)] == pytest.approx([200, 1000, 1000])


@pytest.mark.parametrize(
    ("address", "host", "is_same"),
    [
        ("127.0.0.1", "127.0.0.1", True),
        ("127.0.0.1", "10.0.0.1", False),
        ("127.0.0.1", "192.0.2.1", False),
        ("10.0.0.1", "8.8.8.8", False),
        ("10.0.0.1", "10.9.9.9", True),
        ("8.8.8.8", "10.0.0.1", True),
        ("8.8.8.8", "127.0.0.1", True),
        ("::1", "2001:4860:4860::8888", False),
        ("fe80::1", "fd00::1", False),
        ("0.0.0.0", "127.0.0.1", False),
    ],
)
def test_addresses_that_mean_the_same_elsewhere(address: str, host: str, is_same: bool) -> None:
    assert means_the_same_at(address, host) == is_same


def test_a_pair_that_begins_later_counts_as_the_others_do() -> None:
    assert shares_of([0.0, 0.0]) == [0.5, 0.5]
    assert shares_of([20.0, 0.0, 0.0, 0.0]) == [0.25] * 4
    assert shares_of([30.0, 10.0, 0.0]) == pytest.approx([0.5, 1 / 6, 1 / 3])


@pytest.mark.parametrize("shares_blocks", [True, False])
def test_parts_are_as_long_as_their_connections_need_however_slow(shares_blocks: bool) -> None:
    """Else a path that is slow for a moment gets smaller parts, which make it slower."""
    ahead = PairAhead(FileQueue(threading.Event()), shares_blocks=shares_blocks)
    ahead.flows()
    ahead.ended(1000)
    ahead.goodput = 1e5
    part = ahead.piece_bytes(24)
    assert part >= 24 * 2 * 256 * 1024
    if shares_blocks:
        assert ahead.most_bytes(0.06, 24) >= 2 * part  # so that one is always queued behind it


def test_transfers_that_end_together_are_no_great_goodput() -> None:
    """Connections go on with the next while the last of them is busy, so that one ends at once behind it."""
    now_s = 100.0
    ahead = PairAhead(FileQueue(threading.Event()), shares_blocks=True, clock=lambda: now_s)
    ahead.flows()
    for _ in range(5):
        now_s += 0.3
        for _ in range(3):
            ahead.ended(1_000_000)
            now_s += 0.001
    assert ahead.goodput == pytest.approx(1e7, rel=0.1)
    assert ahead.piece_bytes(1) < 2_000_000


@pytest.mark.parametrize(
    ("name", "tickets", "is_busy", "expected"),
    [
        ("x\udcff", None, True, True),
        ("x\udcff", None, False, False),  # it can be asked at once
        ("x\udcff", object(), True, False),  # a server of ours is not asked
        ("x", None, True, False),
    ],
)
def test_who_is_asked_something_first_is_not_told_behind_others(
    name: str, tickets: object, is_busy: bool, expected: bool
) -> None:
    """How a server reads 0xFF: its refusal of the question would be taken for that of a transfer."""
    session = SimpleNamespace(
        peer_host="192.0.2.7", location=SimpleNamespace(port=1), banner="unheard of", tickets=tickets
    )
    pair = SessionPair(session, session, mode_e=True, marked=lambda _, __: None)
    if is_busy:
        pair.transfers.append(a_transfer(0, 10))
    file = FileTransfer(name, "b", ".b.part", FileInfo(Kind.FILE, 10))
    assert pair.has_to_rest_for([PairedTransfer(Piece(file, 0, 10), parts=True)]) is expected
