"""A shell at the other end of ssh that runs the script for checksums. For one thread at a time."""

import select
import time
from collections.abc import Callable

from mpx.endpoints.sftp import sums_script
from mpx.endpoints.ssh.process import CommandEnded, SshProcess
from mpx.errors import ConnectionLost, Interrupted, TransferTimeout

_STOP_INTERVAL_S = 0.2
_READ_BYTES = 65536
_LONGEST_NOISE_BYTES = 65536  # that a start-up file may print
_SLOWEST_BPS = 20e6 * 8  # at which a file is read there


class NoProgram(CommandEnded):
    """The account has no program that computes checksums."""


class SumsShell:
    """A running shell; `begin` comes first."""

    def __init__(self, process: SshProcess, timeout_s: float) -> None:
        """`timeout_s`: for how long nothing may come, beside the time that reading a file takes."""
        self.closed: Callable[[], None] = lambda: None  # is called once it has been closed
        self._process = process
        self._timeout_s = timeout_s
        self._heard = bytearray()
        self._is_closed = False

    @property
    def has_ended(self) -> bool:
        """Whether it can be used no longer."""
        return self._is_closed or self._process.has_ended

    def begin(self, wait_s: float, stop: Callable[[], bool]) -> None:
        """Wait until it is there; raises NoProgram, and as SshProcess.peek."""
        process, heard = self._process, b"\n"
        until_s = time.monotonic() + wait_s
        while True:
            coming = process.peek(until_s, wait_s, stop)
            process.socket.recv(len(coming))
            heard += coming
            lines = heard.split(b"\n")[:-1]
            if sums_script.READY in lines:
                break
            if sums_script.NONE in lines or len(heard) > _LONGEST_NOISE_BYTES:
                raise NoProgram(f"{process.host} has no program for checksums")
        process.socket.setblocking(False)

    def exchange(
        self,
        asked: bytes,
        size_bytes: int,
        is_end: Callable[[list[bytes]], bool],
        stop: Callable[[], bool],
    ) -> list[bytes]:
        """Send a request; return the lines of its answer, up to where `is_end` of those that have come.

        Between two of them at most `size_bytes` are read there. Raises ConnectionLost, TransferTimeout and
        AuthenticationError where the shell is lost, Interrupted: then its answers may be out of step.
        """
        process = self._process
        patience_s = self._timeout_s + size_bytes * 8 / _SLOWEST_BPS
        lines: list[bytes] = []
        unsent, moved_s = memoryview(asked), time.monotonic()
        poll = select.poll()
        while True:
            poll.register(process.socket, select.POLLIN | (select.POLLOUT if unsent else 0))
            events = poll.poll(1000 * _STOP_INTERVAL_S)
            if stop():
                raise Interrupted
            if not events:
                if time.monotonic() - moved_s > patience_s:
                    raise TransferTimeout(f"{process.host} computes no checksum for {patience_s:g} s")
                continue
            moved_s = time.monotonic()
            try:
                if events[0][1] & select.POLLOUT:
                    unsent = unsent[process.socket.send(unsent) :]
                if events[0][1] & ~select.POLLOUT:
                    got = process.socket.recv(_READ_BYTES)
                    if not got:
                        raise process.ended()
                    self._heard += got
            except BlockingIOError:
                continue
            except OSError:
                raise process.ended() from None
            *some, rest = self._heard.split(b"\n")
            if len(rest) > sums_script.LONGEST_LINE_BYTES:
                raise ConnectionLost(f"{process.host} says much where a checksum was asked for")
            self._heard = bytearray(rest)
            for line in some:
                lines.append(bytes(line))
                if is_end(lines):
                    return lines

    def close(self) -> None:
        """End it; closing twice is fine."""
        if self._is_closed:
            return
        self._is_closed = True
        self._process.close()
        self.closed()
