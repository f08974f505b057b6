"""The served tree: every name is looked up beneath one directory and cannot lead out of it.

A name is walked component by component with openat() and O_NOFOLLOW, from a descriptor of the root, so that
neither `..` nor a link nor a rename at the wrong moment leads elsewhere; as far as no link is on the way the
kernel does the same in one call (beneath.py). Relative symbolic links are followed by the same walk as long
as they stay inside; an absolute link, and one that climbs out, is listed but never followed, unless the
whole file system is served. Nor is one in
the place of a partial file of mpx, as mpx makes none there. Only regular files are opened: a fifo would
block, a device acts.
"""

import errno
import os
import posixpath
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mpx.files.partial_file import rename_to_new
from mpx.files.partial_names import is_partial_name
from mpx.serve import beneath

_LONGEST_PATH = 4096
_MOST_HOPS = 40  # links, and steps upwards inside links, in one walk: as the kernel's own limit
_STEP = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_OPEN = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def join(directory: str, name: str) -> str:
    """Return the absolute, normal form of `name` as seen from `directory`; both within the tree."""
    if name in ("~", "/~") or name.startswith(("~/", "/~/")):
        name = "/" + name.lstrip("/")[1:]  # the login directory is the root
    return "/" + posixpath.normpath(posixpath.join(directory, name)).lstrip("/")


def _error(number: int, words: str | None = None) -> OSError:
    return OSError(number, words or os.strerror(number))


class Root:
    """A directory and the operations on names in it; all raise OSError. Safe to use from many threads.

    Names are absolute within the tree and normal (see `join`).
    """

    def __init__(self, directory: str | Path, *, within: "Root | None" = None) -> None:
        """`within`: `directory` is a name in that tree."""
        flags = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
        if within is None:
            self._fd = os.open(directory, flags)
        else:
            with within._parent(str(directory), follow=True) as (parent, name):
                self._fd = os.open(name, flags | os.O_NOFOLLOW, dir_fd=parent)
        try:
            found = os.stat(".", dir_fd=self._fd)  # O_PATH does not ask whether it may be entered
            self._is_everything = os.path.samestat(found, os.stat("/"))
        except OSError:
            self.close()
            raise

    def close(self) -> None:
        """Let go of the directory; every later call fails."""
        fd, self._fd = self._fd, -1
        os.close(fd)

    @contextmanager
    def _parent(self, path: str, follow: bool) -> Iterator[tuple[int, str]]:
        """Yield (descriptor of the directory, last name); the name is "." where the path is a directory
        reached without one, and is not a symbolic link if `follow` (unless it becomes one meanwhile).
        """
        if len(path) > _LONGEST_PATH:
            raise _error(errno.ENAMETOOLONG)
        ahead = [name for name in reversed(path.split("/")) if name]
        behind: list[str] = []  # the real directories from the root to `here`
        hops = 0
        here = os.dup(self._fd)
        try:
            while ahead:
                if beneath.IS_HAD:
                    step, names = beneath.descend(here, ahead[:0:-1])
                    if names:
                        os.close(here)
                        here = step
                        behind += names
                        del ahead[-len(names) :]
                name = ahead.pop()
                if name == "..":  # only links hold these; walk down again rather than open ".."
                    if not behind:
                        raise _error(errno.EACCES, "A symbolic link leads out of the served directory")
                    ahead += reversed(behind[:-1])
                    behind = []
                    os.close(here)
                    here = os.dup(self._fd)
                    hops += 1
                elif name != ".":
                    if ahead:
                        step, target = _entered(here, name)
                    else:
                        follow = follow and not is_partial_name(name)
                        step, target = -1, _link_target(here, name) if follow else None
                    if target is not None:
                        if target.startswith("/"):
                            if not self._is_everything:
                                raise _error(errno.EACCES, "An absolute symbolic link is not followed")
                            os.close(here)
                            here, behind = os.dup(self._fd), []
                        ahead += [part for part in reversed(target.split("/")) if part]
                        hops += 1
                    elif not ahead:
                        yield here, name
                        return
                    else:
                        os.close(here)
                        here = step
                        behind.append(name)
                if hops > _MOST_HOPS:
                    raise _error(errno.ELOOP)
            yield here, "."
        finally:
            os.close(here)

    # --- reading ---------------------------------------------------------------------------------

    def stat(self, path: str) -> os.stat_result:
        """Describe what `path` is, or leads to."""
        with self._parent(path, follow=True) as (parent, name):
            found = os.stat(name, dir_fd=parent, follow_symlinks=False)
        if stat.S_ISLNK(found.st_mode):
            raise _error(errno.ELOOP)
        return found

    def link_stat(self, path: str) -> tuple[os.stat_result, str | None]:
        """Describe `path` itself, and say where it points if it is a symbolic link."""
        with self._parent(path, follow=False) as (parent, name):
            return os.stat(name, dir_fd=parent, follow_symlinks=False), _link_target(parent, name)

    def open_file(self, path: str) -> int:
        """Open a regular file for reading; the caller closes the descriptor."""
        with self._parent(path, follow=True) as (parent, name):
            # Looked at before it is opened, since opening a device can act; and after, against a race.
            _must_be_file(os.stat(name, dir_fd=parent, follow_symlinks=False))
            return _checked(os.open(name, os.O_RDONLY | _OPEN, dir_fd=parent))

    def open_directory(self, path: str) -> int:
        """Open a directory for os.scandir; the caller closes the descriptor."""
        with self._parent(path, follow=True) as (parent, name):
            return os.open(name, os.O_RDONLY | os.O_DIRECTORY | _OPEN, dir_fd=parent)

    # --- changing --------------------------------------------------------------------------------

    def open_for_writing(self, path: str, *, create: bool, truncate: bool) -> int:
        """Open a regular file for writing, made if need be; the caller closes the descriptor."""
        with self._parent(path, follow=True) as (parent, name):
            try:
                _must_be_file(os.stat(name, dir_fd=parent, follow_symlinks=False))
            except FileNotFoundError:
                if not create:
                    raise
            flags = os.O_WRONLY | _OPEN | (os.O_CREAT if create else 0)
            fd = _checked(os.open(name, flags, 0o666, dir_fd=parent))
        if truncate:
            os.ftruncate(fd, 0)
        return fd

    def shrink(self, path: str, length: int) -> None:
        """Cut a regular file to `length` bytes; a shorter one stays as it is."""
        fd = self.open_for_writing(path, create=False, truncate=False)
        try:
            if os.fstat(fd).st_size > length:
                os.ftruncate(fd, length)
        finally:
            os.close(fd)

    def make_directory(self, path: str) -> None:
        """Make one directory."""
        with self._parent(path, follow=False) as (parent, name):
            if name == ".":
                raise _error(errno.EEXIST)
            os.mkdir(name, dir_fd=parent)

    def remove_directory(self, path: str) -> None:
        """Remove an empty directory."""
        with self._parent(path, follow=False) as (parent, name):
            os.rmdir(name, dir_fd=parent)

    def remove_file(self, path: str) -> None:
        """Remove a file or a symbolic link (the link, not what it points to)."""
        with self._parent(path, follow=False) as (parent, name):
            os.unlink(name, dir_fd=parent)

    def rename(self, old: str, new: str, *, replaces: bool = True) -> None:
        """Rename; what has the new name already is replaced, as rename() does, or FileExistsError is raised.

        A partial file of mpx is renamed only if it is a regular file.
        """
        with self._parent(old, follow=False) as (from_dir, from_name):
            if from_name == ".":
                raise _error(errno.EBUSY)
            is_partial = is_partial_name(from_name)
            if is_partial:
                _must_be_file(os.stat(from_name, dir_fd=from_dir, follow_symlinks=False))
            with self._parent(new, follow=False) as (to_dir, to_name):
                name_it = os.rename if replaces else rename_to_new
                name_it(from_name, to_name, src_dir_fd=from_dir, dst_dir_fd=to_dir)
                if is_partial and _link_target(to_dir, to_name) is not None:  # since a moment ago
                    os.unlink(to_name, dir_fd=to_dir)
                    raise _error(errno.EPERM, "Not a regular file")

    def set_mode(self, path: str, mode: int) -> None:
        """Set the permission bits; the others of a folder, as that new files get its group, stay."""
        with self._parent(path, follow=True) as (parent, name):
            fd = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
        try:
            found = os.fstat(fd).st_mode
            if stat.S_ISLNK(found):
                raise _error(errno.ELOOP)
            if stat.S_ISDIR(found):
                mode |= stat.S_IMODE(found) & ~0o777
            # fchmod() refuses such a descriptor; chmod() has no NOFOLLOW
            os.chmod(f"/proc/self/fd/{fd}", mode)
        finally:
            os.close(fd)

    def set_times(self, path: str, access_s: int, modification_s: int) -> None:
        """Set both times, in seconds since 1970 UTC."""
        with self._parent(path, follow=True) as (parent, name):
            os.utime(name, (access_s, modification_s), dir_fd=parent, follow_symlinks=False)


def _entered(parent: int, name: str) -> tuple[int, str | None]:
    """Return a descriptor of a directory; or none, and where it points, if it is a symbolic link."""
    try:
        return os.open(name, _STEP, dir_fd=parent), None
    except OSError as error:
        target = _link_target(parent, name) if error.errno == errno.ENOTDIR else None
        if target is None:
            raise
        return -1, target


def _link_target(parent: int, name: str) -> str | None:
    """Return where a symbolic link points, None for anything else and for what is not there."""
    try:
        return os.readlink(name, dir_fd=parent)
    except OSError as error:
        if error.errno in (errno.EINVAL, errno.ENOENT):
            return None
        raise


def _must_be_file(found: os.stat_result) -> None:
    if stat.S_ISDIR(found.st_mode):
        raise _error(errno.EISDIR)
    if not stat.S_ISREG(found.st_mode):
        raise _error(errno.EPERM, "Not a regular file")


def _checked(fd: int) -> int:
    try:
        _must_be_file(os.fstat(fd))
    except OSError:
        os.close(fd)
        raise
    return fd
