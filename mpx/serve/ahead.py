"""Retrieves that have begun before their command is done, as connections of the one before were free."""

import os
from collections import deque
from types import TracebackType

from mpx.serve.transfer import Transfer


class BegunAhead:
    """One of them, and its file, which is closed at the end of `with`."""

    def __init__(self, transfer: Transfer, fd: int, command: tuple[str, str]) -> None:
        """`command`: its verb and argument."""
        self.transfer, self.command, self._fd = transfer, command, fd

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        os.close(self._fd)


class Ahead:
    """Those of a session, the next one first; used by its thread."""

    def __init__(self) -> None:
        self._begun: deque[BegunAhead] = deque()

    def add(self, begun: BegunAhead) -> None:
        """Note one that comes behind those that there are."""
        self._begun.append(begun)

    def take(self) -> BegunAhead | None:
        """Return the one whose command has come."""
        return self._begun.popleft() if self._begun else None

    def drop(self) -> list[tuple[str, str]]:
        """End all of them; return their commands."""
        dropped = []
        while begun := self.take():
            with begun:
                begun.transfer.abandon()
            dropped.append(begun.command)
        return dropped
