"""Tells a traffic process to end: when its standard input closes, or SIGTERM or SIGINT comes.

Standard input is the one that always works: it closes however the parent ends, also by SIGKILL.
"""

import os
import select
import signal
import sys
import threading
import time


class Ending:
    """Says whether the end has come; to be made in the main thread."""

    def __init__(self) -> None:
        self._came = threading.Event()
        self._woken, self._wake = os.pipe()
        for number in (signal.SIGTERM, signal.SIGINT):
            # In a signal handler nothing may take a lock.
            signal.signal(number, lambda *_: os.write(self._wake, b"."))
        threading.Thread(target=self._watch, name="ending", daemon=True).start()

    def __call__(self) -> bool:
        """Return whether the end has come."""
        return self._came.is_set()

    def wait(self, until_s: float) -> bool:
        """Wait until a time (monotonic clock) or the end; return whether the end has come."""
        return self._came.wait(max(0.0, until_s - time.monotonic()))

    def _watch(self) -> None:
        stdin = sys.stdin.fileno()
        poll = select.poll()
        poll.register(self._woken, select.POLLIN)
        poll.register(stdin, select.POLLIN)
        while True:
            ready = [fd for fd, _ in poll.poll()]
            if self._woken in ready or not os.read(stdin, 4096):
                self._came.set()
                return
