"""A real sftp-server whose answers are bent on their way: `python bent_sftp.py HOW PROGRAM`.

Stands for an ssh that has logged in; the packets of the client pass as they are, and are listened to.
"""

import os
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import BinaryIO

CLOSE, WRITE = 4, 6
STATUS, HANDLE, DATA, ATTRS, EXTENDED = 101, 102, 103, 105, 201
FAILURE, UNSUPPORTED = struct.pack(">I", 4), struct.pack(">I", 8)
MANY = 40_000  # bytes of data, beyond which a file is no small one

CLOSE_FAILS_ONCE = "BENT_CLOSE"  # names a file that is made by who has done it, and one to wait for
LONGEST_CLOSE_S = 3.0

Bend = Callable[[int, bytes], bytes | None]  # of a kind and the rest of a packet; None: the end

written: set[bytes] = set()  # handles
closing: set[bytes] = set()  # requests that close one of those


def heard(kind: int, rest: bytes) -> None:
    """Take note of a request."""
    number, field = rest[:4], rest[4:8] + rest[8 : 8 + int.from_bytes(rest[4:8], "big")]
    if kind == WRITE:
        written.add(field)
    elif kind == CLOSE and field in written:
        closing.add(number)


def close_fails(kind: int, rest: bytes) -> bytes:
    """One file cannot be stored, of all sessions, as it is closed; that takes until others have all of it."""
    if kind != STATUS or rest[:4] not in closing:
        return _packet(kind, rest)
    done, final = os.environ[CLOSE_FAILS_ONCE].split(":")
    try:
        os.close(os.open(done, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return _packet(kind, rest)
    until_s = time.monotonic() + LONGEST_CLOSE_S
    while not os.path.exists(final) and time.monotonic() < until_s:
        time.sleep(0.01)
    return _packet(kind, rest[:4] + FAILURE + rest[8:])


def wrong_number(kind: int, rest: bytes) -> bytes:
    return _packet(kind, struct.pack(">I", 987654321) + rest[4:] if kind == DATA else rest)


def no_limits(kind: int, rest: bytes) -> bytes:
    """It tells nothing that it was asked for by an extension: of limits, of free space."""
    return _packet(STATUS, rest[:4] + UNSUPPORTED) if kind == EXTENDED else _packet(kind, rest)


def wrong_kind(kind: int, rest: bytes) -> bytes:
    return _packet(HANDLE if kind == DATA else kind, rest)


def only_well(kind: int, rest: bytes) -> bytes:
    return _packet(STATUS, rest[:4] + bytes(4)) if kind == DATA else _packet(kind, rest)


def too_large(kind: int, rest: bytes) -> bytes:
    return struct.pack(">IB", 0x7FFFFFFF, kind) + rest if kind == DATA else _packet(kind, rest)


def short_data(kind: int, rest: bytes) -> bytes:
    """Less than was asked for each time, which a client has to put up with."""
    if kind != DATA:
        return _packet(kind, rest)
    (size,) = struct.unpack(">I", rest[4:8])
    some = max(1, size // 2)
    return _packet(kind, rest[:4] + struct.pack(">I", some) + rest[8 : 8 + some])


def no_data(kind: int, rest: bytes) -> bytes:
    return _packet(kind, rest[:4] + bytes(4)) if kind == DATA else _packet(kind, rest)


def more_data(kind: int, rest: bytes) -> bytes:
    if kind != DATA:
        return _packet(kind, rest)
    (size,) = struct.unpack(">I", rest[4:8])
    return _packet(kind, rest[:4] + struct.pack(">I", size + 9) + rest[8:] + bytes(9))


def cut_within_a_field(kind: int, rest: bytes) -> bytes:
    return _packet(kind, rest[:6]) if kind == DATA else _packet(kind, rest)


def ends(kind: int, rest: bytes) -> bytes | None:
    return None if kind == DATA else _packet(kind, rest)


def ends_within_a_packet(kind: int, rest: bytes) -> bytes | None:
    if kind == DATA:
        sys.stdout.buffer.write(_packet(kind, rest)[:-5])
        return None
    return _packet(kind, rest)


def longer(kind: int, rest: bytes) -> bytes:
    return _sized(kind, rest, 1000)


def shorter(kind: int, rest: bytes) -> bytes:
    return _sized(kind, rest, -1000)


def stored_shorter(kind: int, rest: bytes) -> bytes:
    return _sized(kind, rest, -1000)


def _sized(kind: int, rest: bytes, more: int) -> bytes:
    """Tell another size of files than they have."""
    if kind == ATTRS and rest[7] & 1:
        (size,) = struct.unpack(">Q", rest[8:16])
        if size > MANY:
            rest = rest[:8] + struct.pack(">Q", size + more) + rest[16:]
    return _packet(kind, rest)


def _packet(kind: int, rest: bytes) -> bytes:
    return struct.pack(">IB", len(rest) + 1, kind) + rest


def _packets(source: BinaryIO) -> Iterator[tuple[int, bytes]]:
    while len(head := source.read(5)) == 5:
        size, kind = struct.unpack(">IB", head)
        yield kind, source.read(size - 1)


def main(how: str, program: str) -> None:
    bend: Bend = globals()[how]
    with subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdin and server.stdout

        def ask() -> None:
            assert server.stdin
            for kind, rest in _packets(sys.stdin.buffer):
                heard(kind, rest)
                server.stdin.write(_packet(kind, rest))
                server.stdin.flush()
            server.stdin.close()

        threading.Thread(target=ask, daemon=True).start()
        for kind, rest in _packets(server.stdout):
            bent = bend(kind, rest)
            if bent is None:
                sys.stdout.buffer.flush()
                os._exit(0)
            sys.stdout.buffer.write(bent)
            sys.stdout.buffer.flush()
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
