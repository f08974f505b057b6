"""Standard output and standard error of a command: what they cannot take does not end what it tells of.

A copy goes on when its output is full, closed, not read, or its reader has gone. A command whose product is
its output (`mpx list`) waits for its reader, and ends where it cannot write, with one line and exit code 1.
"""

import io
import os
import select
import sys
import time

from mpx.errors import MpxError
from mpx.files.standard_descriptors import hold_standard_descriptors
from mpx.text import shown

TYPE_CHECKING = False  # as in mpx/__init__.py
if TYPE_CHECKING:
    from typing import TextIO

    from _typeshed import ReadableBuffer

_STDERR_PATIENCE_S, _STDOUT_PATIENCE_S = 1.0, 5.0  # with a reader who does not read, as a stopped one
_AGAIN_S = 0.01


class OutputFailed(MpxError):
    """Standard output cannot be written."""

    exit_code = 1


class _Descriptor(io.RawIOBase):
    """An open descriptor; after its first error it takes everything and keeps nothing.

    What is not taken within `patience_s` (None: it waits) is dropped, as is what follows until it is read.
    """

    def __init__(self, descriptor: int, *, is_product: bool, patience_s: float | None) -> None:
        self._descriptor = descriptor
        self._is_product = is_product
        self._patience_s = patience_s
        self._failed = False
        self._stalled = False
        self._to = descriptor if patience_s is None else _that_never_waits(descriptor)

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._descriptor

    def isatty(self) -> bool:
        return os.isatty(self._descriptor)

    def write(self, data: "ReadableBuffer") -> int:
        view = memoryview(data).cast("B")
        if self._failed:
            return len(view)
        try:
            return self._write(view)
        except OSError as error:
            self._failed = True
            if self._is_product and isinstance(error, BrokenPipeError):
                raise
            if self._is_product:
                raise OutputFailed(f"cannot write to standard output: {error.strerror}") from None
            return len(view)

    def _write(self, view: memoryview) -> int:
        poll = select.poll()
        poll.register(self._to, select.POLLOUT)
        patience_s = 0 if self._stalled else self._patience_s
        while poll.poll(None if patience_s is None else patience_s * 1000):
            self._stalled = False
            try:
                return os.write(self._to, view[: select.PIPE_BUF])  # for which a pipe has room by now
            except BlockingIOError:  # whoever called has it so, and somebody else was faster
                time.sleep(_AGAIN_S)
        self._stalled = True
        return len(view)


def _that_never_waits(descriptor: int) -> int:
    """Open a terminal anew, as one that has room for a byte waits with a line; else return the same."""
    if os.isatty(descriptor):
        try:
            flags = os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
            return os.open(f"/proc/self/fd/{descriptor}", flags)
        except OSError:  # a terminal of another user
            pass
    return descriptor


def protect(*, is_product: bool, waits: bool) -> None:
    """Have standard output and error drop what cannot be written; names are escaped where they must be.

    With `is_product` an error of standard output is raised once: OutputFailed, or BrokenPipeError where the
    reader has gone. `waits`: who does not read is waited for, however long.
    """
    hold_standard_descriptors()
    sys.stdout = _text(1, sys.stdout, is_product=is_product, patience_s=None if waits else _STDOUT_PATIENCE_S)
    sys.stderr = _text(2, sys.stderr, is_product=False, patience_s=None if waits else _STDERR_PATIENCE_S)


def _text(
    descriptor: int, before: "TextIO | None", *, is_product: bool, patience_s: float | None
) -> "TextIO":
    binary = io.BufferedWriter(_Descriptor(descriptor, is_product=is_product, patience_s=patience_s))
    return io.TextIOWrapper(
        binary,
        encoding=before.encoding if before else "utf-8",
        errors="backslashreplace",
        line_buffering=descriptor == 2 or os.isatty(descriptor),
    )


def complain(message: str) -> None:
    """Print one line on stderr."""
    line = " ".join(part.strip() for part in message.splitlines() if part.strip())
    print(f"mpx: {shown(line)}", file=sys.stderr)
