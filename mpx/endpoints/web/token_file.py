"""A file that holds a bearer token: who may own and read it. Tools renew it, so it is read time and again."""

import errno
import os
import stat
from collections.abc import Callable

from mpx.errors import AuthenticationError
from mpx.text import named

LARGEST_BYTES = 64 * 1024  # of a token
_RENEWED_WITHIN_S = 60.0  # a shell has emptied the file before a tool prints the next token into it
_KEPT_S = 1.0  # what was read; comparing times of the file costs as much, and misses what comes in one tick


class TokenFile:
    """One file, which may not be there yet. Belongs to a BearerTokens, whose lock guards it.

    `in_the_open`: it is in a folder where everybody may create it, as /tmp. No link is followed there, and
    what belongs to another user is taken for absent.
    """

    def __init__(self, path: str, clock: Callable[[], float], *, in_the_open: bool = False) -> None:
        """`clock`: seconds, as time.monotonic()."""
        self._path, self._clock, self._in_the_open = path, clock, in_the_open
        self._read_s: float | None = None
        self._text, self._problem = "", ""
        self._emptied_s: float | None = None  # when it was found empty that had held one

    def text(self) -> str:
        """Return what it holds, trimmed; empty where there is nothing, or no such file.

        While a file is empty that held a token before, it is being renewed: that token is returned.

        Raises AuthenticationError for a file that cannot be read, or is not ours alone.
        """
        now_s = self._clock()
        if self._read_s is None or now_s - self._read_s >= _KEPT_S:
            held, self._read_s, self._text, self._problem = self._text, now_s, "", ""
            if not (self._read() and held):
                self._emptied_s = None
            else:
                self._emptied_s = now_s if self._emptied_s is None else self._emptied_s
                self._text = held if now_s - self._emptied_s < _RENEWED_WITHIN_S else ""
        if self._problem:
            raise AuthenticationError(self._problem)
        return self._text

    def look_again(self) -> None:
        """Have it read when it is asked for next, however short it is since it was."""
        self._read_s = None

    def _read(self) -> bool:
        """Read it; tell whether there is one that holds nothing at all."""
        flags, absent = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK, [errno.ENOENT, errno.ENOTDIR]
        if self._in_the_open:
            flags |= os.O_NOFOLLOW
            absent += [errno.ELOOP, errno.EACCES]
        try:
            fd = os.open(self._path, flags)
            try:
                return self._read_from(fd)
            finally:
                os.close(fd)
        except OSError as error:
            if error.errno not in absent:
                self._problem = f"cannot read the token in {named(self._path)}: {error.strerror}"
            return False

    def _read_from(self, fd: int) -> bool:
        about, name = os.fstat(fd), named(self._path)
        is_ours, mode = about.st_uid == os.geteuid(), stat.S_IMODE(about.st_mode)
        if self._in_the_open and not is_ours:
            return False
        if not stat.S_ISREG(about.st_mode):
            self._problem = f"cannot read the token in {name}: not a regular file"
        elif not is_ours or mode & 0o077:
            todo = f"chmod 600 {name}" if is_ours else "name a file of your own, with mode 0600"
            self._problem = (
                f"{name} holds a token and is not yours alone (owner {about.st_uid}, mode {mode:04o}); {todo}"
            )
        else:
            with open(fd, "rb", closefd=False) as file:
                content = file.read(LARGEST_BYTES + 1)
            text = content.decode("ascii", "surrogateescape")
            # What is too long stays so, for who checks that it is a token: trimmed, it might be part of one.
            self._text = text if len(content) > LARGEST_BYTES else text.strip()
            return not content
        return False
