"""A folder in memory that only this process and its children see, and that ends with them."""

import contextlib
import ctypes
import os
from collections.abc import Iterator
from pathlib import Path

from mpx.errors import MpxError

_CLONE_NEWNS = 0x00020000
_MS_REC_PRIVATE = 0x4000 | 0x40000


@contextlib.contextmanager
def private_memory(folder: Path) -> Iterator[Path]:
    """Mount memory on `folder`, in a mount namespace of this process; raises MpxError without root.

    What was stored goes with the last of the process and its children, however they end; so a child must not
    outlive it (`with_parent`). A kill leaves an empty folder at most.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    folder.mkdir(parents=True, exist_ok=True)
    try:
        _must(libc.unshare(_CLONE_NEWNS))
        _must(libc.mount(b"none", b"/", None, _MS_REC_PRIVATE, None))
        _must(libc.mount(b"tmpfs", os.fsencode(folder), b"tmpfs", 0, None))
        yield folder
    finally:
        libc.umount2(os.fsencode(folder), 2)  # lazily: a child may still have a file open
        with contextlib.suppress(OSError):
            folder.rmdir()


def _must(result: int) -> None:
    if result:
        number = ctypes.get_errno()
        raise MpxError(f"cannot mount a folder in memory: {os.strerror(number)}; run as root, like the lab")
