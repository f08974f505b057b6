"""Opens a directory many levels down in one call, where the kernel can promise that no link is on the way.

That is openat2() of Linux 5.6; Python has no function for it. Elsewhere, and where a sandbox forbids it,
paths are walked name by name (root.py), which takes far longer for one of 2,000 names.
"""

import ctypes
import errno
import os
from collections.abc import Sequence
from itertools import takewhile

_NUMBER = 437  # of the call; the same on all processors
_NO_SYMLINKS, _BENEATH = 0x04, 0x08  # linux/openat2.h
_NOT_SO_FAR = (errno.ELOOP, errno.ENAMETOOLONG)  # a link, or too much for one call
_DOTS = (".", "..")


class _How(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


_HOW = _How(os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC, 0, _NO_SYMLINKS | _BENEATH)
_syscall = ctypes.CDLL(None, use_errno=True).syscall
_syscall.argtypes = (
    ctypes.c_long,
    ctypes.c_int,
    ctypes.c_char_p,
    ctypes.POINTER(_How),
    ctypes.c_size_t,
)
_syscall.restype = ctypes.c_long


def descend(start: int, ahead: Sequence[str]) -> tuple[int, Sequence[str]]:
    """Return a descriptor of a directory below `start`, and the names, the first of `ahead`, that lead there.

    There are none, and no descriptor, if not even two can be had at once: a link may be near. Raises OSError
    where a directory is not there, is none, or may not be entered.
    """
    names = list(takewhile(lambda name: name not in _DOTS, ahead))
    while len(names) > 1:
        path = os.fsencode("/".join(names))
        if b"\0" in path:  # it would be cut off there
            break
        fd = _syscall(_NUMBER, start, path, _HOW, ctypes.sizeof(_HOW))
        if fd >= 0:
            return fd, names
        number = ctypes.get_errno()
        if number not in _NOT_SO_FAR:
            raise OSError(number, os.strerror(number))
        del names[len(names) // 2 :]
    return -1, []


def _is_had() -> bool:
    root = os.open("/", os.O_PATH | os.O_CLOEXEC)
    try:
        fd: int = _syscall(_NUMBER, root, b".", _HOW, ctypes.sizeof(_HOW))
    finally:
        os.close(root)
    if fd >= 0:
        os.close(fd)
    return fd >= 0


IS_HAD = _is_had()
