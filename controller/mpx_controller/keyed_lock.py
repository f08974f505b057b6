"""Locks by key: tasks with a key in common run one after the other."""

import asyncio
from collections.abc import AsyncIterator, Hashable, Iterable
from contextlib import asynccontextmanager


class KeyedLock:
    """Locks by key, within one event loop."""

    def __init__(self) -> None:
        self._busy: set[Hashable] = set()
        self._freed = asyncio.Event()

    @property
    def busy(self) -> frozenset[Hashable]:
        """The keys that are locked now."""
        return frozenset(self._busy)

    @asynccontextmanager
    async def on(self, things: Iterable[Hashable]) -> AsyncIterator[None]:
        """Wait until none of these keys is locked, and lock them until the end."""
        wanted = set(things)
        while not self._busy.isdisjoint(wanted):
            await self._freed.wait()
        self._busy |= wanted
        try:
            yield
        finally:
            self._busy -= wanted
            self._freed.set()
            self._freed = asyncio.Event()
