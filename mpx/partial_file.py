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

    def __init__(self, name: str) -> None:
        self.name = name
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

    def commit(self, final: str) -> None:
        """Give the file its final name; raises OSError where another has, or gets, a name in its place."""
        self._check(os.lstat(self.name))
        Path(self.name).replace(final)
        try:
            found = os.lstat(final)
        except FileNotFoundError:
            return  # whoever waited for it has taken it away
        try:
            self._check(found)
        except OSError:
            if what_it_is_not(found):  # nobody is to take it for the file
                with contextlib.suppress(OSError):
                    Path(final).unlink()
            raise

    # --- inside, with the lock ----------------------------------------------------------------------------

    def _create(self) -> int:
        for left in reversed(range(_TRIES)):
            try:
                fd = os.open(self.name, os.O_RDWR | os.O_CREAT | os.O_EXCL | NEVER_FOLLOW, 0o600)
            except FileExistsError:
                if not left:
                    raise
                Path(self.name).unlink(missing_ok=True)
            else:
                found = os.fstat(fd)
                self._identity = found.st_dev, found.st_ino
                return fd
        raise AssertionError("unreachable")

    def _open(self) -> int:
        fd = open_ours(self.name)
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
                f"somebody has put another file in the place of its partial file {self.name}; "
                "copy to a folder that nobody else may write to",
            )

    def _shut(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None


def open_ours(name: str) -> int:
    """Open an existing file for reading and writing, if it is one that we can have made.

    Raises NotOurs where it is not, OSError.
    """
    try:
        fd = os.open(name, os.O_RDWR | NEVER_FOLLOW)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO, errno.EISDIR) and (
            reason := what_it_is_not(os.lstat(name))
        ):
            raise NotOurs(errno.EPERM, f"{name} {reason}") from None
        raise
    reason = what_it_is_not(os.fstat(fd), Path(name).parent)
    if reason:
        os.close(fd)
        raise NotOurs(errno.EPERM, f"{name} {reason}")
    return fd


def what_it_is_not(found: os.stat_result, folder: Path | None = None) -> str:
    """Say why a file cannot be one that this process has made; empty if it can.

    With `folder`, another owner counts unless new files in that folder have it too, as some network file
    systems give all files one owner.
    """
    if reason := not_a_plain_file(found):
        return reason
    if found.st_uid != os.geteuid() and (folder is None or found.st_uid != owner_of_new_files(folder)):
        return "belongs to somebody else"
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


def owner_of_new_files(folder: Path) -> int | None:
    """Return who owns what this process makes in a folder; None if it can make nothing there."""
    name = folder / f".mpx-owner-{os.getpid()}-{threading.get_ident()}"
    try:
        fd = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | NEVER_FOLLOW, 0o600)
    except OSError:
        return None
    try:
        return os.fstat(fd).st_uid
    finally:
        os.close(fd)
        with contextlib.suppress(OSError):
            name.unlink()


@cache
def umask() -> int:
    """Return the umask of this process; os.umask() could only tell by changing it for all threads."""
    found = re.search(r"^Umask:\s*([0-7]+)", Path("/proc/self/status").read_text(), re.MULTILINE)
    return int(found.group(1), 8) if found else 0o022
