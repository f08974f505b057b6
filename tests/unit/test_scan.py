"""The scan on real folders, with a carrier in memory and a committer that only keeps account."""

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from random_bytes import random_bytes
from unit.made_up_context import Onlooker, a_context
from unit.memory_carrier import MemoryCarrier

from mpx.endpoints.local.capabilities import LOCAL
from mpx.endpoints.local.endpoint import LocalEndpoint
from mpx.engine.capabilities import StreamKind
from mpx.engine.carrier import CarrierContext
from mpx.engine.checksum_choice import ChecksumChoice
from mpx.engine.endpoint import FileInfo, Kind
from mpx.engine.file_queue import FileQueue
from mpx.engine.file_transfer import SMALL_FILE_BYTES, FileTransfer
from mpx.engine.ranges import RangeSet
from mpx.errors import Interrupted, MpxError, NoSpace, SourceError
from mpx.location import Location
from mpx.report import Report
from mpx.transfer.commit import Committer
from mpx.transfer.committed_names import CommittedNames
from mpx.transfer.ends import Ends
from mpx.transfer.file_start import FileStart
from mpx.transfer.journal import Journal
from mpx.transfer.journal_reader import Unfinished
from mpx.transfer.records import Records
from mpx.transfer.scan import Scan
from mpx.transfer.sent_notes import SentNotes
from mpx.transfer.tree_walk import Task

LARGE = SMALL_FILE_BYTES + 1
HERE = Location("file", "/")


class Settles(Onlooker):
    """A supervisor that is done with a file as soon as the carrier is."""

    def __init__(self, context: CarrierContext, committer: Committer) -> None:
        self._queue, self._committer = context.queue, committer

    def whole(self, file: FileTransfer) -> None:
        self._queue.settle(file)

    def given_up(self, file: FileTransfer, error: MpxError) -> None:
        self._committer.given_up(file, error)


class Scanned:
    """A scan of `source` into `target`, whose files a MemoryCarrier moves."""

    def __init__(self, folder: Path, **options: object) -> None:
        self.source, self.target = folder / "source", folder / "target"
        self.context = a_context(recursive=True, **options)
        self.options, self.queue, self.failure = (
            self.context.options,
            self.context.queue,
            self.context.failure,
        )
        self.report = Report(str(self.source), str(self.target))
        self.ends = Ends([HERE], HERE, self.options, lambda: self.failure.is_stopping, self.report.note)
        self.journal = Journal(self.report.source, self.report.destination)
        self.proven: list[str] = []

    def run(
        self, queue: FileQueue | None = None, *, gone: str = "", committed: CommittedNames | None = None
    ) -> MemoryCarrier:
        """Scan and move until all is settled, or the copy fails; return the carrier."""
        self.queue = queue or self.queue
        records = Records(self.report, self.journal, SentNotes(HERE), committed or CommittedNames())
        choice = ChecksumChoice("none", lambda _: False)
        committer = Committer(
            self.ends,
            self.options,
            choice,
            self.queue,
            self.failure,
            records,
            connected=lambda: None,
            may_connect=lambda _: True,
        )
        start = FileStart(
            self.ends,
            self.options,
            records,
            self.failure,
            prove=self.prove,
            checksum_for=choice.best,
            of_passed=choice.of_passed,
        )
        info = self.ends.source.stat(str(self.source))
        assert info is not None
        pairs = [(str(self.source), str(self.target), info)]
        scan = Scan(pairs, self.ends, self.options, self.queue, self.failure, records, committer, start)
        context = replace(self.context, queue=self.queue)
        context = replace(context, supervisor=Settles(context, committer))
        files = [path for path in self.source.rglob("*") if path.is_file() and path.name != gone]
        carrier = MemoryCarrier(context, {str(path): path.read_bytes() for path in files})
        carrier.start()
        scan.start()
        scan.join()
        carrier.join()
        if not self.failure.cancel.is_set():
            scan.finish()
        self.committer = committer
        return carrier

    def prove(self, file: FileTransfer) -> None:
        self.proven.append(file.source)

    def close(self) -> None:
        self.journal.close()
        self.ends.close()


class ByProgram(LocalEndpoint):
    """One whose streams are those of a program, and with one session, which it holds until it lets go."""

    is_held = True

    capabilities = replace(LOCAL, streams=StreamKind.PROGRAM)

    def let_go(self) -> None:
        self.is_held = False


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "source" / "below").mkdir(parents=True)
    return tmp_path


@pytest.fixture
def scanned(folder: Path) -> Iterator[Scanned]:
    scanned = Scanned(folder)
    yield scanned
    scanned.close()


def test_files_are_queued_and_folders_made(scanned: Scanned) -> None:
    wanted = {"a": b"first", "below/b": b"second", "below/empty": b""}
    for name, content in wanted.items():
        (scanned.source / name).write_bytes(content)
    os.utime(scanned.source / "below", (1e9, 1e9))
    carrier = scanned.run()
    assert carrier.targets == {str(scanned.target / name): content for name, content in wanted.items()}
    assert scanned.report.files.total == 3 and scanned.report.bytes.total == 11
    assert (scanned.target / "below").stat().st_mtime == 1e9  # once all of it is there


def test_its_session_is_for_others_once_all_is_listed_where_nobody_measures_over_it(scanned: Scanned) -> None:
    (scanned.source / "a").write_bytes(b"content")
    scanned.ends.far = end = ByProgram(HERE, writing=True)
    assert len(scanned.run().targets) == 1
    assert not end.is_held


def test_a_short_queue_is_filled_as_the_carrier_empties_it(scanned: Scanned) -> None:
    for i in range(100):
        (scanned.source / f"{i}").write_bytes(b"content")
    queue = FileQueue(scanned.failure.cancel, limit=2, most_unsettled=3)
    carrier = scanned.run(queue)
    assert len(carrier.targets) == 100 and queue.listed_files == 100


@pytest.mark.parametrize("overwrite", ["different", "always", "never"])
def test_what_this_copy_has_committed_is_left_out_after_a_fallback(folder: Path, overwrite: str) -> None:
    scanned = Scanned(folder, overwrite=overwrite)
    for name in ("a", "b"):
        (scanned.source / name).write_bytes(b"content")
    committed = CommittedNames()
    committed.add([str(scanned.target / "a")])
    assert len(scanned.run(committed=committed).targets) == 2  # both, before there is a fallback
    committed.start_over()
    scanned.report.start_over()
    carrier = scanned.run(FileQueue(scanned.failure.cancel), committed=committed)
    assert carrier.targets == {str(scanned.target / "b"): b"content"}
    assert scanned.report.files.total == 1 and not scanned.report.skipped
    scanned.close()


def test_a_file_that_is_in_the_way_fails_alone(scanned: Scanned) -> None:
    for name in ("a", "b"):
        (scanned.source / name).write_bytes(b"content")
    (scanned.target / "a").mkdir(parents=True)
    carrier = scanned.run()
    assert carrier.targets == {str(scanned.target / "b"): b"content"}
    (failure,) = scanned.report.failures
    assert failure["name"] == str(scanned.source / "a") and "folder of that name" in failure["error"]
    assert scanned.committer.first_error is not None and scanned.failure.error is None


def test_a_source_that_goes_meanwhile_fails_alone(scanned: Scanned) -> None:
    for name in ("goes", "stays"):
        (scanned.source / name).write_bytes(b"content")
    os.mkfifo(scanned.source / "pipe")
    carrier = scanned.run(gone="goes")
    assert list(carrier.targets) == [str(scanned.target / "stays")]
    assert [entry["name"] for entry in scanned.report.failures] == [str(scanned.source / "goes")]
    assert [entry["reason"] for entry in scanned.report.skipped] == ["not a regular file"]
    assert scanned.committer.incomplete_folders == {str(scanned.target)}


def test_what_is_the_same_is_skipped(scanned: Scanned) -> None:
    scanned.target.mkdir()
    for folder in (scanned.source, scanned.target):
        (folder / "same").write_bytes(b"content")
        os.utime(folder / "same", (1e9, 1e9))
    (scanned.source / "new").write_bytes(b"content")
    carrier = scanned.run()
    assert list(carrier.targets) == [str(scanned.target / "new")]
    assert scanned.report.files.skipped == 1


@pytest.mark.parametrize("changed", [False, True])
def test_an_unfinished_file_goes_on_unless_it_has_changed(scanned: Scanned, changed: bool) -> None:
    source, final = scanned.source / "large", scanned.target / "large"
    source.write_bytes(random_bytes(LARGE))
    os.utime(source, (1e9, 1e9))
    modified_s = 1e9 - 1 if changed else 1e9
    known = Unfinished(str(final), str(final) + ".part", LARGE, modified_s, RangeSet([(0, LARGE - 10)]))
    scanned.journal.unfinished[known.final] = known
    carrier = scanned.run()
    moved = sum(carrier.arrived.values())
    assert moved == (LARGE if changed else 10)
    assert scanned.proven == ([] if changed else [str(source)])
    assert any("starting over" in note for note in scanned.report.notes) == changed


def test_links_come_last(scanned: Scanned, folder: Path) -> None:
    scanned.close()
    keeping = Scanned(folder, links="keep")
    try:
        (keeping.source / "a link").symlink_to("file")
        (keeping.source / "file").write_bytes(b"content")
        keeping.run()
        assert os.readlink(keeping.target / "a link") == "file"
        assert keeping.report.files.total == 2
    finally:
        keeping.close()


def test_without_room_the_copy_ends_before_a_byte_moves(
    scanned: Scanned, monkeypatch: pytest.MonkeyPatch
) -> None:
    (scanned.source / "file").write_bytes(b"content")
    monkeypatch.setattr(scanned.ends.destination, "free_bytes", lambda _: 3)
    carrier = scanned.run()
    assert isinstance(scanned.failure.error, NoSpace) and "7 bytes needed, 3 free" in str(
        scanned.failure.error
    )
    assert not carrier.targets


def test_a_copy_that_fails_ends_a_scan_that_waits_for_room_in_the_queue(scanned: Scanned) -> None:
    for i in range(10):
        (scanned.source / f"{i}").write_bytes(b"content")
    queue = FileQueue(scanned.failure.cancel, limit=0)

    def fail() -> None:
        scanned.failure.set(SourceError("something else"))

    scanned.ends.far.pause = fail  # as the scan does while it waits
    scanned.run(queue)
    assert str(scanned.failure.error) == "something else" and not queue.is_settled


def begun(scanned: Scanned, known: Unfinished, info: FileInfo, algorithm: str = "adler32") -> FileTransfer:
    """The beginning of a file of which an earlier run has moved some."""
    scanned.journal.unfinished[known.final] = known
    records = Records(scanned.report, scanned.journal, SentNotes(HERE))
    start = FileStart(
        scanned.ends,
        scanned.options,
        records,
        scanned.failure,
        prove=scanned.prove,
        checksum_for=lambda _: algorithm,
        of_passed=lambda _: "",
    )
    task = Task(str(scanned.source / "large"), known.final, info)
    return start.make(task, is_in_new_folder=False)


@pytest.mark.parametrize(("algorithm", "resumed"), [("none", 0), ("adler32", LARGE - 10)])
def test_without_a_time_only_a_checksum_shows_that_a_source_is_the_same(
    scanned: Scanned, algorithm: str, resumed: int
) -> None:
    final = str(scanned.target / "large")
    known = Unfinished(final, f"{final}.part", LARGE, None, RangeSet([(0, LARGE - 10)]))
    file = begun(scanned, known, FileInfo(Kind.FILE, LARGE), algorithm)
    assert file.resumed_bytes == resumed
    assert any("starting over" in note for note in scanned.report.notes) == (not resumed)


@pytest.mark.parametrize(("tag", "resumed"), [("", LARGE - 10), ('W/"one"', LARGE - 10), ('"two"', 0)])
def test_another_tag_shows_that_a_source_is_another(scanned: Scanned, tag: str, resumed: int) -> None:
    """Of the same size and time, which servers tell in seconds."""
    final = str(scanned.target / "large")
    known = Unfinished(final, f"{final}.part", LARGE, 1e9, RangeSet([(0, LARGE - 10)]), tag='"one"')
    file = begun(scanned, known, FileInfo(Kind.FILE, LARGE, 1e9, tag=tag))
    assert file.resumed_bytes == resumed
    assert any('its ETag was "one" and is "two" now' in note for note in scanned.report.notes) == (
        not resumed
    )


def test_a_partial_file_of_another_name_is_not_left_behind(scanned: Scanned) -> None:
    scanned.target.mkdir()
    final, other = scanned.target / "large", scanned.target / "_large.mpx-0123456789ab.part"
    for path in (final, other):
        path.write_bytes(b"content")
    for partial in (other, final):  # of a run with another prefix, and of one with --in-place
        begun(scanned, Unfinished(str(final), str(partial), LARGE, 1e9), FileInfo(Kind.FILE, LARGE, 1e9))
    assert final.exists() and not other.exists()


def test_the_user_ends_what_comes_last(scanned: Scanned) -> None:
    os.utime(scanned.source / "below", (1e9, 1e9))
    scanned.failure.by_user.set()
    with pytest.raises(Interrupted):
        scanned.run()
    assert (scanned.target / "below").stat().st_mtime != 1e9
