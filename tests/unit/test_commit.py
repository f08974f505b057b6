"""Several commit sessions on real files: what is damaged, lost or refused never gets its final name."""

import os
import random
import threading
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from random_bytes import random_bytes

from mpx.endpoints.local.endpoint import LocalEndpoint
from mpx.engine.checksum import SECTION_BYTES
from mpx.engine.checksum_choice import ChecksumChoice
from mpx.engine.endpoint import Commit, FileInfo, Kind, Part
from mpx.engine.file_queue import FileQueue
from mpx.engine.file_transfer import FileTransfer
from mpx.engine.stop import Failure
from mpx.errors import ConnectionLost, IntegrityError
from mpx.files.state_folder import StateFolder
from mpx.location import Location
from mpx.options import CopyOptions
from mpx.report import OnNote, Report
from mpx.transfer.commit import Committer
from mpx.transfer.commit_session import CommitSession
from mpx.transfer.ends import Ends
from mpx.transfer.journal import Journal
from mpx.transfer.journal_reader import Unfinished, read_journal
from mpx.transfer.records import Records
from mpx.transfer.sent_notes import SentNotes
from mpx.transfer.verify_queue import GROUP

FILES = 900
SESSIONS = 4
HERE = Location("file", "/")


class Flaky(LocalEndpoint):
    """Files of this host over a connection that is lost now and then, before or after what was asked."""

    def __init__(self, rng: random.Random, *, writing: bool) -> None:
        super().__init__(HERE, writing=writing)
        self._rng = rng

    def _maybe_lost(self) -> None:
        if self._rng.random() < 0.1:
            raise ConnectionLost("lost")

    def commit(self, files: Sequence[Commit], note: OnNote) -> list[Exception | None]:
        self._maybe_lost()
        if self._rng.random() < 0.3:
            files = files[: len(files) // 2]  # the rest was never heard
            super().commit(files, note)
            raise ConnectionLost("lost in the middle")
        results = super().commit(files, note)
        self._maybe_lost()
        if results and self._rng.random() < 0.1:
            results[0] = ConnectionLost("busy, although it was done")
        return results

    def checksums(
        self, algorithm: str, parts: Sequence[Part], stop: Callable[[], bool]
    ) -> list[str | Exception]:
        self._maybe_lost()
        sums = super().checksums(algorithm, parts, stop)
        if self._rng.random() < 0.1:
            sums[len(sums) // 2] = ConnectionLost("busy")
        return sums


class Play:
    """A committer, and a worker that brings files: well, damaged once, or damaged every time."""

    def __init__(
        self,
        folder: Path,
        *,
        sessions: int = SESSIONS,
        seed: int = 0,
        offers: Callable[[str], bool] = lambda _: True,
        retries: int = 50,
        endpoint: Callable[[], LocalEndpoint] | None = None,
    ) -> None:
        self.folder = folder
        self.rng = random.Random(seed)
        self.failure = Failure(threading.Event())
        self.queue = FileQueue(self.failure.cancel)
        self.report = Report("source", "destination")
        self.journal = Journal("source", "destination")
        self.opened = 0
        self.connected = threading.Event()
        self.endpoint = endpoint
        options = CopyOptions(retries=retries, max_sessions=sessions)
        ends = Ends([HERE], HERE, options, lambda: False, self.report.note)
        ends.open_both = lambda: (self.open(), self.open())
        records = Records(self.report, self.journal, SentNotes(HERE))
        choice = ChecksumChoice("auto", offers)
        self.committer = Committer(
            ends,
            options,
            choice,
            self.queue,
            self.failure,
            records,
            connected=self.connected.set,
            may_connect=threading.Event().wait,  # never, so that it connects for its first files only
        )

    def open(self) -> LocalEndpoint:
        self.opened += 1
        if self.endpoint:
            return self.endpoint()
        return Flaky(random.Random(self.rng.random()), writing=True)

    def file(self, name: str, content: bytes) -> FileTransfer:
        source = self.folder / "source" / name
        source.write_bytes(content)
        os.utime(source, (1e9, 1e9))
        final = self.folder / "target" / name
        return FileTransfer(
            str(source), str(final), f"{final}.part", FileInfo(Kind.FILE, len(content), 1e9, 0o644)
        )

    def bring(self, file: FileTransfer, damage: float) -> None:
        """Play the worker for one file."""
        file.take_all()
        content = Path(file.source).read_bytes()
        if self.rng.random() < damage:
            content = b"damaged" + content[7:]
        Path(file.partial).write_bytes(content)
        file.landed(0, file.size_bytes)
        assert file.claim_whole()
        self.committer.whole(file)

    def finish(self, damage: float) -> None:
        """Move what has to move, until all is settled."""
        self.queue.end_listing()
        while (file := self.queue.take()) is not None:
            self.bring(file, damage)
        self.committer.join()
        self.journal.close()


@pytest.fixture(autouse=True)
def in_haste(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait less between attempts, of which there are many here."""
    monkeypatch.setattr("mpx.engine.retry.FIRST_WAIT_S", 0.001)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    for name in ("source", "target"):
        (tmp_path / name).mkdir()
    yield tmp_path


@pytest.mark.parametrize("seed", range(3))
def test_only_what_is_the_same_gets_its_name(folder: Path, seed: int, monkeypatch) -> None:
    monkeypatch.setattr("mpx.engine.retry.FIRST_WAIT_S", 0.001)
    play = Play(folder, seed=seed)
    play.committer.start()
    files = [play.file(f"{i}", random_bytes(20 + i % 50)) for i in range(FILES)]
    for file in files:
        play.queue.put(file)
    play.finish(damage=0.3)
    assert play.failure.error is None
    failed = {entry["name"] for entry in play.report.failures}
    assert 0 < len(failed) < FILES / 2  # those that came damaged twice
    assert play.report.files.moved == FILES - len(failed)
    for file in files:
        final = Path(file.final)
        assert final.exists() == (file.source not in failed)
        if final.exists():
            assert final.read_bytes() == Path(file.source).read_bytes()
        assert not Path(file.partial).exists()
    assert isinstance(play.committer.first_error, IntegrityError)


def test_who_moves_files_hears_of_a_session_that_its_first_files_have_opened(folder: Path) -> None:
    """Else no further worker would begin: a fast one leaves no pause in which to connect."""
    play = Play(folder, endpoint=lambda: LocalEndpoint(HERE, writing=True))
    play.committer.start()
    play.queue.put(play.file("a", b"content"))
    play.finish(damage=0)
    assert play.report.files.moved == 1
    assert play.connected.is_set()


@pytest.mark.parametrize("offered", ["xxh3", "sha256", "md5", "sha1", "sha512", "crc32"])
def test_damage_with_the_same_adler32_is_noticed(folder: Path, offered: str) -> None:
    """About one in a million damages of a short file leaves its Adler-32 as it was; this one does."""
    content = bytes.fromhex("58802eb1308c50") + bytes(range(52))
    damaged = b"damaged" + content[7:]
    assert zlib.adler32(damaged) == zlib.adler32(content)
    play = Play(folder, offers=lambda algorithm: algorithm in (offered, "adler32"))
    play.committer.start()
    file = play.file("short", content)
    play.queue.put(file)
    play.finish(damage=1)
    assert isinstance(play.committer.first_error, IntegrityError)
    assert offered in str(play.committer.first_error)
    assert not Path(file.final).exists()


def test_what_waits_brings_more_sessions(folder: Path) -> None:
    play = Play(folder)
    for i in range(FILES):
        file = play.file(f"{i}", b"content")
        play.queue.put(file)
        play.bring(play.queue.take() or file, damage=0)
    play.committer.start()
    play.finish(damage=0)
    assert play.report.files.moved == FILES
    assert play.opened > 2  # each session opens a source and a destination


def test_a_few_files_are_finished_by_one_session(folder: Path) -> None:
    play = Play(folder)
    play.committer.start()
    for i in range(50):
        play.queue.put(play.file(f"{i}", b"content"))
    play.finish(damage=0)
    assert play.report.files.moved == 50
    assert len({thread.name for thread in threading.enumerate() if thread.name == "mpx-commit"}) == 0


class Ending(LocalEndpoint):
    """Files of this host behind a server that ends every session in which nothing is moved."""

    def __init__(self, ended: threading.Semaphore) -> None:
        super().__init__(HERE, writing=True)
        self._ended = ended
        self._words = 0

    def measure_rtt(self) -> None:
        self._words += 1
        if self._words > 1:
            self._ended.release()
            raise ConnectionLost("the server has ended the session")


def test_sessions_that_end_while_they_are_not_needed_do_not_end_the_copy(folder: Path, monkeypatch) -> None:
    """The files take their time, and the server ends more sessions meanwhile than there are retries."""
    monkeypatch.setattr("mpx.transfer.commit_session.IDLE_TICKS", 1)
    ended = threading.Semaphore(0)
    play = Play(folder, retries=3, endpoint=lambda: Ending(ended))
    file = play.file("slow", b"content")
    play.queue.put(file)
    play.committer.start()
    for _ in range(10):
        assert ended.acquire(timeout=60)
    play.finish(damage=0)
    assert play.failure.error is None
    assert Path(file.final).read_bytes() == b"content"


def test_what_was_taken_back_is_not_in_the_journal(folder: Path) -> None:
    """Damage in a large file, and a kill before it came again: the next run trusts nothing of it."""
    play = Play(folder)
    content = random_bytes(6_000_000)
    file = play.file("large", content)
    play.journal.begin(Unfinished(file.final, file.partial, file.size_bytes, file.modified_s))
    play.committer.began(file)
    play.committer.journal_arrivals()
    play.queue.put(file)
    play.committer.start()
    play.bring(play.queue.take() or file, damage=1)
    play.committer.journal_arrivals()
    assert play.queue.take() is file  # to be moved again
    play.failure.cancel.set()
    play.committer.join()
    play.journal.close()
    with StateFolder() as state:
        (name,) = state.names(".journal")
        (file,) = read_journal(state, name).files.values()
        assert '"arrived"' in (state.path / name).read_text()
    assert file.arrived.size == 0


@pytest.mark.parametrize("is_same", [True, False])
def test_what_is_proven_in_the_end_is_no_mismatch(is_same: bool, folder: Path) -> None:
    """A part that differs twice while its file still moves is compared once more when that is whole."""
    play = Play(folder)
    file = play.file("large", b"x" * (SECTION_BYTES + 1000))
    play.committer.began(file)
    file.take_all()
    for _ in range(2):
        file.landed(0, SECTION_BYTES)
        (section,) = play.committer._verify_queue.take(0).sections
        play.committer.compared(section, "adler32", False)
    assert play.report.checksum["result"] != "mismatch"
    file.landed(0, file.size_bytes)
    play.committer.whole(file)
    for section in play.committer._verify_queue.take(0).sections:
        play.committer.compared(section, "adler32", is_same)
    assert (play.report.checksum["result"] == "mismatch") == (not is_same)
    assert isinstance(play.committer.first_error, IntegrityError) == (not is_same)
    play.journal.close()


def a_large_file(play: Play, size_bytes: int) -> FileTransfer:
    """Return one that is being moved, and of which there is nothing on a disk."""
    file = FileTransfer("source", "final", "final.part", FileInfo(Kind.FILE, size_bytes, 1e9, 0o644))
    play.journal.begin(Unfinished(file.final, file.partial, size_bytes, 1e9))
    play.committer.began(file)
    play.queue.put(file)
    assert play.queue.take() is file
    file.take_all()
    return file


def test_what_is_sent_again_makes_no_file_whole_that_was_given_up(folder: Path) -> None:
    """One part is damaged, and another cannot be compared before that has come again."""
    play = Play(folder)
    file = a_large_file(play, 2 * SECTION_BYTES)
    file.landed(0, file.size_bytes)
    assert file.claim_whole()
    play.committer.whole(file)
    damaged, untold = play.committer._verify_queue.take(0).sections
    play.committer.compared(damaged, "adler32", False)
    assert file.todo_bytes == SECTION_BYTES
    play.committer.compared(untold, "adler32", IntegrityError("it cannot be read"))
    assert file.is_given_up and file.todo_bytes == 0 and play.report.files.failed == 1
    file.landed(damaged.start, damaged.end)
    assert not file.claim_whole()
    play.journal.close()


def test_what_was_lost_and_has_come_again_is_in_the_journal(folder: Path) -> None:
    """Both are news of one moment: what was lost is written before what has arrived."""
    play = Play(folder)
    file = a_large_file(play, 6_000_000)
    file.landed(0, file.size_bytes)
    play.committer.journal_arrivals()
    file.redo(1000, 2000)
    file.landed(1000, 2000)
    play.committer.journal_arrivals()
    play.journal.close()
    with StateFolder() as state:
        (name,) = state.names(".journal")
        (read,) = read_journal(state, name).files.values()
    assert list(read.arrived) == [(0, file.size_bytes)]


def test_a_session_that_has_nothing_in_hand_takes_what_waits(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is a further one only where those that are idle are fewer than the batches that wait."""
    begun: list[CommitSession] = []

    def start(session: CommitSession) -> None:
        begun.append(session)

    monkeypatch.setattr(CommitSession, "start", start)
    play = Play(folder)
    play.committer.start()
    (first,) = begun

    def bring_a_batch() -> None:
        for _ in range(GROUP):
            file = FileTransfer("source", "final", "final.part", FileInfo(Kind.FILE, 10, 1e9, 0o644))
            file.landed(0, 10)
            play.committer.whole(file)

    bring_a_batch()
    assert begun == [first]  # which is idle
    first.is_idle = False
    play.committer.took()
    assert len(begun) == 2
    play.committer.took()
    assert len(begun) == 2  # as that is idle
    bring_a_batch()
    assert len(begun) == 3
    play.journal.close()
