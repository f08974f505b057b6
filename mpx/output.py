"""Standard output and standard error of a command: what they cannot take does not end what it tells of.

A copy goes on when its output is full, closed, or its reader has gone. A command whose product is its output
(`mpx list`) ends there, with one line and exit code 1.
"""

import io
import os
import sys

from mpx.errors import MpxError

TYPE_CHECKING = False  # as in mpx/__init__.py
if TYPE_CHECKING:
    from typing import TextIO

    from _typeshed import ReadableBuffer


class OutputFailed(MpxError):
    """Standard output cannot be written."""

    exit_code = 1


class _Descriptor(io.RawIOBase):
    """An open descriptor; after its first error it takes everything and keeps nothing."""

    def __init__(self, descriptor: int, *, is_product: bool) -> None:
        self._descriptor = descriptor
        self._is_product = is_product
        self._failed = False

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._descriptor

    def isatty(self) -> bool:
        return os.isatty(self._descriptor)

    def write(self, data: "ReadableBuffer") -> int:
        view = memoryview(data).cast("B")
        if not self._failed:
            try:
                return os.write(self._descriptor, view)
            except OSError as error:
                self._failed = True
                if self._is_product and isinstance(error, BrokenPipeError):
                    raise
                if self._is_product:
                    raise OutputFailed(f"cannot write to standard output: {error.strerror}") from None
        return len(view)


def hold_standard_descriptors() -> None:
    """Open those of 0 to 2 that are closed on the null device, so that no file of ours gets their numbers."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free: this one


def protect(*, is_product: bool) -> None:
    """Have standard output and error drop what cannot be written; names are escaped where they must be.

    With `is_product` an error of standard output is raised once: OutputFailed, or BrokenPipeError where the
    reader has gone.
    """
    hold_standard_descriptors()
    sys.stdout = _text(1, sys.stdout, is_product=is_product)
    sys.stderr = _text(2, sys.stderr, is_product=False)


def _text(descriptor: int, before: "TextIO | None", *, is_product: bool) -> "TextIO":
    binary = io.BufferedWriter(_Descriptor(descriptor, is_product=is_product))
    return io.TextIOWrapper(
        binary,
        encoding=before.encoding if before else "utf-8",
        errors="backslashreplace",
        line_buffering=descriptor == 2 or os.isatty(descriptor),
    )
