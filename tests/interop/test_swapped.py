"""Another account that may write to the folder a copy goes to puts something in the place of its files."""

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from interop.mpx_process import Copy
from mpx_command import copied
from mpx_command import mpx as run
from random_bytes import random_bytes
from sites import Site, opened

import mpx
from mpx.transfer.journal import Journal
from mpx.transfer.journal_reader import Unfinished

pytestmark = pytest.mark.peers
SIZE = 12_000_001
RATE = "24Mbit/s"
LONG_AGO_S = 1_000_000_000
# One of each way that data come: the others differ in how one logs in, which the local end does not see.
FROM = ("local", "stock server", "mpx serve with a token", "sftp")


@pytest.fixture(params=FROM)
def there(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Site]:
    with opened(request.param, tmp_path) as site:
        yield site


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    file = tmp_path / "victim"
    file.write_bytes(b"private")
    file.chmod(0o600)
    os.utime(file, (LONG_AGO_S, LONG_AGO_S))
    return file


def is_untouched(victim: Path) -> bool:
    status = victim.stat()
    return (victim.read_bytes(), status.st_mode & 0o777, status.st_mtime) == (b"private", 0o600, LONG_AGO_S)


def partial_in(folder: Path) -> Path | None:
    return next(iter(folder.glob(".*.part")), None)


@pytest.mark.parametrize("swap", ["link", "hard link", "fifo", "file"])
def test_what_was_swapped_while_it_was_copied_is_an_error(
    there: Site, here: Path, tmp_path: Path, victim: Path, eventually, swap: str
) -> None:
    source = there.write("source", random_bytes(SIZE))
    source.chmod(0o666)
    (tmp_path / "work").mkdir()
    copy = Copy(tmp_path / "work", f"{there.url}source", here / "out", "--rate", RATE)
    eventually(lambda: (part := partial_in(here)) and part.stat().st_size)
    part = partial_in(here)
    assert part
    part.rename(here / "aside")
    if swap == "link":
        part.symlink_to(victim)
    elif swap == "hard link":
        part.hardlink_to(victim)
    elif swap == "fifo":
        os.mkfifo(part)
    else:
        part.write_bytes(source.read_bytes())
    done = copy.end()
    if "://" in there.url:
        assert done.code == 4, done
        assert "was replaced by another file" in done.stderr
    else:  # the checksum of what is found under the name may tell first
        assert done.code in (4, 8), done
    assert not os.path.lexists(here / "out")
    assert is_untouched(victim)


@pytest.mark.parametrize("left", ["link", "hard link", "fifo"])
def test_what_no_earlier_run_can_have_left_is_not_continued(
    there: Site, here: Path, victim: Path, left: str
) -> None:
    source = there.write("source", random_bytes(SIZE))
    final = here / "out"
    with_slash = f"{there.url}source"
    whole = mpx.copy(with_slash, str(here / "first"))
    journal = Journal(whole.source, str(whole.destination).replace("first", "out"))
    part = here / f".out.mpx-{journal.tag}.part"
    journal.begin(Unfinished(str(final), str(part), SIZE, mtime_as_listed(there, source)))
    journal.arrived(str(final), [(0, SIZE)])
    journal.close()
    if left == "link":
        part.symlink_to(victim)
    elif left == "hard link":
        part.hardlink_to(victim)
    else:
        os.mkfifo(part)
    report = mpx.copy(with_slash, str(final))
    assert final.read_bytes() == source.read_bytes()
    assert report.bytes.resumed == 0
    assert any(note.endswith("starting over") and str(part) in note for note in report.notes), report.notes
    assert is_untouched(victim)


def mtime_as_listed(there: Site, source: Path) -> float:
    end = there.open(writing=False)
    info = end.stat(there.name("source"))
    assert info and source.exists()
    assert info.modified_s is not None
    return info.modified_s


def test_small_files_that_are_swapped_as_fast_as_can_be(there: Site, here: Path, victim: Path) -> None:
    """Whatever has its final name in the end is right, or the copy says that it is not."""
    for i in range(300):
        there.write(f"{i}", f"content of {i}".encode())
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            for part in here.glob(".*.part"):
                try:
                    part.rename(here / "aside")
                    part.symlink_to(victim)
                except OSError:
                    continue

    attacker = threading.Thread(target=swap)
    attacker.start()
    try:
        report = mpx.copy(there.url, str(here), mpx.CopyOptions(recursive=True))
        failed: set[str] = set()
    except mpx.MpxError as error:
        assert error.report
        report = error.report
        failed = {entry["name"].rsplit("/", 1)[1] for entry in report.failures}
    finally:
        stop.set()
        attacker.join()
    for i in range(300):
        final = here / f"{i}"
        if f"{i}" not in failed:
            assert not final.is_symlink()
            assert final.read_bytes() == f"content of {i}".encode()
    assert is_untouched(victim)


FOLDERS = 40


@pytest.mark.parametrize("how", ["link", "folder"])
def test_folders_that_are_swapped_as_fast_as_can_be(
    there: Site, here: Path, tmp_path: Path, how: str
) -> None:
    """Nothing lands outside, and whatever is not at its place in the end was said not to be."""
    for i in range(FOLDERS):
        for j in range(5):
            there.write(f"d{i}/sub/{j}", f"content of {i} {j}".encode())
    (tmp_path / "outside/sub").mkdir(parents=True)
    stop = threading.Event()

    def swap() -> None:
        number = 0
        while not stop.is_set():
            for folder in here.glob("d*"):
                number += 1
                try:
                    folder.rename(here / f"was{number}")
                    if how == "link":
                        folder.symlink_to(tmp_path / "outside")
                    else:
                        (folder / "sub").mkdir(parents=True)
                except OSError:
                    continue

    attacker = threading.Thread(target=swap)
    attacker.start()
    try:
        report = mpx.copy(there.url, str(here), mpx.CopyOptions(recursive=True))
    except mpx.MpxError as error:
        assert error.report
        report = error.report
    finally:
        stop.set()
        attacker.join()
    assert not list((tmp_path / "outside/sub").iterdir())
    assert [each.name for each in (tmp_path / "outside").iterdir()] == ["sub"]
    kept = sum(len([*was.glob("sub/[0-9]"), *was.glob("[0-9]")]) for was in here.glob("[dw]*"))
    assert report.files.moved + report.files.resumed <= kept


def test_a_folder_that_is_swapped_for_a_link_while_a_file_is_copied(
    there: Site, here: Path, tmp_path: Path, eventually
) -> None:
    there.write("tree/sub/source", random_bytes(SIZE))
    (tmp_path / "work").mkdir()
    (tmp_path / "outside").mkdir()
    copy = Copy(tmp_path / "work", f"{there.url}tree", here / "tree", "-r", "--rate", RATE)
    eventually(lambda: (part := partial_in(here / "tree/sub")) and part.stat().st_size)
    (here / "tree/sub").rename(here / "aside")
    (here / "tree/sub").symlink_to(tmp_path / "outside")
    done = copy.end()
    assert done.code == 4, done
    assert "was replaced by a link or another folder" in done.stderr
    assert not list((tmp_path / "outside").iterdir())


def test_a_read_only_file_that_was_killed_before_it_got_its_name(there: Site, here: Path) -> None:
    """It has the mode of its source already, and its own account cannot open it for writing."""
    source = there.write("source", random_bytes(SIZE))
    source.chmod(0o444)
    report = mpx.copy(f"{there.url}source", str(here / "first"))
    journal = Journal(report.source, str(report.destination).replace("first", "out"))
    part = here / f".out.mpx-{journal.tag}.part"
    journal.begin(Unfinished(str(here / "out"), str(part), SIZE, mtime_as_listed(there, source)))
    journal.arrived(str(here / "out"), [(0, SIZE)])
    journal.close()
    part.write_bytes(source.read_bytes())
    part.chmod(0o444)
    ended = run("copy", f"{there.url}source", here / "out", "-v", ordinary=True)
    copied(ended)
    assert "of it by an earlier run" in ended.out
    assert (here / "out").read_bytes() == source.read_bytes()
    assert (here / "out").stat().st_mode & 0o777 == 0o444


def test_what_somebody_else_writes_behind_the_end_is_cut_off(
    there: Site, here: Path, tmp_path: Path, eventually
) -> None:
    """As another run of ours with another state folder may do."""
    source = there.write("source", random_bytes(SIZE))
    (tmp_path / "work").mkdir()
    copy = Copy(tmp_path / "work", f"{there.url}source", here / "out", "--rate", RATE)
    eventually(lambda: (part := partial_in(here)) and part.stat().st_size)
    part = partial_in(here)
    assert part
    os.truncate(part, 2 * SIZE)
    assert copy.end().code == 0
    assert (here / "out").read_bytes() == source.read_bytes()
