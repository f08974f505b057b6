"""A folder for sockets that only this account may reach. Imports little, unlike tempfile.

It is locked as long as its process lives. Who makes another one removes those of the same kind that no
process holds any more, as they were killed: only folders of this account that nobody else could enter, and
that were made under this kernel, as others may share the file system and not know of its locks.
"""

import contextlib
import fcntl
import os
import stat

_LONGEST = 60  # characters of what it is in: names of sockets have 107 at most
_OPENED = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_ONLY_OURS = 0o700
_TRIES = 3  # as who tidies up may find one before it is locked
_KERNEL, _KERNEL_DIGITS = "/proc/sys/kernel/random/boot_id", 6


class SocketFolder:
    """One that exists until `remove`; `path` has no blanks but those of what it is in."""

    def __init__(self, path: str, fd: int) -> None:
        """`fd`: the folder, locked."""
        self.path = path
        self._fd = fd

    def remove(self) -> None:
        """Remove it with the sockets in it; not twice."""
        _empty(self.path, self._fd)
        os.close(self._fd)


def new_socket_folder(prefix: str) -> "SocketFolder | None":
    """Make one below TMPDIR, or in /tmp; None where neither takes it."""
    kernel = _kernel()
    ours = f"{prefix}{kernel}-"
    for place in (os.environ.get("TMPDIR", ""), "/tmp"):
        if not place.startswith("/") or len(place) > _LONGEST:
            continue
        if kernel:
            _remove_left(place, ours)
        for _ in range(_TRIES):
            path = f"{place}/{ours}{os.urandom(4).hex()}"
            with contextlib.suppress(OSError):
                os.mkdir(path, _ONLY_OURS)
                if (fd := _locked(path)) is not None:
                    return SocketFolder(path, fd)
    return None


def _kernel() -> str:
    """Return what tells this kernel, since it was started, from others; nothing where it does not say."""
    try:
        fd = os.open(_KERNEL, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return ""
    told = os.read(fd, _KERNEL_DIGITS).decode("ascii", "replace")
    os.close(fd)
    return told


def _locked(path: str) -> "int | None":
    """Open and lock a folder; None where that is held, removed, or none of ours. Raises OSError."""
    fd = os.open(path, _OPENED)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        found = os.fstat(fd)
        is_ours = found.st_uid == os.geteuid() and stat.S_IMODE(found.st_mode) == _ONLY_OURS
        if is_ours and found.st_nlink:
            return fd
    except OSError:  # held
        pass
    os.close(fd)
    return None


def _remove_left(place: str, prefix: str) -> None:
    """Remove what processes have left that were killed."""
    with contextlib.suppress(OSError), os.scandir(place) as entries:
        for entry in entries:
            if not entry.name.startswith(prefix):
                continue
            with contextlib.suppress(OSError):
                if (fd := _locked(entry.path)) is not None:
                    _empty(entry.path, fd)
                    os.close(fd)


def _empty(path: str, fd: int) -> None:
    """Remove a folder and the sockets in it, and nothing else that it may have."""
    with contextlib.suppress(OSError):
        for name in os.listdir(fd):
            if stat.S_ISSOCK(os.stat(name, dir_fd=fd, follow_symlinks=False).st_mode):
                os.unlink(name, dir_fd=fd)
        os.rmdir(path)
