"""The end of a MODE E transfer: every connection says that it is done, one says how many there were.

A connection that took part sends EOD exactly once in each transfer. One of them, or the last, sends EOF
with the total number of connections ever opened for this transfer; the receiver is done when it has
seen that many EOD. A total too low ends the transfer early, one too high never ends it, so a stream
must be counted before its connection is opened and may not be forgotten after.
"""

import threading

from mpx.endpoints.ftp.framing import BlockHeader, end_of_data


class EndOfData:
    """Counts the connections of one transfer. Safe for several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._total = 0
        self._active = 0
        self._joining = 0
        self.announced = False  # EOF was sent: no connection may join any more

    def enroll(self) -> None:
        """Count a connection that is open already: it was kept from the transfer before."""
        with self._lock:
            self._active += 1
            self._total += 1

    def reserve(self) -> bool:
        """Count a connection that is about to be opened; False if the transfer has ended."""
        with self._lock:
            if self.announced:
                return False
            self._joining += 1
            return True

    def joined(self) -> None:
        """Say that a reserved connection is open and takes part."""
        with self._lock:
            self._joining -= 1
            self._active += 1
            self._total += 1
            self._changed.notify_all()

    def not_joined(self) -> None:
        """Say that a reserved connection could not be opened."""
        with self._lock:
            self._joining -= 1
            self._changed.notify_all()

    def leave(self, *, finished: bool, close: bool) -> BlockHeader:
        """Return the last header of a connection that leaves.

        `finished`: there is nothing left to send in this transfer, so the last one out announces the
        end; otherwise others will come. Waits for connections that are just being opened, since the
        last one out must know the total.
        """
        with self._lock:
            while finished and self._active == 1 and self._joining:
                self._changed.wait()
            self._active -= 1
            if finished and self._active == 0:
                self.announced = True
                return end_of_data(self._total, close=close)
            return end_of_data(close=close)

    @property
    def taking_part(self) -> int:
        """How many connections take part now or are being opened for it."""
        with self._lock:
            return self._active + self._joining
