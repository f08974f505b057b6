"""How much at once: a tuner may let one chunk through, and see what became of it before the next."""

import threading


class ChunkGate:
    """Lets through a chunk and no more, where a tuner wants the carrier to stand still in between."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._left: int | None = None
        self._passed = 0

    def open(self, chunk_bytes: int | None) -> None:
        """Let `chunk_bytes` more through; None lets everything through from now on."""
        with self._changed:
            self._left = chunk_bytes
            self._changed.notify_all()

    def take(self, want_bytes: int) -> int:
        """Return how many of `want_bytes` may go now; 0 after a short wait when the gate stays shut."""
        with self._changed:
            if self._left == 0:
                self._changed.wait(0.02)
            allowed = want_bytes if self._left is None else min(self._left, want_bytes)
            if self._left is not None:
                self._left -= allowed
            self._passed += allowed
            return allowed

    def give_back(self, size_bytes: int) -> None:
        """Return what was let through and not used."""
        with self._changed:
            self._passed -= size_bytes
            if self._left is not None:
                self._left += size_bytes

    @property
    def passed_bytes(self) -> int:
        """How many bytes have been let through and used."""
        with self._changed:
            return self._passed

    @property
    def is_used(self) -> bool:
        """Whether only a chunk at a time is let through."""
        with self._changed:
            return self._left is not None

    @property
    def is_shut(self) -> bool:
        """Whether everything that was let through has been taken."""
        with self._changed:
            return self._left == 0
