"""Partial files of this host: what others put in their place is neither written, changed nor taken."""

import errno
import os
import resource
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from unit.planted import a_fifo, a_folder, a_hard_link, a_link

import mpx
from mpx.endpoints.local.endpoint import LocalEndpoint
from mpx.engine.endpoint import Commit, Stamp
from mpx.errors import DestinationError, IsThere
from mpx.files.guarded_folders import LocalFolders
from mpx.files.partial_file import NotOurs, PartialFile, open_ours
from mpx.location import Location
from mpx.report import no_note

PRIVATE = b"of somebody else"
CONTENT = b"what was copied"
LONG_AGO_S = 1_000_000_000


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    """A file that nothing may happen to."""
    (tmp_path / "private").mkdir()
    file = tmp_path / "private" / "victim"
    file.write_bytes(PRIVATE)
    file.chmod(0o600)
    os.utime(file, (LONG_AGO_S, LONG_AGO_S))
    return file


def state_of(file: Path) -> tuple[bytes, int, float]:
    status = file.stat()
    return file.read_bytes(), stat.S_IMODE(status.st_mode), status.st_mtime


UNTOUCHED = (PRIVATE, 0o600, float(LONG_AGO_S))


def a_file(name: Path, _: Path) -> None:
    name.write_bytes(b"of another")


def nothing(_: Path, __: Path) -> None:
    pass


SWAPS = [a_link, a_hard_link, a_fifo, a_folder, a_file, nothing]
Swap = Callable[[Path, Path], None]


def end() -> LocalEndpoint:
    return LocalEndpoint(Location("file", "/"), writing=True)


def commit(written: PartialFile, final: Path) -> Exception | None:
    (result,) = end().commit([Commit(written.name, str(final), 1.0, 0o666, written)], lambda _: None)
    return result


@pytest.fixture
def written(tmp_path: Path) -> PartialFile:
    """A partial file with its content, that nobody uses at the moment."""
    (tmp_path / "to").mkdir()
    file = PartialFile(str(tmp_path / "to" / ".out.part"))
    os.write(file.open(create=True), CONTENT)
    file.close()
    return file


@pytest.mark.parametrize("swap", SWAPS)
@pytest.mark.parametrize("is_held", [True, False], ids=["held open", "closed"])
def test_what_was_swapped_gets_no_final_name(
    tmp_path: Path, victim: Path, written: PartialFile, swap: Swap, is_held: bool
) -> None:
    final, name = tmp_path / "to" / "out", Path(written.name)
    final.write_bytes(b"before")
    if not is_held:
        written.release()
    name.rename(tmp_path / "to" / "aside")  # so that its inode cannot be used again
    swap(name, victim)
    assert isinstance(commit(written, final), DestinationError)
    assert final.read_bytes() == b"before"
    assert state_of(victim) == UNTOUCHED


@pytest.mark.parametrize("swap", [a_link, a_hard_link, a_fifo, a_file])
def test_what_is_swapped_at_the_last_moment_is_no_copy(
    tmp_path: Path, victim: Path, written: PartialFile, swap: Swap, monkeypatch: pytest.MonkeyPatch
) -> None:
    final, name = tmp_path / "to" / "out", Path(written.name)
    replace = os.replace

    def raced(source: str, target: str, **folders: int) -> None:
        monkeypatch.undo()
        name.rename(tmp_path / "to" / "aside")
        swap(name, victim)
        replace(source, target, **folders)

    monkeypatch.setattr(os, "replace", raced)
    assert isinstance(commit(written, final), DestinationError)
    assert swap is a_file or not os.path.lexists(final)
    assert state_of(victim) == UNTOUCHED


def test_who_takes_the_file_away_at_once_is_no_fault(
    tmp_path: Path, written: PartialFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program may wait for files to appear, and move them on."""
    replace = os.replace

    def waited_for(source: str, target: str, **folders: int) -> None:
        monkeypatch.undo()
        replace(source, target, **folders)
        (tmp_path / "to" / "out").rename(tmp_path / "taken")

    monkeypatch.setattr(os, "replace", waited_for)
    assert commit(written, tmp_path / "to" / "out") is None
    assert (tmp_path / "taken").read_bytes() == CONTENT


@pytest.mark.parametrize("swap", SWAPS)
@pytest.mark.parametrize("links", [True, False], ids=["links", "no hard links"])
def test_nothing_gives_way_where_nothing_is_to_be_replaced(
    swap: Swap,
    links: bool,
    tmp_path: Path,
    victim: Path,
    written: PartialFile,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    final = tmp_path / "to" / "out"
    swap(final, victim)
    before = os.path.lexists(final) and final.lstat()
    if not links:  # as on FAT

        def refuses(*_: object, **__: object) -> None:
            raise PermissionError(errno.EPERM, "no hard links")

        monkeypatch.setattr(os, "link", refuses)
    (error,) = end().commit([Commit(written.name, str(final), None, None, written, replaces=False)], no_note)
    assert isinstance(error, IsThere) == (swap is not nothing)
    assert before == (final.lstat() if swap is not nothing else False)
    assert os.path.lexists(written.name) == (swap is not nothing)
    assert swap is not nothing or final.read_bytes() == CONTENT
    assert state_of(victim) == UNTOUCHED


@pytest.mark.parametrize("swap", [a_link, a_hard_link, a_fifo, a_file])
def test_what_is_in_the_way_gives_way_to_a_new_file(tmp_path: Path, victim: Path, swap: Swap) -> None:
    name = tmp_path / ".out.part"
    swap(name, victim)
    file = PartialFile(str(name))
    os.write(file.open(create=True), CONTENT)
    file.close()
    assert commit(file, tmp_path / "out") is None
    assert (tmp_path / "out").read_bytes() == CONTENT
    assert state_of(victim) == UNTOUCHED


@pytest.mark.parametrize("swap", [a_link, a_hard_link, a_fifo, a_folder])
def test_what_an_earlier_run_cannot_have_left_is_not_continued(
    tmp_path: Path, victim: Path, swap: Swap
) -> None:
    name = tmp_path / ".out.part"
    swap(name, victim)
    with pytest.raises(NotOurs, match=r"not a regular file|another name"):
        PartialFile(str(name)).open(create=False)
    assert state_of(victim) == UNTOUCHED


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another account")
def test_a_file_of_another_account_is_not_continued(tmp_path: Path) -> None:
    name = tmp_path / ".out.part"
    name.write_bytes(CONTENT)
    os.chown(name, 65534, 65534)
    with pytest.raises(NotOurs, match="belongs to another user"):
        open_ours(str(name), LocalFolders())
    assert [each.name for each in tmp_path.iterdir()] == [".out.part"]


def test_one_file_for_all_who_use_it(tmp_path: Path) -> None:
    file = PartialFile(str(tmp_path / ".out.part"))
    fd = file.open(create=True)
    assert file.open(create=True) == fd
    file.close()
    file.close()
    assert os.fstat(fd).st_nlink == 1  # it stays open
    file.release()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(fd)


def test_a_file_begun_anew_is_another_one(tmp_path: Path) -> None:
    file = PartialFile(str(tmp_path / ".out.part"))
    os.write(file.open(create=True), b"before")
    file.close()
    Path(file.name).unlink()
    file.forget()
    os.write(file.open(create=True), CONTENT)
    file.close()
    assert commit(file, tmp_path / "out") is None
    assert (tmp_path / "out").read_bytes() == CONTENT


FEW_DESCRIPTORS = """
import os, resource, sys
from mpx.engine.endpoint import Commit
from mpx.endpoints.local.endpoint import LocalEndpoint
from mpx.files.guarded_folders import LocalFolders
from mpx.location import Location
from mpx.report import no_note
from mpx.files.partial_file import PartialFile

resource.setrlimit(resource.RLIMIT_NOFILE, (80, 80))
files = [PartialFile(f"{sys.argv[1]}/.{i}.part") for i in range(100)]
for file in files:
    os.write(file.open(create=True), file.name.encode())
    file.close()
end = LocalEndpoint(Location("file", sys.argv[1]), writing=True)
commits = [Commit(file.name, file.name + ".final", 1.0, 0o600, file) for file in files]
assert end.commit(commits, lambda _: None) == [None] * len(files)
"""


def test_few_descriptors_do_for_many_files(tmp_path: Path) -> None:
    """In a process of its own, which has no other descriptors."""
    done = subprocess.run(
        [sys.executable, "-c", FEW_DESCRIPTORS, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    finals = [tmp_path / f".{i}.part.final" for i in range(100)]
    assert [final.read_text() for final in finals] == [str(final).removesuffix(".final") for final in finals]


def test_times_and_mode_of_a_folder_do_not_go_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to("folder")
    noted: list[str] = []
    end().set_times([Stamp(str(tmp_path / "link"), 1.0, 0o777)], noted.append)
    assert (tmp_path / "folder").stat().st_mode & 0o777 == 0o700
    assert noted
    end().set_times([Stamp(str(tmp_path / "link"), 1.0, 0o777, follow=True)], noted.append)
    assert (tmp_path / "folder").stat().st_mode & 0o777 == 0o777


def test_a_descriptor_is_closed_once_whatever_that_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some network file systems tell of a full disk only then; the number is that of another file soon."""
    close = os.close

    def telling(fd: int) -> None:
        close(fd)
        raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))

    partial = PartialFile(str(tmp_path / ".part"))
    partial.open(create=True)
    partial.release()
    with monkeypatch.context() as patched:
        patched.setattr(os, "close", telling)
        with pytest.raises(OSError, match=os.strerror(errno.EDQUOT)):
            partial.close()
    others = [os.open(tmp_path / f"{i}", os.O_RDWR | os.O_CREAT) for i in range(8)]
    partial.forget()
    for other in others:
        os.fstat(other)
        os.close(other)


def test_a_disk_that_is_full_when_a_file_is_closed_is_said_of_the_destination(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (0, 0))  # no file stays open between uses
    close = os.close

    def telling(fd: int) -> None:
        is_partial = os.readlink(f"/proc/self/fd/{fd}").endswith(".part")
        close(fd)
        if is_partial:
            raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))

    (tmp_path / "source").write_bytes(CONTENT)
    monkeypatch.setattr(os, "close", telling)
    with pytest.raises(mpx.NoSpace, match=f"no space for {tmp_path}/copy"):
        mpx.copy(str(tmp_path / "source"), str(tmp_path / "copy"))
    assert not (tmp_path / "copy").exists()
