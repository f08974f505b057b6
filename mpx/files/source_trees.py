"""Folders that are read without following symbolic links below them, as another user may put one there.

Links in the name of the folder itself are followed: the user of mpx has named it.
"""

import errno
import os
import posixpath

_STEP = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC


class SourceTrees:
    """Opens names of this host for reading; safe for several threads once all folders are added."""

    def __init__(self) -> None:
        self._tops: set[str] = set()

    def add(self, name: str) -> None:
        """Follow no link below this folder."""
        self._tops.add(name.rstrip("/") or "/")

    def open(self, name: str, flags: int) -> int:
        """Open a name as os.open() does; raises OSError, also for a link below such a folder."""
        top, below = self._parts(name)
        if not below:
            return os.open(name, flags)
        here = os.open(top, _STEP)
        try:
            for folder in below[:-1]:
                step = os.open(folder, _STEP | os.O_NOFOLLOW, dir_fd=here)
                os.close(here)
                here = step
            return os.open(below[-1], flags | os.O_NOFOLLOW, dir_fd=here)
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.ENOTDIR):
                raise OSError(
                    error.errno,
                    "it, or a folder above it, was replaced by a symbolic link or something else after it "
                    "was listed; run the command again",
                ) from None
            raise
        finally:
            os.close(here)

    def _parts(self, name: str) -> tuple[str, list[str]]:
        """Return the folder below which no link is followed, and the names that lead on from there."""
        above, below = name.rstrip("/"), []
        while self._tops and above not in self._tops:
            above, base = posixpath.split(above)
            if not base:
                return name, []
            below.append(base)
        return above, below[::-1]


ANYWHERE = SourceTrees()  # links are followed
