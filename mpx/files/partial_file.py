"""A partial file of this host: the file that was opened first is the only one that is used until the end.

Others may be allowed to write to the folder that a copy goes to, and can put a symbolic link, a fifo or a
file of their own in the place of a partial file. So it is created and never found (O_EXCL, O_NOFOLLOW),
its descriptor stays open until the file is committed or given up, everything is written, read and set
through that descriptor, and a name counts only while it means the same inode.
"""

import contextlib
import errno
import os
import re
import resource
import stat
import threading
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from mpx.files.guarded_folders import LocalFolders, OpenFolder

NEVER_FOLLOW = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_TRIES = 3  # to create, against somebody who keeps putting something in the way


class NotOurs(OSError):
    """What has the name of a partial file cannot be a file that this process has made; says why."""


class _Budget:
    """How many descriptors may stay open that nobody uses just now: a quarter of what the process may have.

    A file beyond that is closed and opened again; what is then found must have the same device and inode.
    """

    def __init__(self) -> None:
        self._held = 0
        self._lock = threading.Lock()

    def take(self) -> bool:
        """Count one more, if there is room for it."""
        most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        with self._lock:
            if most != resource.RLIM_INFINITY and self._held >= most // 4:
                return False
            self._held += 1
            return True

    def give_back(self) -> None:
        """Count one less."""
        with self._lock:
            self._held -= 1


_BUDGET = _Budget()


class PartialFile:
    """One partial file, used by several threads at once. All methods raise OSError."""

    def __init__(self, name: str, folders: LocalFolders | None = None) -> None:
        """`folders`: those of the copy, in which the file's is looked for."""
        self.name = name
        self._folders = folders or LocalFolders()
        self._lock = threading.Lock()
        self._identity: tuple[int, int] | None = None  # device and inode, once opened
        self._fd: int | None = None
        self._users = 0
        self._is_held = False  # open without a user
        self._is_released = False

    def open(self, *, create: bool) -> int:
        """Return the descriptor, opened for reading and writing; `close` goes with each call.

        With `create` whatever has the name gives way to a new, empty file, unless this one was open before.
        """
        with self._lock:
            if self._fd is None:
                self._fd = self._create() if create and self._identity is None else self._open()
            self._users += 1
            if self._is_held:
                self._is_held = False
                _BUDGET.give_back()
            return self._fd

    def close(self) -> None:
        """Have one user less. The descriptor stays open until `release`, if there is room for it."""
        with self._lock:
            self._users -= 1
            if self._users == 0:
                if not self._is_released and _BUDGET.take():
                    self._is_held = True
                else:
                    self._shut()

    @contextlib.contextmanager
    def opened(self) -> Iterator[int]:
        """Use the descriptor of what is there in a `with` statement."""
        fd = self.open(create=False)
        try:
            yield fd
        finally:
            self.close()

    def release(self) -> None:
        """Keep the descriptor no longer than it is used: the file is committed or given up."""
        with self._lock:
            self._is_released = True
            if self._is_held:
                self._is_held = False
                _BUDGET.give_back()
                self._shut()

    def forget(self) -> None:
        """Begin anew: what was found under the name is removed, or to be replaced. Nobody may use it now."""
        with self._lock:
            if self._is_held:
                self._is_held = False
                _BUDGET.give_back()
            self._shut()
            self._identity = None

    def remove(self) -> None:
        """Remove it, if it is there."""
        folder, base = self._folders.place(self.name)
        self._check(os.stat(base, dir_fd=folder.fd, follow_symlinks=False))
        os.unlink(base, dir_fd=folder.fd)

    def commit(self, final: str, *, replaces: bool = True) -> None:
        """Give the file its final name; raises OSError where another has, or gets, a name in its place.

        `replaces`: what has the name; else FileExistsError is raised for that.
        """
        folder, base = self._folders.place(self.name)
        final_folder, final_base = self._folders.place(final)
        self._check(os.stat(base, dir_fd=folder.fd, follow_symlinks=False))
        name_it = os.replace if replaces else rename_to_new
        name_it(base, final_base, src_dir_fd=folder.fd, dst_dir_fd=final_folder.fd)
        try:
            found = os.stat(final_base, dir_fd=final_folder.fd, follow_symlinks=False)
        except FileNotFoundError:
            return  # whoever waited for it has taken it away
        try:
            self._check(found)
        except OSError:
            if why_not_ours(found):  # nobody is to take it for the file
                with contextlib.suppress(OSError):
                    os.unlink(final_base, dir_fd=final_folder.fd)
            raise

    # --- inside, with the lock ----------------------------------------------------------------------------

    def _create(self) -> int:
        folder, base = self._folders.place(self.name)
        for left in reversed(range(_TRIES)):
            try:
                fd = os.open(base, os.O_RDWR | os.O_CREAT | os.O_EXCL | NEVER_FOLLOW, 0o600, dir_fd=folder.fd)
            except FileExistsError:
                if not left:
                    raise
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(base, dir_fd=folder.fd)
            else:
                found = os.fstat(fd)
                self._identity = found.st_dev, found.st_ino
                return fd
        raise AssertionError("unreachable")

    def _open(self) -> int:
        fd = open_ours(self.name, self._folders)
        try:
            found = os.fstat(fd)
            if self._identity is not None:
                self._check(found)
            self._identity = found.st_dev, found.st_ino
        except OSError:
            os.close(fd)
            raise
        return fd

    def _check(self, found: os.stat_result) -> None:
        if self._identity != (found.st_dev, found.st_ino):
            raise OSError(
                errno.ESTALE,
                f"its partial file {self.name} was replaced by another file; copy to a folder that only you "
                "may write to",
            )

    def _shut(self) -> None:
        fd, self._fd = self._fd, None  # also where a network file system has an error to tell: it is closed
        if fd is not None:
            os.close(fd)


def open_ours(name: str, folders: LocalFolders) -> int:
    """Open an existing file for reading and writing, if it is one that we can have made.

    One that we may not write to has got its mode already, and was not renamed: it gets ours again. Raises
    NotOurs where it is not such a file, OSError.
    """
    folder, base = folders.place(name)
    try:
        fd = os.open(base, os.O_RDWR | NEVER_FOLLOW, dir_fd=folder.fd)
    except PermissionError:
        fd = _open_settled(name, folder, base)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO, errno.EISDIR):
            _check_ours(name, os.stat(base, dir_fd=folder.fd, follow_symlinks=False))
        raise
    try:
        _check_ours(name, os.fstat(fd), folder)
    except BaseException:
        os.close(fd)
        raise
    return fd


def _open_settled(name: str, folder: OpenFolder, base: str) -> int:
    held = os.open(base, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder.fd)
    try:
        _check_ours(name, os.fstat(held))
        os.chmod(f"/proc/self/fd/{held}", 0o600)  # fchmod() refuses such a descriptor
        return os.open(f"/proc/self/fd/{held}", os.O_RDWR | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    finally:
        os.close(held)


def _check_ours(name: str, found: os.stat_result, folder: OpenFolder | None = None) -> None:
    if reason := why_not_ours(found, folder.fd if folder else None):
        raise NotOurs(errno.EPERM, f"{name} {reason}")


def why_not_ours(found: os.stat_result, folder: int | None = None) -> str:
    """Say why a file cannot be one that this process has made; empty if it can.

    With `folder`, an open one, another owner counts unless new files in that folder have it too, as some
    network file systems give all files one owner.
    """
    if reason := not_a_plain_file(found):
        return reason
    if found.st_uid != os.geteuid() and (folder is None or found.st_uid != owner_of_new_files(folder)):
        return "belongs to another user"
    return ""


def not_a_plain_file(found: os.stat_result) -> str:
    """Say what keeps something from being a regular file with one name; empty if it is that."""
    if stat.S_ISLNK(found.st_mode):
        return "is not a regular file but a symbolic link"
    if not stat.S_ISREG(found.st_mode):
        return "is not a regular file"
    if found.st_nlink > 1:
        return "has another name too (a hard link)"
    return ""


def owner_of_new_files(folder: int) -> int | None:
    """Return who owns what this process makes in an open folder; None if it can make nothing there."""
    name = f".mpx-owner-{os.getpid()}-{threading.get_ident()}"
    try:
        fd = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | NEVER_FOLLOW, 0o600, dir_fd=folder)
    except OSError:
        return None
    try:
        return os.fstat(fd).st_uid
    finally:
        os.close(fd)
        with contextlib.suppress(OSError):
            os.unlink(name, dir_fd=folder)


@cache
def umask() -> int:
    """Return the umask of this process; os.umask() could only tell by changing it for all threads."""
    found = None
    with contextlib.suppress(OSError):  # where /proc is missing the usual one is taken
        found = re.search(r"^Umask:\s*([0-7]+)", Path("/proc/self/status").read_text(), re.MULTILINE)
    return int(found.group(1), 8) if found else 0o022


def rename_to_new(src: str, dst: str, *, src_dir_fd: int, dst_dir_fd: int) -> None:
    """Rename a file; raises FileExistsError where something has the name.

    Without hard links (FAT, say) what comes into being at the last moment is replaced all the same.
    """
    try:
        os.link(src, dst, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd, follow_symlinks=False)
    except FileExistsError:
        raise
    except OSError:
        with contextlib.suppress(FileNotFoundError):
            os.stat(dst, dir_fd=dst_dir_fd, follow_symlinks=False)
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST)) from None
        os.replace(src, dst, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)
    else:
        os.unlink(src, dir_fd=src_dir_fd)
