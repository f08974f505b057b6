"""Packet sockets of another process: larger buffers than 90 frames, and the frames they dropped.

User-space Open vSwitch reads its ports from packet sockets with the kernel's default buffer, and has no
option for that. A burst of a sender in slow start overflows it, and frames would be lost where no emulated
queue is.
"""

import ctypes
import os
import socket
import struct
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

ROOM_BYTES = 32 << 20  # the kernel doubles it for its bookkeeping

_LIBC = ctypes.CDLL(None, use_errno=True)
_PIDFD_GETFD = 438  # the same number on every architecture
_SO_RCVBUFFORCE = 33
_SO_MEMINFO = 55
_MEMINFO = struct.Struct("9I")
_DROPS = 8  # the field of _MEMINFO that counts frames dropped since the socket was made


def give_room(pid: int) -> None:
    """Enlarge the buffers of a process; raises OSError, needs root."""
    for one in _packet_sockets(pid):
        one.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, ROOM_BYTES)


def lost(pid: int) -> int:
    """Return how many frames the sockets of a process had no room for; raises OSError, needs root."""
    counters = (one.getsockopt(socket.SOL_SOCKET, _SO_MEMINFO, _MEMINFO.size) for one in _packet_sockets(pid))
    return sum(_MEMINFO.unpack(one)[_DROPS] for one in counters)


def _packet_sockets(pid: int) -> Iterator[socket.socket]:
    process = os.pidfd_open(pid)
    try:
        for entry in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(FileNotFoundError):  # closed meanwhile
                if str(entry.readlink()).startswith("socket:"):
                    with _duplicate(process, int(entry.name)) as one:
                        if one.family == socket.AF_PACKET:
                            yield one
    finally:
        os.close(process)


def _duplicate(process: int, number: int) -> socket.socket:
    fd = _LIBC.syscall(_PIDFD_GETFD, process, number, 0)
    if fd < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error), f"file descriptor {number}")
    return socket.socket(fileno=fd)
