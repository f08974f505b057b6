"""How much data one session may have under way: what it carries in a round trip, and somewhat more. Pure.

At first goodput is what the window permits, as TCP begins slowly. So where a session has its files alone the
window grows with each answer, as TCP's does, until goodput grows no more. Of files that sessions share nobody
else can take any more what is under way, so that it follows goodput from the beginning.
"""

FIRST_BYTES = 4 * 1024 * 1024  # until goodput is known
WINDOW_S = 0.1  # of the goodput that is under way, beyond a round trip
WINDOW_ALONE_S = 0.25  # ... where a session has its files alone
GOODPUT_S = 0.25  # over which it is measured
GROWS = 1.25  # goodput that is so many times what it was before has not reached its end yet
LARGEST_BYTES = 16 * 1024 * 1024
LARGEST_ALONE_BYTES = 32 * 1024 * 1024  # as much as xrdcp has under way; the program holds what it sends
SHRINKS = 0.7  # to this part of itself, in GOODPUT_S


class RequestWindow:
    """Times are of any monotonic clock, in seconds."""

    def __init__(self, least_bytes: int, *, shares_files: bool) -> None:
        """`least_bytes`: that it ever has once goodput is known."""
        self.bytes = FIRST_BYTES
        self.goodput = 0.0  # bytes/s; 0: not known
        self._least_bytes = least_bytes
        self._largest_bytes = LARGEST_BYTES if shares_files else LARGEST_ALONE_BYTES
        self._window_s = WINDOW_S if shares_files else WINDOW_ALONE_S
        self._begins_slowly = not shares_files
        self._is_starting = self._begins_slowly
        self._measured = (0, 0.0)  # bytes moved, and when

    def restart(self) -> None:
        """Note that another session begins."""
        self._is_starting = self._begins_slowly

    def answered(self, size_bytes: int) -> None:
        """Take note of what has arrived."""
        if self._is_starting:
            self.bytes = min(self.bytes + size_bytes, self._largest_bytes)

    def measure(self, now_s: float, moved_bytes: int, rtt_s: float) -> bool:
        """Take how much has been moved by now; tell whether enough time had passed for that to count."""
        before_bytes, since_s = self._measured
        if now_s - since_s < GOODPUT_S:
            return False
        if since_s and moved_bytes > before_bytes:
            before, self.goodput = self.goodput, (moved_bytes - before_bytes) / (now_s - since_s)
            self._is_starting &= self.goodput > GROWS * before
        self._measured = moved_bytes, now_s
        if self._is_starting:
            return True
        # It shrinks little by little: a session that stood still for a moment goes on.
        window_bytes = max(self.goodput * (rtt_s + self._window_s), self.bytes * SHRINKS, self._least_bytes)
        self.bytes = int(min(window_bytes, self._largest_bytes))
        return True
