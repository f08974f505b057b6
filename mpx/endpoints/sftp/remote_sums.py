"""Checksums of files at the other end of ssh, by the program that the account there has for it.

SFTP has no question for it that servers answer. Where the account may run no programs, or has none for this,
files stay unverified.
"""

import posixpath
from collections.abc import Callable, Sequence
from functools import partial

from mpx.endpoints.sftp import sums_script, wire
from mpx.endpoints.sftp.lane_pool import LanePool
from mpx.endpoints.sftp.lanes import LaneOptions
from mpx.endpoints.sftp.sums_shell import SumsShell
from mpx.endpoints.ssh.process import CommandEnded
from mpx.engine.endpoint import Part
from mpx.errors import AuthenticationError, ConnectionLost, MpxError, NoChecksum, TransferTimeout

_AT_ONCE = 200  # names, or parts, in one request
_SHORT_BYTES = 1024 * 1024  # files of no more are summed by one program for many


def _are_as_many(wanted: int, lines: list[bytes]) -> bool:
    return len(lines) == wanted


class RemoteSums:
    """Takes a shell of the pool while it computes, and holds none in between. For one thread."""

    ALGORITHM = "sha256"

    def __init__(self, pool: LanePool, options: LaneOptions, let_go: Callable[[], None]) -> None:
        """`let_go` lets others have the session that the caller has, of which a shell may take the place."""
        self._pool = pool
        self._options = options
        self._let_go = let_go
        self._is_there: bool | None = None  # None: not known yet

    @property
    def is_there(self) -> bool:
        """Whether checksums can be had; begins a shell. Raises Interrupted."""
        if self._is_there is None:
            try:
                self._pool.give_back(self._shell())
                self._is_there = True
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
        host = self._pool.name
        if self._is_there is False:
            return [self.none(host, refusal) for _ in parts]
        try:
            shell = self._shell()
        except CommandEnded:
            self._is_there = False
            return [self.none(host, refusal) for _ in parts]
        try:
            sums = self._asked(shell, parts, stop)
        except BaseException:
            shell.close()  # its answers may be out of step
            raise
        self._pool.give_back(shell)
        return [
            refusal(f"{host} cannot read {part.name} for its checksum") if each is None else each
            for part, each in zip(parts, sums, strict=True)
        ]

    def _shell(self) -> SumsShell:
        """Return a shell. While one is waited for no session is held: others may wait for that."""
        if self._pool.limit is not None:
            self._let_go()
        return self._pool.open_shell(self._options, self._let_go)

    def _asked(self, shell: SumsShell, parts: Sequence[Part], stop: Callable[[], bool]) -> list[str | None]:
        """Return the checksum of each part, None of one that cannot be read."""
        # A shell begins at home, SFTP perhaps elsewhere.
        names = [wire.encoded(posixpath.join(self._pool.begins_in, part.name)) for part in parts]
        sums: list[str | None] = [None] * len(parts)
        whole = [
            i
            for i, part in enumerate(parts)
            if part.is_whole and part.end <= _SHORT_BYTES and sums_script.is_usual(names[i])
        ]
        for first in range(0, len(whole), _AT_ONCE):
            some = whole[first : first + _AT_ONCE]
            size_bytes = sum(parts[i].end for i in some)
            asked = sums_script.whole_request(names[i] for i in some)
            lines = shell.exchange(asked, size_bytes, lambda lines: lines[-1] == sums_script.END, stop)
            found = sums_script.parse_whole(lines)
            for i in some:
                sums[i] = found.get(sums_script.path(names[i]))
        single = sorted(set(range(len(parts))) - set(whole))
        for first in range(0, len(single), _AT_ONCE):
            some = single[first : first + _AT_ONCE]
            asked = b"".join(sums_script.part_request(names[i], parts[i].start, parts[i].end) for i in some)
            largest_bytes = max(parts[i].end for i in some)
            lines = shell.exchange(asked, largest_bytes, partial(_are_as_many, len(some)), stop)
            for i, line in zip(some, lines, strict=True):
                sums[i] = sums_script.parse_part(line)
        return sums
