"""Files that appear under their name whole or not at all: what is written beside them replaces them."""

import contextlib
import errno
import os
import re
import secrets
import time
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from mpx.errors import UsageError
from mpx.files.open_descriptor import named_descriptor
from mpx.files.partial_file import PartialFile, not_a_plain_file, umask

_MARK_BYTES = 8  # by which names differ of what several runs write at once, on this host or others
_MARK = re.compile(f"[0-9a-f]{{{2 * _MARK_BYTES}}}")
_MOST_NAME_BYTES = 200  # of a name that may have 255 with what is put around it
_LEFT_S = 24 * 3600.0  # after which nobody writes to it any more; a file is written in seconds
_READER_WAIT_S = 10.0  # for somebody who reads a fifo
_AGAIN_S = 0.05


@contextlib.contextmanager
def whole(name: str) -> Iterator[BinaryIO]:
    """Yield a file to write, which replaces `name` at the end of `with`; raises UsageError if that fails.

    A name that is not a regular file (/dev/stdout, a fifo) is written to directly.
    """
    target = Path(name)
    with _written(name):
        if opened := _as_it_is(target):
            with opened as file:
                yield file
            return
        aside = PartialFile(_aside(target))
        fd = aside.open(create=True)
        try:
            _remove_left(Path(aside.name), _prefix(target))
            with os.fdopen(os.dup(fd), "wb") as file:
                yield file
            os.fchmod(fd, _mode(target))
            os.fsync(fd)
            aside.commit(name)
        except BaseException:
            _remove(Path(aside.name))
            raise
        finally:
            aside.close()
            aside.release()


def check_writable(name: str) -> None:
    """Raise UsageError if `whole` cannot write there; known before there is anything to write."""
    target = Path(name)
    with _written(name):
        if target.is_dir():
            raise IsADirectoryError(errno.EISDIR, "it is a folder")
        if named_descriptor(name) or (target.exists() and not target.is_file()):
            return
        aside = PartialFile(_aside(target))
        aside.open(create=True)
        _remove(Path(aside.name))
        aside.close()
        aside.release()


def _as_it_is(target: Path) -> BinaryIO | None:
    """Open what is no file to be replaced; None if it is one, or is not there."""
    open_file = named_descriptor(str(target))
    if open_file and open_file[0] == os.getpid():
        return os.fdopen(os.dup(open_file[1]), "wb")  # behind what was written there before
    if open_file or (target.exists() and not target.is_file()):
        return os.fdopen(_open_once_read(target), "wb")
    return None


def _open_once_read(target: Path) -> int:
    """Open a pipe or a device for writing, a pipe as soon as somebody reads it; raises OSError."""
    until_s = time.monotonic() + _READER_WAIT_S
    while True:
        try:
            fd = os.open(target, os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        except OSError as error:
            if error.errno != errno.ENXIO or not target.is_fifo():
                raise
            if time.monotonic() > until_s:
                raise OSError(errno.ENXIO, f"nobody has read it within {_READER_WAIT_S:g} s") from None
            time.sleep(_AGAIN_S)
        else:
            os.set_blocking(fd, True)
            return fd


def _mode(target: Path) -> int:
    """Return the mode that a file has, or a new one gets."""
    try:
        return target.stat().st_mode & 0o777
    except FileNotFoundError:
        return 0o666 & ~umask()


def _aside(target: Path) -> str:
    return str(target.with_name(_prefix(target) + secrets.token_hex(_MARK_BYTES)))


def _prefix(target: Path) -> str:
    return f".{os.fsencode(target.name)[:_MOST_NAME_BYTES].decode('utf-8', 'ignore')}."


def _remove_left(aside: Path, prefix: str) -> None:
    """Remove what runs of this account that were killed have left beside a new file; best effort.

    Whether such a run goes on cannot be known of another host that has the same folder, but by its age.
    """
    with contextlib.suppress(OSError):
        old_s = aside.stat().st_mtime - _LEFT_S  # by the clock of that file system
        for left in os.listdir(aside.parent):
            if left.startswith(prefix) and _MARK.fullmatch(left.removeprefix(prefix)):
                path = aside.with_name(left)
                found = path.lstat()
                if found.st_uid == os.geteuid() and not not_a_plain_file(found) and found.st_mtime < old_s:
                    _remove(path)


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink()


@contextlib.contextmanager
def _written(name: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UsageError(f"cannot write {name}: {error.strerror}") from None
