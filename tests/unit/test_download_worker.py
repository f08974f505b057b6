"""One worker of a download in MODE E: when its session is to get other connections."""

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from unit.made_up_context import a_context

from mpx.endpoints.ftp.mode_e import read_ahead
from mpx.endpoints.ftp.mode_e.certain_parts import lost_bytes
from mpx.endpoints.ftp.mode_e.download_worker import DownloadWorker
from mpx.endpoints.ftp.mode_e.retrieve import PartialRetrieve
from mpx.endpoints.ftp.session import SessionOptions
from mpx.endpoints.ftp.session_pool import SessionPool
from mpx.engine.endpoint import FileInfo, Kind
from mpx.engine.file_transfer import FileTransfer
from mpx.engine.range_scheduler import Pending, RangeScheduler
from mpx.engine.stream import StreamTotals
from mpx.errors import ConnectionLost
from mpx.location import parse_location


class MadeUpSession:
    """Takes retrieves and brings nothing; notes how often connections were asked for."""

    retrieves: tuple[PartialRetrieve, ...] = ()
    congestion = ""
    is_changing = False
    is_worn = False

    def __init__(self) -> None:
        self.connections = 0
        self.connects: list[int] = []
        self.meanwhile: Callable[[], None] = lambda: None  # while connections are asked for

    @property
    def is_busy(self) -> bool:
        return bool(self.retrieves)

    def connect(self, connections: int) -> None:
        self.connections = connections
        self.connects.append(connections)
        self.meanwhile()

    def check(self) -> None: ...

    def flush(self) -> None: ...

    def hear(self, timeout_s: float) -> None: ...

    def proofs_needed(self, start: int, *, is_last: bool) -> int:
        return 0

    def retrieve(self, file: FileTransfer, start: int, end: int, fd: int, *, exact: bool) -> None:
        file.close()

    def reap(self) -> Iterator[PartialRetrieve]:
        return iter(())

    def totals(self) -> StreamTotals:
        return StreamTotals()

    def pending(self, goodput: float) -> list[Pending]:
        return []

    @property
    def left_bytes(self) -> int:
        return sum(each.left_bytes for each in self.retrieves)

    @property
    def lost_bytes(self) -> int:
        return lost_bytes(self.retrieves, 0)

    def close(self) -> list[PartialRetrieve]:
        left, self.retrieves = list(self.retrieves), ()
        return left


class NoChannel:
    """Stands for connections over which nothing comes."""

    def add(self, retrieve: PartialRetrieve) -> None: ...

    def forget(self, retrieve: PartialRetrieve) -> None: ...

    def totals(self) -> StreamTotals:
        return StreamTotals()


@pytest.mark.parametrize(
    ("rate", "target", "may_switch", "is_wanted", "is_left"),
    [
        (1e6, 4, True, False, True),
        (1e6, 1, True, False, False),  # more than are wanted do no harm
        (1e6, 0, True, False, False),
        (1e6, 2, True, False, False),  # its connections are as many as wanted
        (1e6, 4, False, False, False),  # others change theirs
        (1e6, 4, True, True, False),  # another would take its place
        (20e6, 4, True, False, False),  # what is under way comes soon
    ],
)
def test_a_session_that_is_to_change_is_left_if_its_retrieves_take_long(
    tmp_path: Path, rate: float, target: int, may_switch: bool, is_wanted: bool, is_left: bool
) -> None:
    context, pool = a_context(), SessionPool()
    if is_wanted:
        pool._waiting.append(object())
    scheduler = RangeScheduler(context)
    worker = DownloadWorker(
        0,
        parse_location("ftp://127.0.0.1:1/"),
        SessionOptions(pool=pool),
        context,
        scheduler,
        "default",
        lambda _: [],
        lambda _: may_switch,
    )
    file = FileTransfer("f", "f", str(tmp_path / ".f.part"), FileInfo(Kind.FILE, 8_000_000))
    piece = file.take(8_000_000)
    assert piece == (0, 8_000_000)
    session = MadeUpSession()
    session.connections = 2
    session.retrieves = (
        PartialRetrieve(file, *piece, file.open(file.partial, os.O_RDWR | os.O_CREAT), NoChannel()),
    )
    worker.session, worker.target = session, 2
    worker._ahead._goodput = rate
    worker.target = target
    with contextlib.suppress(ConnectionLost):  # there is no server for another session
        worker._feed()
    assert (worker.session is not session) == is_left
    assert (file.todo_bytes == 8_000_000) == is_left


def test_connections_that_are_wanted_while_others_are_asked_for_are_not_forgotten(tmp_path: Path) -> None:
    context, numbers = a_context(), iter(range(10))
    where = parse_location("ftp://127.0.0.1:1/")
    worker = DownloadWorker(
        0, where, SessionOptions(), context, RangeScheduler(context), "default", lambda _: [], lambda _: True
    )
    session = MadeUpSession()
    worker.session, worker.target = session, 2

    def retrieve_another() -> None:
        partial = str(tmp_path / f".{next(numbers)}.part")
        context.queue.put(FileTransfer("f", "f", partial, FileInfo(Kind.FILE, 10)))
        worker.step()

    def renew_once() -> None:
        session.meanwhile = lambda: None
        worker.renew(worker.path)  # by the control loop, just now

    retrieve_another()
    retrieve_another()
    assert session.connects == [2]
    session.meanwhile = renew_once
    worker.renew(worker.path)
    retrieve_another()
    assert session.connects == [2, 2]
    retrieve_another()
    assert session.connects == [2, 2, 2]
    retrieve_another()
    assert session.connects == [2, 2, 2]


def test_the_next_retrieve_is_asked_for_before_the_last_one_has_ended(tmp_path: Path) -> None:
    """However long that is, the server never waits for us."""
    context = a_context()
    scheduler = RangeScheduler(context)
    where = parse_location("ftp://127.0.0.1:1/")
    worker = DownloadWorker(
        0, where, SessionOptions(), context, scheduler, "default", lambda _: [], lambda _: True
    )
    file = FileTransfer("f", "f", str(tmp_path / ".f.part"), FileInfo(Kind.FILE, 200_000_000))
    start, end = file.take(50_000_000)  # type: ignore[misc]
    first = PartialRetrieve(file, start, end, file.open(file.partial, os.O_RDWR | os.O_CREAT), NoChannel())
    session = MadeUpSession()
    session.connections, session.retrieves = 2, (first,)
    worker.session, worker.target = session, 2
    worker._ahead.connected(2)
    worker._ahead._goodput = 2e6
    scheduler.put_back(file)
    taken = file.todo_bytes
    worker._feed()
    assert file.todo_bytes == taken  # more than is to be ahead is still to come
    first.to_write(start, end - 500_000)
    worker._feed()
    assert file.todo_bytes < taken
    assert not worker.is_changing
    worker.target = 3
    assert worker.is_changing
    worker.target = 0
    assert worker.is_changing  # until it has brought what it was asked for
    session.retrieves = ()
    assert not worker.is_changing


def a_worker_with(tmp_path: Path, brought_bytes: int) -> tuple[DownloadWorker, MadeUpSession, FileTransfer]:
    """A worker whose one retrieve, of 8 MB at 1 MB/s, has brought so much; nothing else is to be done."""
    context = a_context()
    where = parse_location("ftp://127.0.0.1:1/")
    worker = DownloadWorker(
        0, where, SessionOptions(), context, RangeScheduler(context), "default", lambda _: [], lambda _: True
    )
    file = FileTransfer("f", "f", str(tmp_path / ".f.part"), FileInfo(Kind.FILE, 8_000_000))
    assert file.take(8_000_000) == (0, 8_000_000)
    context.queue.end_listing()
    fd = file.open(file.partial, os.O_RDWR | os.O_CREAT)
    retrieve = PartialRetrieve(file, 0, 8_000_000, fd, NoChannel())
    retrieve.begun = True
    retrieve.to_write(0, brought_bytes)
    session = MadeUpSession()
    session.connections, session.retrieves = 1, (retrieve,)
    worker.session, worker.target = session, 1
    worker._ahead.connected(1)
    worker._ahead._goodput = 1e6
    return worker, session, file


@pytest.mark.parametrize(
    ("brought_bytes", "by_others_bytes", "is_left"),
    [
        (2_000_000, 6_000_000, True),
        (2_000_000, 5_999_999, False),
        (7_999_000, 1_000, False),  # what it still sends comes soon
    ],
)
def test_a_session_is_left_when_others_have_brought_what_it_still_sends(
    tmp_path: Path, brought_bytes: int, by_others_bytes: int, is_left: bool
) -> None:
    worker, session, file = a_worker_with(tmp_path, brought_bytes)
    file.hold(8_000_000 - by_others_bytes, 8_000_000)
    worker.step()
    assert (worker.session is not session) == is_left


def test_a_session_that_brought_all_of_it_itself_is_not_left(tmp_path: Path) -> None:
    """Its answer is still to come, and shows whether what came may be believed."""
    worker, session, _ = a_worker_with(tmp_path, 8_000_000)
    worker.step()
    assert worker.session is session


@pytest.mark.parametrize(("left_bytes", "takes_over"), [(100_000, True), (300_000, False)])
def test_a_worker_takes_over_before_it_has_nothing_left(
    tmp_path: Path, left_bytes: int, takes_over: bool
) -> None:
    """So its server always has something to send; but not far ahead, as the others send theirs, too."""
    worker, _, _ = a_worker_with(tmp_path, 8_000_000 - left_bytes)
    late_file = FileTransfer("g", "g", str(tmp_path / ".g.part"), FileInfo(Kind.FILE, 8_000_000))
    late = PartialRetrieve(late_file, 0, 8_000_000, -1, NoChannel())
    other = DownloadWorker(
        1,
        worker._location,
        SessionOptions(),
        worker.context,
        worker._scheduler,
        "default",
        lambda _: [],
        bool,
    )
    other.under_way = lambda: [Pending(late, 8.0, 1e6)]  # type: ignore[method-assign]
    worker._others = lambda _: [other]
    piece = worker._next_piece()
    assert (piece is not None and piece.file is late_file) == takes_over


def test_a_session_that_is_silent_is_left_however_soon_it_should_have_sent_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker, session, file = a_worker_with(tmp_path, 7_999_000)
    file.hold(7_999_000, 8_000_000)
    worker.step()
    assert worker.session is session
    monkeypatch.setattr(worker._watch, "silent_s", lambda: 1.0)
    monkeypatch.setattr(worker._watch, "is_due", lambda _: True)
    worker.step()
    assert worker.session is None


def test_a_session_is_kept_while_there_may_be_more_to_do(tmp_path: Path) -> None:
    worker, session, file = a_worker_with(tmp_path, 2_000_000)
    file.hold(2_000_000, 8_000_000)
    worker.context.queue._listing = True
    worker.target = 0  # so that it takes nothing itself
    worker.step()
    assert worker.session is session


def test_a_session_whose_goodput_is_not_known_is_left_too(tmp_path: Path) -> None:
    worker, session, file = a_worker_with(tmp_path, 2_000_000)
    worker._ahead._goodput = 0.0
    file.hold(2_000_000, 8_000_000)
    worker.step()
    assert worker.session is not session


def test_the_ends_that_prove_where_parts_begin_are_no_measure_of_goodput(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [0.0]
    monkeypatch.setattr(read_ahead.time, "monotonic", lambda: now[0])
    ahead = read_ahead.ReadAhead()
    now[0] = 5.0
    ahead.passed(2)
    assert ahead.goodput == 0.0
    now[0] = 5.2
    ahead.passed(200_002)
    assert ahead.goodput == pytest.approx(1e6)


@pytest.mark.parametrize(
    ("brought_bytes", "silent_s", "is_left"),
    [(2_000_000, 0.5, False), (2_000_000, 2.0, True), (5_000_000, 2.0, False)],
)
def test_what_a_session_would_lose_is_to_be_less_than_it_still_sends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, brought_bytes: int, silent_s: float, is_left: bool
) -> None:
    worker, session, file = a_worker_with(tmp_path, brought_bytes)
    session.retrieves[0].begun = False  # so none of it counts
    file.hold(brought_bytes, 8_000_000)
    monkeypatch.setattr(worker._watch, "silent_s", lambda: silent_s)
    worker.step()
    assert (worker.session is None) == is_left


@pytest.mark.parametrize(("login_s", "takes_over"), [(0.1, True), (5.0, False)])
def test_who_has_to_log_in_first_takes_over_only_what_comes_later(
    tmp_path: Path, login_s: float, takes_over: bool
) -> None:
    worker, _, _ = a_worker_with(tmp_path, 8_000_000)
    late_file = FileTransfer("g", "g", str(tmp_path / ".g.part"), FileInfo(Kind.FILE, 8_000_000))
    late = PartialRetrieve(late_file, 0, 8_000_000, -1, NoChannel())
    other, _, _ = a_worker_with(tmp_path, 0)
    other.under_way = lambda: [Pending(late, 8.0, 1e6)]  # type: ignore[method-assign]
    worker._others = lambda _: [other]
    worker.session, worker._login_s = None, login_s
    assert (worker._next_piece() is not None) == takes_over


def test_connections_that_are_worn_are_replaced() -> None:
    worker = DownloadWorker(
        0,
        parse_location("ftp://127.0.0.1:1/"),
        SessionOptions(),
        a_context(),
        RangeScheduler(a_context()),
        "default",
        lambda _: [],
        lambda _: True,
    )
    session = MadeUpSession()
    worker.open_session = lambda: session  # type: ignore[assignment,method-assign]
    for is_worn, connects in ((False, [2]), (False, [2]), (True, [2, 2])):
        session.is_worn = is_worn
        worker._connect(session, 2)  # type: ignore[arg-type]
        assert session.connects == connects
