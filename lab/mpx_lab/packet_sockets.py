"""Give the packet sockets of another process, which it has no option for, room for more than 90 frames.

User-space Open vSwitch reads its ports from packet sockets with the kernel's default buffer. A burst of a
sender in slow start overflows it, and frames would be lost where no emulated queue is.
"""

import ctypes
import os
import socket
from contextlib import suppress
from pathlib import Path

ROOM_BYTES = 32 << 20  # the kernel doubles it for its own accounts

_LIBC = ctypes.CDLL(None, use_errno=True)
_PIDFD_GETFD = 438  # the same number on every architecture
_SO_RCVBUFFORCE = 33


def give_room(pid: int) -> int:
    """Enlarge all packet sockets of a process and return how many there are; raises OSError, needs root."""
    count = 0
    process = os.pidfd_open(pid)
    try:
        for entry in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(FileNotFoundError):  # closed meanwhile
                if str(entry.readlink()).startswith("socket:"):
                    count += _give_room(process, int(entry.name))
    finally:
        os.close(process)
    return count


def _give_room(process: int, number: int) -> bool:
    fd = _LIBC.syscall(_PIDFD_GETFD, process, number, 0)
    if fd < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error), f"file descriptor {number}")
    with socket.socket(fileno=fd) as one:
        if one.family != socket.AF_PACKET:
            return False
        one.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, ROOM_BYTES)
        return True
