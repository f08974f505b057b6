"""What makes a finished file of this host safe: its length, its time and its mode."""

import os

from mpx.engine.endpoint import Commit
from mpx.engine.holes import lost_from
from mpx.engine.source_change import AGAIN
from mpx.errors import IntegrityError
from mpx.files.partial_file import PartialFile, umask
from mpx.report import OnNote


def settle_file(note: OnNote, file: Commit, written: PartialFile) -> None:
    """Make the bytes, the time and the mode of a finished file safe; raises OSError."""
    with written.opened() as fd:
        _fit(fd, file, note)
        # Set-user-id bits of another host mean nothing here; a server that tells no mode means the usual.
        mode = 0o666 & ~umask() if file.mode is None else file.mode & 0o777
        stamp_file(fd, file.modified_s, mode, note)
        os.fsync(fd)


def _fit(fd: int, file: Commit, note: OnNote) -> None:
    """Remove what another program wrote beyond the end of a file.

    Raises IntegrityError if another program truncated it, even while it was written; OSError.
    """
    if file.size_bytes is None:
        return
    checked_from = file.size_bytes if file.has_holes else 0
    if (lost := lost_from(fd, checked_from, file.size_bytes)) is not None:
        raise IntegrityError(
            f"{file.final}: its partial file {file.partial} was truncated by another program (from byte "
            f"{lost} of {file.size_bytes}); {AGAIN}"
        )
    if os.fstat(fd).st_size > file.size_bytes:
        note(f"{file.final}: another program wrote beyond the end of its partial file; that was cut off")
        os.ftruncate(fd, file.size_bytes)


def stamp_file(file: int | str, modified_s: float | None, mode: int | None, note: OnNote) -> None:
    """Give an open file its time and mode; what the file system does not allow is noted."""
    try:
        if mode is not None:
            os.chmod(file, mode)
    except OSError as error:
        note(f"modes are not kept everywhere: {error.strerror}")
    try:
        if modified_s is not None:
            os.utime(file, (modified_s, modified_s))
    except OSError as error:
        note(f"modification times are not kept everywhere: {error.strerror}")
    except OverflowError:
        note("modification times are not kept everywhere: some are outside what can be written here")
