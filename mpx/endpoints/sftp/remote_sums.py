"""Checksums of files at the other end of ssh, by the program that the account there has for it.

SFTP has no question for it that servers answer. Where the account may run no programs, or has none for this,
files stay unverified.
"""

import select
import time
from collections.abc import Callable, Sequence
from functools import partial

from mpx.endpoints.sftp import sums_script, wire
from mpx.endpoints.sftp.lane_pool import LaneOptions, LanePool
from mpx.endpoints.ssh.process import SshProcess
from mpx.engine.endpoint import Part
from mpx.errors import (
    AuthenticationError,
    ConnectionLost,
    Interrupted,
    MpxError,
    NoChecksum,
    TransferTimeout,
)

_STOP_INTERVAL_S = 0.2
_READ_BYTES = 65536
_AT_ONCE = 200  # names, or parts, in one request
_SHORT_BYTES = 1024 * 1024  # files of no more are summed by one program for many
_LONGEST_NOISE_BYTES = 65536  # that a start-up file may print
_SLOWEST_BPS = 20e6 * 8  # at which a file is read there


def _are_as_many(wanted: int, lines: list[bytes]) -> bool:
    return len(lines) == wanted


class RemoteSums:
    """A shell at the other end: one of the pool, else begun when first asked for. For one thread."""

    ALGORITHM = "sha256"

    def __init__(self, pool: LanePool, options: LaneOptions) -> None:
        self._pool = pool
        self._login = pool.login
        self._options = options
        self._process: SshProcess | None = None
        self._heard = bytearray()
        self._is_there: bool | None = None  # None: not known yet

    @property
    def is_there(self) -> bool:
        """Whether checksums can be had; begins the shell. Raises Interrupted."""
        if self._is_there is None:
            try:
                self._begin()
                self._is_there = self._process is not None
            except (AuthenticationError, ConnectionLost, TransferTimeout):
                self._is_there = False
        return self._is_there

    @staticmethod
    def none(host: str, refusal: type[MpxError]) -> NoChecksum:
        """Return that there is no checksum."""
        return NoChecksum(refusal(f"{host} has no program that computes it, or runs none"))

    def of(
        self, parts: Sequence[Part], refusal: type[MpxError], stop: Callable[[], bool]
    ) -> list[str | Exception]:
        """Return the checksum of each part, or why there is none.

        Raises ConnectionLost, TransferTimeout and AuthenticationError where the shell is lost, Interrupted.
        """
        if self._is_there is False:
            return [self.none(self._login.name, refusal) for _ in parts]
        try:
            if self._process is None:
                self._begin()
            if self._process is None:
                return [self.none(self._login.name, refusal) for _ in parts]
            return self._asked(parts, refusal, stop)
        except BaseException:
            self._drop()
            raise

    def _begin(self) -> None:
        """Have a shell; it is left out where it has no program for checksums."""
        self._process = self._pool.take_shell()
        if self._process is not None:
            return
        process = SshProcess(self._login.shared(), sums_script.command(), self._login.name)
        wait_s, heard = self._options.connect_timeout_s, b"\n"
        until_s = time.monotonic() + wait_s
        try:
            while True:
                coming = process.peek(until_s, wait_s, self._options.stop)
                process.socket.recv(len(coming))
                heard += coming
                lines = heard.split(b"\n")
                if sums_script.READY in lines[:-1]:
                    break
                if sums_script.NONE in lines[:-1] or len(heard) > _LONGEST_NOISE_BYTES:
                    self._is_there = False
                    process.close()
                    return
        except BaseException:
            process.close()
            raise
        process.socket.setblocking(False)
        self._process = process

    def _asked(
        self, parts: Sequence[Part], refusal: type[MpxError], stop: Callable[[], bool]
    ) -> list[str | Exception]:
        names = [wire.encoded(part.name) for part in parts]
        sums: list[str | Exception | None] = [None] * len(parts)
        whole = [
            i
            for i, part in enumerate(parts)
            if part.is_whole and part.end <= _SHORT_BYTES and sums_script.is_usual(names[i])
        ]
        for first in range(0, len(whole), _AT_ONCE):
            some = whole[first : first + _AT_ONCE]
            size_bytes = sum(parts[i].end for i in some)
            asked = sums_script.whole_request(names[i] for i in some)
            lines = self._exchange(asked, size_bytes, lambda lines: lines[-1] == sums_script.END, stop)
            found = sums_script.parse_whole(lines)
            for i in some:
                sums[i] = found.get(sums_script.path(names[i]))
        single = sorted(set(range(len(parts))) - set(whole))
        for first in range(0, len(single), _AT_ONCE):
            some = single[first : first + _AT_ONCE]
            asked = b"".join(sums_script.part_request(names[i], parts[i].start, parts[i].end) for i in some)
            largest_bytes = max(parts[i].end for i in some)
            lines = self._exchange(asked, largest_bytes, partial(_are_as_many, len(some)), stop)
            for i, line in zip(some, lines, strict=True):
                sums[i] = sums_script.parse_part(line)
        return [
            self._unread(part, refusal) if each is None else each
            for part, each in zip(parts, sums, strict=True)
        ]

    def _unread(self, part: Part, refusal: type[MpxError]) -> MpxError:
        return refusal(f"{self._login.name} cannot read {part.name} for its checksum")

    def _exchange(
        self,
        asked: bytes,
        size_bytes: int,
        is_end: Callable[[list[bytes]], bool],
        stop: Callable[[], bool],
    ) -> list[bytes]:
        """Send a request; return the lines of its answer, up to where `is_end` of those that have come.

        Between two of them at most `size_bytes` are read there.
        """
        process = self._process
        assert process
        patience_s = self._options.timeout_s + size_bytes * 8 / _SLOWEST_BPS
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

    def _drop(self) -> None:
        """End the shell, whose answers may be out of step."""
        self._heard.clear()
        if self._process is not None:
            self._process.close()
            self._process = None

    def close(self) -> None:
        """Leave the shell to others; closing twice is fine."""
        process, self._process = self._process, None
        if process is not None:
            self._pool.give_back_shell(process)
