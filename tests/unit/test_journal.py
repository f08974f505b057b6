"""The journal: what a reader makes of what a crash, a restart or somebody else has left."""

import errno
import fcntl
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from mpx.engine.ranges import RangeSet
from mpx.errors import DestinationError, NoSpace, UsageError
from mpx.files.state_folder import StateFolder
from mpx.transfer import journal
from mpx.transfer.destination_lock import DestinationLock
from mpx.transfer.journal import Journal, leftovers
from mpx.transfer.journal_reader import Unfinished, boot_id, read_journal

TAG = '"a-tag"'
SOURCE, DESTINATION = "/data/\udcff file", "ftp://host:2811/data/file"


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch) -> Path:
    folder = tmp_path / "state"
    monkeypatch.setenv("MPX_STATE_DIR", str(folder))
    return folder


def interrupted(*arrived: tuple[int, int]) -> Path:
    """Leave the journal of a copy that was killed; returns its path."""
    journal = Journal(SOURCE, DESTINATION)
    journal.begin(Unfinished("/data/file", "/data/.file.part", 1000, 12.5, tag=TAG))
    for each in arrived:
        journal.arrived("/data/file", [each])
    journal.close()
    with StateFolder() as folder:
        (path,) = folder.path.glob("*.journal")
    return path


def read_files(path: Path) -> list[Unfinished]:
    with StateFolder() as folder:
        return list(read_journal(folder, path.name).files.values())


def test_what_arrived_is_known_to_the_next_run() -> None:
    interrupted((0, 10), (500, 600), (10, 20))
    journal = Journal(SOURCE, DESTINATION)
    file = journal.unfinished["/data/file"]
    assert (file.partial, file.size_bytes, file.modified_s) == ("/data/.file.part", 1000, 12.5)
    assert file.tag == TAG
    assert file.arrived == RangeSet([(0, 20), (500, 600)])
    journal.arrived("/data/file", [(20, 30)])
    journal.close()
    journal = Journal(SOURCE, DESTINATION)
    assert journal.unfinished["/data/file"].arrived == RangeSet([(0, 30), (500, 600)])
    journal.close()


def test_what_was_lost_again_is_not_believed_by_the_next_run() -> None:
    journal = Journal(SOURCE, DESTINATION)
    journal.begin(Unfinished("a", ".a", 1000, None))
    journal.arrived("a", [(0, 500)])
    journal.lost("a", [(100, 200), (450, 1000)])
    journal.arrived("a", [(150, 160)])
    journal.lost("no such file", [(0, 5)])
    journal.close()
    journal = Journal(SOURCE, DESTINATION)
    assert journal.unfinished["a"].arrived == RangeSet([(0, 100), (150, 160), (200, 450)])
    journal.close()


def test_a_finished_copy_leaves_no_journal(state: Path) -> None:
    journal = Journal(SOURCE, DESTINATION)
    journal.begin(Unfinished("a", ".a", 1, None))
    journal.begin(Unfinished("b", ".b", 1, None))
    journal.done(["a", "b"])
    journal.close()
    assert list(state.glob("*.journal")) == []
    assert list(leftovers()) == []


def test_a_file_begun_anew_has_nothing() -> None:
    journal = Journal(SOURCE, DESTINATION)
    journal.begin(Unfinished("a", ".a", 1000, None))
    journal.arrived("a", [(0, 500)])
    journal.begin(Unfinished("a", ".a", 900, None))
    journal.close()
    journal = Journal(SOURCE, DESTINATION)
    assert journal.unfinished["a"].size_bytes == 900
    assert not journal.unfinished["a"].arrived
    journal.close()


def test_a_line_about_a_file_that_is_done_does_no_harm(state: Path) -> None:
    path = interrupted((0, 10))
    with path.open("a") as lines:
        lines.write(json.dumps({"arrived": [[0, 5]], "of": "done long ago"}) + "\n")
        lines.write(json.dumps({"arrived": [[10, 15]], "of": "/data/file"}) + "\n")
    (file,) = read_files(path)
    assert file.arrived == RangeSet([(0, 15)])


def test_every_place_where_a_crash_may_cut_it() -> None:
    path = interrupted((0, 10), (10, 20), (500, 600))
    whole = path.read_bytes()
    seen = []
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        files = read_files(path)
        assert len(files) <= 1
        for file in files:
            assert not any(RangeSet([(20, 500), (600, 1000)]).within(*each) for each in file.arrived)
            seen.append(file.arrived.size)
    assert seen == sorted(seen)
    assert {0, 10, 20} <= set(seen)


def test_after_a_restart_of_the_host_nothing_written_is_believed() -> None:
    path = interrupted((0, 10))
    assert boot_id()
    path.write_text(path.read_text().replace(boot_id(), "another-boot"))
    (file,) = read_files(path)
    assert file.partial == "/data/.file.part"
    assert not file.arrived


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\0" * 4096,
        b"no journal\n",
        b'{"mpx": 2, "boot": "x"}\n{"file": "a", "partial": "b", "size": 1, "modified": null}\n',
        b"[1, 2]\n3\n",
        b'{"mpx": 1, "boot": "x"}\n[]\n7\n"text"\nnull\n',
        b'{"mpx": 1, "boot": "x"}\n{"file": "a", "partial": "b", "size": "many", "modified": null}\n',
        b'{"mpx": 1}\n',
        b"\xff\xfe\n",
    ],
)
def test_foreign_files(state: Path, content: bytes) -> None:
    path = interrupted()
    path.write_bytes(content)
    assert read_files(path) == []
    assert all(not leftover.known.files for leftover in leftovers())
    Journal(SOURCE, DESTINATION).close()


def test_ranges_that_are_none_end_the_journal(state: Path) -> None:
    path = interrupted((0, 10))
    with path.open("a") as lines:
        lines.write(
            '{"arrived": [[30, 20]], "of": "/data/file"}\n{"arrived": [[20, 30]], "of": "/data/file"}\n'
        )
    (file,) = read_files(path)
    assert file.arrived == RangeSet([(0, 10)])


def test_two_copies_to_one_destination(state: Path) -> None:
    first = Journal(SOURCE, DESTINATION)
    with pytest.raises(DestinationError, match=f"process {os.getpid()}"):
        Journal("/another/source", DESTINATION)
    Journal(SOURCE, DESTINATION + "2").close()
    first.close()
    Journal("/another/source", DESTINATION).close()
    assert list(state.iterdir()) == []  # no lock stays for each destination that there ever was


def test_one_at_a_time_however_many_come_and_go(state: Path) -> None:
    folder = StateFolder()
    inside, most = [0], [0]
    guard = threading.Lock()

    def come_and_go() -> None:
        for _ in range(200):
            try:
                lock = DestinationLock(folder, "x.lock", DESTINATION)
            except DestinationError:
                continue
            with guard:
                inside[0] += 1
                most[0] = max(most[0], inside[0])
            with guard:
                inside[0] -= 1
            lock.close()

    threads = [threading.Thread(target=come_and_go) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    folder.close()
    assert most == [1]
    assert list(state.iterdir()) == []


def test_a_lock_that_was_removed_before_it_was_taken(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = state / "x.lock"
    taken = fcntl.flock

    def after_its_holder_left(file: int, how: int) -> None:
        monkeypatch.undo()
        path.unlink()
        taken(file, how)

    monkeypatch.setattr("fcntl.flock", after_its_holder_left)
    with (
        StateFolder() as folder,
        DestinationLock(folder, path.name, DESTINATION),
        pytest.raises(DestinationError),
    ):
        DestinationLock(folder, path.name, DESTINATION)


def test_a_lock_that_was_removed_by_hand_does_not_take_the_next_with_it(state: Path) -> None:
    with StateFolder() as folder:
        first = DestinationLock(folder, "x.lock", DESTINATION)
        (state / "x.lock").unlink()
        with DestinationLock(folder, "x.lock", DESTINATION):
            first.close()
            with pytest.raises(DestinationError, match="is running"):
                DestinationLock(folder, "x.lock", DESTINATION)


def test_a_killed_copy_leaves_no_lock(state: Path) -> None:
    script = (
        "import os, signal\nfrom mpx.transfer.journal import Journal, Unfinished\n"
        f"j = Journal({SOURCE!r}, {DESTINATION!r})\nj.begin(Unfinished('a', '.a', 5, None))\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == -9
    (leftover,) = leftovers()
    assert (leftover.source, leftover.destination) == (SOURCE, DESTINATION)
    assert list(leftover.known.files) == ["a"]
    Journal(SOURCE, DESTINATION).close()


def test_a_running_copy_is_no_leftover() -> None:
    interrupted((0, 10))
    journal = Journal(SOURCE, DESTINATION)
    assert list(leftovers()) == []
    journal.close()
    assert len(list(leftovers())) == 1


def test_a_folder_where_nobody_may_write(monkeypatch) -> None:
    monkeypatch.setenv("MPX_STATE_DIR", "/proc")
    with pytest.raises(UsageError, match="MPX_STATE_DIR"):
        Journal(SOURCE, DESTINATION)


def test_a_folder_that_is_a_file(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "x").write_text("x")
    monkeypatch.setenv("MPX_STATE_DIR", str(tmp_path / "x"))
    with pytest.raises(UsageError, match="MPX_STATE_DIR"):
        Journal(SOURCE, DESTINATION)


def test_what_is_told_after_the_end_is_written_nowhere(tmp_path: Path) -> None:
    """The number of its descriptor may be that of another file by then."""
    journal = Journal(SOURCE, DESTINATION)
    journal.begin(Unfinished("a", ".a", 10, None))
    journal.close()
    others = [os.open(tmp_path / f"{i}", os.O_RDWR | os.O_CREAT) for i in range(8)]
    try:
        journal.begin(Unfinished("b", ".b", 10, None))
        journal.arrived("a", [(0, 10)])
        journal.lost("a", [(0, 10)])
        journal.done(["a"])
        journal.close()
        assert [os.fstat(other).st_size for other in others] == [0] * 8
    finally:
        for other in others:
            os.close(other)
    again = Journal(SOURCE, DESTINATION)
    assert list(again.unfinished) == ["a"]
    again.close()


def test_finished_files_are_counted_over_runs() -> None:
    for run in range(2):
        journal = Journal(SOURCE, DESTINATION)
        for i in range(3):
            journal.begin(Unfinished(f"{run} {i}", ".x", 1000, None))
        journal.begin(Unfinished("kept", ".kept", 500, None))
        journal.done([f"{run} 0", f"{run} 1", "no such file"])
        journal.removed(f"{run} 2")
        journal.close()
        (left,) = leftovers()
        assert list(left.known.files) == ["kept"]
        assert (left.known.finished_files, left.known.finished_bytes) == (2 * run + 2, 2000 * run + 2000)
    Journal(SOURCE, DESTINATION, counts_on=False).close()  # all is copied again
    (left,) = leftovers()
    assert (left.known.finished_files, left.known.finished_bytes) == (0, 0)


def test_threads_do_not_mix_their_lines(state: Path) -> None:
    journal = Journal(SOURCE, DESTINATION)
    names = [f"{'long' * i}{i}" for i in range(8)]

    def write(name: str) -> None:
        journal.begin(Unfinished(name, f".{name}", 10_000, None))
        for i in range(0, 10_000, 50):
            journal.arrived(name, [(i, i + 50)])

    threads = [threading.Thread(target=write, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    journal.close()
    journal = Journal(SOURCE, DESTINATION)
    assert {name: journal.unfinished[name].arrived.size for name in names} == dict.fromkeys(names, 10_000)
    journal.close()


def test_a_journal_that_has_no_room_leaves_nothing(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_room(_: int, __: str) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(journal, "_append", no_room)
    with pytest.raises(NoSpace):
        Journal(SOURCE, DESTINATION)
    assert [path.suffix for path in state.iterdir() if path.suffix != ".lock"] == []


@pytest.mark.parametrize("has_room", [True, False])
def test_that_of_a_long_copy_is_written_anew(
    state: Path, monkeypatch: pytest.MonkeyPatch, has_room: bool
) -> None:
    """What counts stays the same; where there is no room for a second one the first goes on."""
    monkeypatch.setattr(journal, "LONG_BYTES", 2000)
    running = Journal(SOURCE, DESTINATION)
    (path,) = state.glob("*.journal")
    if not has_room:

        def full(*_: object) -> int:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        monkeypatch.setattr(StateFolder, "create", full)
    running.begin(Unfinished("kept", ".kept", 100_000, 1.0))
    most = 0
    for i in range(1000):
        running.begin(Unfinished(f"small {i}", ".small", 1, None))
        running.arrived("kept", [(10 * i, 10 * i + 10)])
        running.lost("kept", [(10 * i, 10 * i + 1)])
        running.done([f"small {i}"])
        most = max(most, path.stat().st_size)
    (file,) = read_files(path)
    assert (file.final, file.partial, file.size_bytes, file.modified_s) == ("kept", ".kept", 100_000, 1.0)
    assert file.arrived == RangeSet((10 * i + 1, 10 * i + 10) for i in range(1000))
    with StateFolder() as folder:
        assert read_journal(folder, path.name).finished_files == 1000
    assert (most < 120_000) == has_room
    running.close()
