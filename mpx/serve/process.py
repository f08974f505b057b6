"""Settings of the whole process that only suit a program which does nothing but serve: `mpx serve`."""

import ctypes
import resource
import sys
import threading
from contextlib import suppress

_SWITCH_INTERVAL_S = 0.0002  # how long a thread that is busy lets another wait; Python's own is 5 ms
_STACK_BYTES = 1024 * 1024
_ARENAS = 2  # of the C heap: with many, what hundreds of threads had is never given back
_M_ARENA_MAX = -8  # malloc.h


def prepare() -> None:
    """Let many threads wait for each other briefly, and give back memory; have all descriptors we may."""
    sys.setswitchinterval(_SWITCH_INTERVAL_S)
    threading.stack_size(_STACK_BYTES)
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    with suppress(AttributeError):  # not every C library has it
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, _ARENAS)
