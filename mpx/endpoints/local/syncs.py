"""Syncs of many files: side by side where they wait for a disk, one after the other where they do not."""

import time
from collections.abc import Callable, Sequence
from typing import TypeVar

AT_ONCE = 8
SLOW_S = 0.0003  # one that takes longer waits for a disk; quicker ones would wait for their turn in Python

Result = TypeVar("Result")


class Syncs:
    """Remembers of a file system whether its syncs are slow. Safe for several threads."""

    def __init__(self) -> None:
        self._are_slow = False

    def run(self, syncs: Sequence[Callable[[], Result]]) -> list[Result]:
        """Return what each returns, in their order."""
        results: list[Result] = []
        while len(results) < len(syncs) and not (self._are_slow and len(syncs) - len(results) > 1):
            began_s = time.monotonic()
            results.append(syncs[len(results)]())
            self._are_slow = time.monotonic() - began_s > SLOW_S
        return results + self._side_by_side(syncs[len(results) :])

    def _side_by_side(self, syncs: Sequence[Callable[[], Result]]) -> list[Result]:
        if not syncs:
            return []
        from concurrent.futures import ThreadPoolExecutor

        began_s = time.monotonic()
        try:
            with ThreadPoolExecutor(min(len(syncs), AT_ONCE)) as syncing:
                results = list(syncing.map(lambda sync: sync(), syncs))
        except RuntimeError:  # no thread is left
            results = [sync() for sync in syncs]
        self._are_slow = (time.monotonic() - began_s) / len(syncs) > SLOW_S
        return results
