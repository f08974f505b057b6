"""Small thread stacks and heaps, for processes whose address space is limited (`ulimit -v`, batch systems).

A thread reserves 8 MiB of addresses for its stack, and with glibc at least 64 MiB for its heap, and uses
hardly any of them. Such a limit counts reserved addresses.
"""

import resource
import threading
from contextlib import suppress

_STACK_BYTES = 512 * 1024
_M_ARENA_MAX = -8  # malloc.h


def reserve_little() -> None:
    """Make threads that start from now on reserve little, if the address space is limited."""
    if resource.getrlimit(resource.RLIMIT_AS)[0] == resource.RLIM_INFINITY:
        return
    import ctypes

    threading.stack_size(_STACK_BYTES)
    with suppress(AttributeError):  # not every C library has it
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, 1)
