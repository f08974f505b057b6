"""One worker of a download in MODE E: when its session is to get other connections."""

from collections.abc import Callable, Iterator
from pathlib import Path

from unit.made_up_context import a_context

from mpx.endpoints.ftp.mode_e.download_worker import DownloadWorker
from mpx.endpoints.ftp.mode_e.retrieve import PartialRetrieve
from mpx.endpoints.ftp.session import SessionOptions
from mpx.engine.endpoint import FileInfo, Kind
from mpx.engine.file_transfer import FileTransfer
from mpx.engine.range_scheduler import RangeScheduler
from mpx.engine.stream import StreamTotals
from mpx.location import parse_location


class MadeUpSession:
    """Takes retrieves and brings nothing; notes how often connections were asked for."""

    retrieves: tuple[PartialRetrieve, ...] = ()
    congestion = ""

    def __init__(self) -> None:
        self.connections = 0
        self.connects: list[int] = []
        self.meanwhile: Callable[[], None] = lambda: None  # while connections are asked for

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


def test_connections_that_are_wanted_while_others_are_asked_for_are_not_forgotten(tmp_path: Path) -> None:
    context, numbers = a_context(), iter(range(10))
    where = parse_location("ftp://127.0.0.1:1/")
    worker = DownloadWorker(
        0, where, SessionOptions(), context, RangeScheduler(context), "default", lambda _: [], lambda: True
    )
    session = MadeUpSession()
    worker.session, worker.target = session, 2

    def retrieve_another() -> None:
        partial = str(tmp_path / f".{next(numbers)}.part")
        context.queue.put(FileTransfer("f", "f", partial, FileInfo(Kind.FILE, 10)))
        worker.step()

    def renew_once() -> None:
        session.meanwhile = lambda: None
        worker.renew()  # by the control loop, just now

    retrieve_another()
    retrieve_another()
    assert session.connects == [2]
    session.meanwhile = renew_once
    worker.renew()
    retrieve_another()
    assert session.connects == [2, 2]
    retrieve_another()
    assert session.connects == [2, 2, 2]
    retrieve_another()
    assert session.connects == [2, 2, 2]
