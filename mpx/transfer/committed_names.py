"""Which files of a copy have their final names, for an attempt that follows after a fallback."""

import hashlib
import threading
from collections.abc import Iterable

_DIGEST_BYTES = 16


class CommittedNames:
    """Final names that this run has given, 16 bytes for each. Safe for several threads.

    The names of earlier attempts are `in` it, so that the next one leaves them out.
    """

    def __init__(self, *, are_kept: bool = True) -> None:
        """`are_kept`: whether there can be another attempt; else nothing is recorded."""
        self._are_kept = are_kept
        self._lock = threading.Lock()  # of the digests
        self._digests = bytearray()
        self._earlier: frozenset[bytes] = frozenset()  # replaced as a whole, between two attempts

    def add(self, names: Iterable[str]) -> None:
        """Record files that have got their final names."""
        if self._are_kept:
            added = b"".join(map(_digest, names))
            with self._lock:
                self._digests += added

    def start_over(self) -> None:
        """Have all that was recorded left out from now on."""
        with self._lock:
            digests = bytes(self._digests)
        starts = range(0, len(digests), _DIGEST_BYTES)
        self._earlier = frozenset(digests[start : start + _DIGEST_BYTES] for start in starts)

    def __contains__(self, name: str) -> bool:
        return bool(self._earlier) and _digest(name) in self._earlier


def _digest(name: str) -> bytes:
    return hashlib.blake2b(name.encode("utf-8", "surrogateescape"), digest_size=_DIGEST_BYTES).digest()
