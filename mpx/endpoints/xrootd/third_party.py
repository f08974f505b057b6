"""Copies between two servers of XRootD: the library tells the destination to read from the source."""

import threading
from collections.abc import Callable
from typing import Any

from XRootD import client

from mpx.endpoints.xrootd import meaning

ANSWERED_S = 60  # within which both servers have begun
LONGEST_S = 7 * 24 * 3600  # who stops is told so, by us

Ended = Callable[[Any], None]  # with the status


class ThirdPartyCopies:
    """Those that are under way, by what they write. For any thread: `_lock` guards all."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._copied_bytes: dict[str, int] = {}

    def begin(self, source: str, destination: str, ended: Ended) -> None:
        """Have a file copied from URL to URL, in a thread; the library waits for the end of it."""
        with self._lock:
            self._copied_bytes[destination] = 0
        threading.Thread(target=self._run, args=(source, destination, ended), daemon=True).start()

    def copied_bytes(self, destination: str) -> int:
        """Return how many bytes of one have arrived, as far as its server has told."""
        with self._lock:
            return self._copied_bytes.get(destination, 0)

    def _run(self, source: str, destination: str, ended: Ended) -> None:
        process = client.CopyProcess()
        try:
            process.add_job(
                source,
                destination,
                force=True,
                thirdparty="only",
                inittimeout=ANSWERED_S,
                tpctimeout=LONGEST_S,
            )
            status = process.prepare()
            if status.ok:
                status, _ = process.run(_Watched(self, destination))
        except Exception as error:  # of what the binding does not take, or cannot read
            status = meaning.Failed(str(error))
        with self._lock:
            self._copied_bytes.pop(destination, None)
        ended(status)

    def note(self, destination: str, size_bytes: int) -> None:
        """Take how far one has come."""
        with self._lock:
            self._copied_bytes[destination] = size_bytes


class _Watched:
    """What the library tells of one copy; see XRootD.client.utils.CopyProgressHandler."""

    def __init__(self, copies: ThirdPartyCopies, destination: str) -> None:
        self._copies, self._destination = copies, destination

    def begin(self, *_: object) -> None:
        """Nothing is known yet."""

    def end(self, *_: object) -> None:
        """Its status is returned, too."""

    def update(self, _number: int, copied_bytes: int, _of_bytes: int) -> None:
        """Take how far it has come."""
        self._copies.note(self._destination, copied_bytes)

    def should_cancel(self, _number: int) -> bool:
        """Tell that it is to go on: whoever stops it ends this process, which its destination sees."""
        return False
