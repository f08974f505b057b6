"""Where the address space of a process is limited (`ulimit -v`, batch systems): threads reserve little of it.

A thread reserves 8 MiB for its stack, and with glibc 64 MiB or more for a heap of its own, and uses next to
nothing of either. Where addresses are counted, both count.
"""

import resource
import threading
from contextlib import suppress

_STACK_BYTES = 512 * 1024
_M_ARENA_MAX = -8  # malloc.h


def reserve_little() -> None:
    """Have threads from now on reserve little, if this process is limited at all."""
    if resource.getrlimit(resource.RLIMIT_AS)[0] == resource.RLIM_INFINITY:
        return
    import ctypes

    threading.stack_size(_STACK_BYTES)
    with suppress(AttributeError):  # not every C library has it
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, 1)
