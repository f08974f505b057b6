"""The folders that a copy writes to on this host: each is the one that it was at first, whatever others do.

Others may be allowed to write in some folder of the destination, and can put a symbolic link in the place of
a folder below it. So the folders that the user has named are taken as they are when the copy begins, each
below them is opened without following a link, from the folder above it, and remembered by device and inode.
Files are made and renamed relative to an open folder, and a name that means another folder is an error.
"""

import errno
import os
import posixpath
import stat
import threading
from collections.abc import Iterable

_MOST_OPEN = 64  # folders that stay open; the others are opened again and compared
_FOLDER = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
_OURS = 0o700  # what the owner of a folder may do
Identity = tuple[int, int]  # device and inode


class OpenFolder:
    """A folder that is open for as long as somebody has this object; `fd` is for use as `dir_fd`."""

    def __init__(self, fd: int) -> None:
        self.fd = fd

    def __del__(self) -> None:
        os.close(self.fd)

    @property
    def identity(self) -> Identity:
        """What tells it from all others."""
        found = os.fstat(self.fd)
        return found.st_dev, found.st_ino


class LocalFolders:
    """The folders of one copy. Safe for several threads; all methods raise OSError.

    A folder of which nothing is known, nor of one above it, is opened as its name says.
    """

    def __init__(self) -> None:
        self._known: dict[str, Identity] = {}
        self._open: dict[str, OpenFolder] = {}  # the latest, in the order in which they were opened
        self._lock = threading.Lock()

    def close(self) -> None:
        """Close what stays open between uses, when the copy has ended."""
        with self._lock:
            self._open.clear()

    def anchor(self, names: Iterable[str]) -> None:
        """Take folders for good as they are now, wherever links lead.

        Of one that is missing, the nearest that holds it is taken.
        """
        for wanted in names:
            name = _tidy(wanted)
            while not os.path.isdir(name) and name != posixpath.dirname(name):
                name = posixpath.dirname(name)
            if name not in self._known:
                self._known[name] = OpenFolder(os.open(name, _FOLDER)).identity

    def knows(self, name: str) -> bool:
        """Tell whether it is known which folder a name has to mean."""
        return _tidy(name) in self._known

    def opened(self, name: str) -> OpenFolder:
        """Open a folder, never another than the name meant at first."""
        name = _tidy(name)
        with self._lock:
            if folder := self._open.get(name):
                return folder
        if known := self._known.get(name):
            folder = OpenFolder(os.open(name, _FOLDER))
            if folder.identity != known:
                raise _swapped(name)
        elif self._is_below_known(name):
            above, base = posixpath.split(name)
            folder = self._below(self.opened(above), name, base)
            self._known[name] = folder.identity
        else:
            return OpenFolder(os.open(name, _FOLDER))
        with self._lock:
            self._open[name] = folder
            if len(self._open) > _MOST_OPEN:
                del self._open[next(iter(self._open))]
        return folder

    def place(self, name: str) -> tuple[OpenFolder, str]:
        """Open the folder of a file; return it, and what the file is called in it."""
        above, slash, base = name.rpartition("/")
        return self._open.get(above) or self.opened(above or slash or "."), base

    def make(self, name: str, *, replace_link: bool) -> bool:
        """Make a folder, and those above it that are missing; return whether it is new.

        With `replace_link` a symbolic link in its place gives way, but never where it is known which folder
        the name has to mean, as of one that the user has named.
        """
        name = _tidy(name)
        above, base = posixpath.split(name)
        if not base or self.knows(name):
            self.opened(name)
            return False
        try:
            folder = self.opened(above)
        except FileNotFoundError:
            self.make(above, replace_link=replace_link)
            folder = self.opened(above)
        is_new = _make(folder, name, base, replace_link=replace_link)
        if self._is_below_known(name):
            self.opened(name)
        return is_new

    def check(self, name: str) -> None:
        """Raise OSError if a name means another folder than it meant at first."""
        name = _tidy(name)
        found, known = os.stat(name), self._known.get(name)
        if known and known != (found.st_dev, found.st_ino):
            raise _swapped(name)

    def _is_below_known(self, name: str) -> bool:
        while name not in self._known:
            above = posixpath.dirname(name)
            if above == name:
                return False
            name = above
        return True

    @staticmethod
    def _below(above: OpenFolder, name: str, base: str) -> OpenFolder:
        try:
            return OpenFolder(os.open(base, _FOLDER | os.O_NOFOLLOW, dir_fd=above.fd))
        except NotADirectoryError:
            if stat.S_ISLNK(os.stat(base, dir_fd=above.fd, follow_symlinks=False).st_mode):
                raise _swapped(name) from None
            raise


def _make(above: OpenFolder, name: str, base: str, *, replace_link: bool) -> bool:
    try:
        _make_ours(above, base)
    except FileExistsError:
        found = os.stat(base, dir_fd=above.fd, follow_symlinks=False)
        if stat.S_ISDIR(found.st_mode):
            return False
        if not stat.S_ISLNK(found.st_mode):
            raise
        if not replace_link:
            if os.path.isdir(name):
                return False
            raise
        os.unlink(base, dir_fd=above.fd)
        _make_ours(above, base)
    return True


def _make_ours(above: OpenFolder, base: str) -> None:
    """Make a folder in which we may do everything, also where the umask takes that away."""
    os.mkdir(base, dir_fd=above.fd)
    mode = stat.S_IMODE(os.stat(base, dir_fd=above.fd, follow_symlinks=False).st_mode)
    if mode & _OURS != _OURS:
        made = OpenFolder(os.open(base, _FOLDER | os.O_NOFOLLOW, dir_fd=above.fd))
        os.chmod(f"/proc/self/fd/{made.fd}", mode | _OURS)  # fchmod() refuses such a descriptor


def _tidy(name: str) -> str:
    return name.rstrip("/") or (name[:1] or ".")


def _swapped(name: str) -> OSError:
    return OSError(
        errno.ESTALE,
        f"the folder {name} was replaced by a link or another folder; "
        "copy to a folder that only you may write to",
    )
