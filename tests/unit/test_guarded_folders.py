"""Folders of a destination on this host: a name never means another folder than it meant at first."""

import errno
import os
import stat
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from unit.planted import a_link

import mpx
from mpx.endpoints.local.endpoint import LocalEndpoint
from mpx.engine.endpoint import Commit, Stamp
from mpx.errors import DestinationError
from mpx.files.guarded_folders import LocalFolders
from mpx.files.partial_file import PartialFile
from mpx.location import Location

TREE = mpx.CopyOptions(recursive=True)


@pytest.fixture
def top(tmp_path: Path) -> Path:
    (tmp_path / "top").mkdir()
    return tmp_path / "top"


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A folder that nothing may be written to."""
    (tmp_path / "outside").mkdir(mode=0o700)
    os.utime(tmp_path / "outside", (1e9, 1e9))
    return tmp_path / "outside"


def is_untouched(outside: Path) -> bool:
    status = outside.stat()
    return not list(outside.iterdir()) and (status.st_mode & 0o777, status.st_mtime) == (0o700, 1e9)


@pytest.fixture
def folders(top: Path) -> LocalFolders:
    folders = LocalFolders()
    folders.anchor([str(top)])
    for name in ("a", "a/b", "a/b/c"):
        assert folders.make(str(top / name), replace_link=True)
    return folders


def another_folder(folder: Path, _: Path) -> None:
    folder.mkdir()
    for below in ("b", "b/c", "c"):
        (folder / below).mkdir()


SWAPS = [a_link, another_folder]
Swap = Callable[[Path, Path], None]


def let_go(folders: LocalFolders) -> LocalFolders:
    """Have so many other folders used that none of the first is open any more."""
    top = next(iter(folders._known))
    for i in range(100):
        folders.make(f"{top}/other {i}", replace_link=True)
    return folders


@pytest.mark.parametrize("swap", SWAPS)
@pytest.mark.parametrize("where", ["a", "a/b", "a/b/c"])
def test_a_swapped_folder_is_an_error(
    folders: LocalFolders, top: Path, outside: Path, swap: Swap, where: str
) -> None:
    (top / where).rename(top / "aside")
    swap(top / where, outside)
    with pytest.raises(OSError, match=r"was replaced by a link or another folder|No such file"):
        folders.check(str(top / "a/b/c"))
    end = LocalEndpoint(Location("file", str(top)), writing=True, folders=let_go(folders))
    name = str(top / "a/b/c/file")
    with pytest.raises(OSError, match=r"was replaced by a link or another folder|No such file"):
        PartialFile(name, folders).open(create=True)
    (made,) = end.make_folders([str(top / "a/b/c/d")], replace_links=True)
    assert isinstance(made, DestinationError)
    with pytest.raises(DestinationError):
        end.make_link(name, "target")
    end.set_times([Stamp(str(top / "a/b/c"), 5.0, 0o777)], lambda _: None)
    end.unseal([str(top / "a/b/c")])
    assert is_untouched(outside)


@pytest.mark.parametrize("swap", SWAPS)
def test_a_folder_swapped_before_a_file_gets_its_name(
    folders: LocalFolders, top: Path, outside: Path, swap: Swap
) -> None:
    """What is open stays the folder that it was; that the name means another by now is an error."""
    end = LocalEndpoint(Location("file", str(top)), writing=True, folders=folders)
    file = PartialFile(str(top / "a/b/.f.part"), folders)
    os.write(file.open(create=True), b"content")
    file.close()
    (top / "a").rename(top / "aside")
    swap(top / "a", outside)
    (error,) = end.commit([Commit(file.name, str(top / "a/b/f"), 1.0, 0o644, file)], lambda _: None)
    assert isinstance(error, DestinationError)
    assert not (top / "a/b/f").exists()
    assert is_untouched(outside)


def test_what_is_removed_is_looked_for_in_the_same_folder(
    folders: LocalFolders, top: Path, outside: Path
) -> None:
    (outside / "file").touch()
    (top / "a/b").rename(top / "aside")
    (top / "a/b").symlink_to(outside)
    end = LocalEndpoint(Location("file", str(top)), writing=True, folders=let_go(folders))
    with pytest.raises(DestinationError):
        end.remove(str(top / "a/b/file"))
    assert (outside / "file").exists()


def test_a_link_that_was_there_before_gives_way_only_below_what_the_user_named(
    tmp_path: Path, outside: Path
) -> None:
    (tmp_path / "link").symlink_to(outside)
    folders = LocalFolders()
    folders.anchor([str(tmp_path / "link")])
    assert not folders.make(str(tmp_path / "link"), replace_link=False)
    assert folders.make(str(tmp_path / "link/below"), replace_link=True)
    assert (outside / "below").is_dir()
    (outside / "again").symlink_to(tmp_path)
    assert folders.make(str(tmp_path / "link/again"), replace_link=True)
    assert not (outside / "again").is_symlink()


def test_a_link_that_the_user_named_stays_whatever_becomes_of_its_target(
    tmp_path: Path, outside: Path
) -> None:
    link = tmp_path / "link"
    link.symlink_to(outside)
    folders = LocalFolders()
    folders.anchor([str(link)])
    assert not folders.make(str(link), replace_link=True)
    assert is_untouched(outside)
    outside.rename(tmp_path / "aside")
    folders.close()  # none is open any more
    for name in (link, link / "below"):
        with pytest.raises(FileNotFoundError):
            folders.make(str(name), replace_link=True)
    assert link.is_symlink()


def test_folders_that_are_missing_are_made_below_what_is_there(tmp_path: Path) -> None:
    folders = LocalFolders()
    folders.anchor([str(tmp_path / "x/y/z")])
    assert folders.make(str(tmp_path / "x/y/z"), replace_link=False)
    assert not folders.make(str(tmp_path / "x/y/z/"), replace_link=False)
    (tmp_path / "file").touch()
    with pytest.raises(FileExistsError):
        folders.make(str(tmp_path / "file"), replace_link=True)


def test_few_folders_stay_open(folders: LocalFolders) -> None:
    before = len(os.listdir("/proc/self/fd"))
    let_go(folders)
    assert len(os.listdir("/proc/self/fd")) <= before + 64


def test_many_threads_use_them_at_once(folders: LocalFolders, top: Path) -> None:
    failed: list[BaseException] = []

    def context(number: int) -> None:
        try:
            for i in range(200):
                name = str(top / f"{number} {i % 20}")
                folders.make(name, replace_link=True)
                place, base = folders.place(f"{name}/{i}")
                os.close(os.open(base, os.O_CREAT | os.O_WRONLY, dir_fd=place.fd))
        except OSError as error:
            failed.append(error)

    threads = [threading.Thread(target=context, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert sum(len(list(folder.iterdir())) for folder in top.glob("* *")) == 8 * 200


def files_of(top: Path, count: int) -> list[Commit]:
    files = []
    for i in range(count):
        partial = PartialFile(str(top / f".{i}.part"))
        os.write(partial.open(create=True), b"content")
        partial.close()
        files.append(Commit(partial.name, str(top / f"{i}"), 1e9 + i, 0o640, partial))
    return files


def test_files_get_their_names_where_no_thread_is_left(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    files = files_of(top, 20)
    monkeypatch.setattr(threading.Thread, "start", refused)
    end = LocalEndpoint(Location("file", str(top)), writing=True)
    assert end.commit(files, lambda _: None) == [None] * 20
    for i in range(20):
        status = (top / f"{i}").stat()
        assert (status.st_mode & 0o777, status.st_mtime, status.st_size) == (0o640, 1e9 + i, 7)


def test_a_folder_that_cannot_be_synced_is_told_where_a_disk_is_the_reason(
    top: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some file systems cannot sync any folder; what a disk says is an error of its files."""
    sync = os.fsync
    for code, is_error in ((errno.EINVAL, False), (errno.EIO, True)):

        def failing(fd: int, code: int = code) -> None:
            if stat.S_ISDIR(os.fstat(fd).st_mode):
                raise OSError(code, os.strerror(code))
            sync(fd)

        monkeypatch.setattr(os, "fsync", failing)
        end = LocalEndpoint(Location("file", str(top)), writing=True)
        (told,) = end.commit(files_of(top, 1), lambda _: None)
        assert isinstance(told, DestinationError) is is_error


def test_room_is_unknown_where_the_file_system_does_not_know(tmp_path: Path) -> None:
    end = LocalEndpoint(Location("file", str(tmp_path)), writing=True)
    assert end.free_bytes("/proc/none/x") is None
    assert end.free_bytes(str(tmp_path / "none" / "x"))
    assert end.free_bytes(str(tmp_path / ("x" * 300) / "x"))
