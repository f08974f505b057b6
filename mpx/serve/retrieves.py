"""RETR and ERET, and those that the client has queued behind them.

In MODE E a connection that has ended its part of a file goes on with the next retrieve at once. To wait until
all have, which on a path with losses takes the last one seconds, would leave the others idle.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import NamedTuple

from mpx.engine.ranges import RangeSet
from mpx.serve import arguments
from mpx.serve.ahead import BegunAhead
from mpx.serve.moving import block_transfer, send
from mpx.serve.replies import RefusalReply
from mpx.serve.session import Session
from mpx.serve.transfer import Transfer

_DONE = b"226 Transfer Complete.\r\n"


class _Part(NamedTuple):
    """What of a file is to be sent, in bytes; `length` None: all that follows."""

    name: str
    base: int = 0
    length: int | None = None

    def size(self, size_bytes: int) -> int:
        """Return how much that is of a file of this size."""
        rest = max(0, size_bytes - self.base)
        return rest if self.length is None else min(self.length, rest)


def retrieve(session: Session, argument: str) -> bytes:
    """RETR: send a file."""
    return _send_part(session, _Part(argument))


def extended_retrieve(session: Session, argument: str) -> bytes:
    """ERET: send a part of a file."""
    part = _part_of(argument)
    if part is None:
        raise RefusalReply(501, "ERET takes P, an offset, a length and a name.")
    return _send_part(session, part)


def _part_of(argument: str) -> _Part | None:
    kind, _, rest = argument.partition(" ")
    found = arguments.numbers_and_name(rest, 2)
    if kind.upper() != "P" or not found:
        return None
    (offset, length), name = found
    return _Part(name, offset, length)


def _send_part(session: Session, part: _Part) -> bytes:
    begun = session.ahead.take()
    try:
        if begun:
            with begun:
                begun.transfer.follow_with(partial(_next, session))
                begun.transfer.run([])
        else:
            _begin_and_send(session, part)
    except BaseException:
        session.drop_ahead()
        raise
    return _DONE


def _begin_and_send(session: Session, part: _Part) -> None:
    restart = session.settings.take_restart()
    session.channel.check(blocks=session.settings.blocks, sending=True)
    fd = session.root.open_file(session.path(part.name))
    try:
        with _sized(fd) as (sized_fd, size_bytes):
            following = partial(_next, session)
            send(session, sized_fd, part.base, part.size(size_bytes), restart, following)
    finally:
        os.close(fd)


def _next(session: Session, number: int, streams: int) -> Transfer | None:
    """Begin the retrieve that comes so many commands behind the present one, if it is one that can be."""
    verb, argument = _queued(session, number)
    part = _Part(argument) if verb == "RETR" else _part_of(argument) if verb == "ERET" else None
    if part is None or not session.channel.can_go_on(streams, session.settings.streams):
        return None
    transfer: Transfer | None = None
    fd = -1
    # Whatever is wrong is said when its turn comes, and is no matter of the present one.
    with suppress(OSError, ValueError, RefusalReply):
        fd = session.root.open_file(session.path(part.name))
        if size_bytes := os.fstat(fd).st_size:
            session.channel.begin_sending()
            todo = RangeSet().missing(0, part.size(size_bytes))
            transfer = block_transfer(session, fd, part.base, todo, streams)
            session.ahead.add(BegunAhead(transfer, fd, (verb, argument)))
    if transfer is None and fd >= 0:
        os.close(fd)
    return transfer


def _queued(session: Session, number: int) -> tuple[str, str]:
    """Return verb and argument of the command that waits behind so many others, if it makes sense."""
    line = session.control.line_behind(number) or ""
    verb, _, argument = line.lstrip(" ").partition(" ")
    if "\r" in line or "\0" in line or not argument.strip():
        return "", ""
    return verb.upper(), argument


@contextmanager
def _sized(fd: int) -> Iterator[tuple[int, int]]:
    """Yield a file and its size; one that says 0 and has more (of /proc) is copied aside first."""
    size_bytes = os.fstat(fd).st_size
    if size_bytes or not os.pread(fd, 1, 0):
        yield fd, size_bytes
        return
    import shutil  # neither is light, and few commands need them
    import tempfile

    with tempfile.TemporaryFile() as spool:
        with os.fdopen(os.dup(fd), "rb") as file:
            shutil.copyfileobj(file, spool)
        spool.flush()
        yield spool.fileno(), spool.tell()
