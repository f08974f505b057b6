"""Keeps the threads of a copy on one processor where several only cost more.

Python runs one thread at a time. With small files each thread has its turn for some microseconds, and on
several processors those that wait for it wake one another in vain: twice the processor time, half of the
files (docs/decisions/0049). With large files threads wait for the network, or sum data side by side; only
where a copy that receives keeps a processor busy it is tried whether one is enough (processor_gain.py).
"""

import contextlib
import os
import threading

SMALL_BYTES = 64 * 1024  # files of that size in the mean, ...
MANY = 50  # ... and so many that wait; until fewer than these are not settled
OURS = "mpx-"  # what the names of our threads begin with: others of a program that uses us are left alone


class OneProcessor:
    """Used by the control loop's thread, which stays where it is: it has little to do."""

    def __init__(self) -> None:
        self._moved: set[int] = set()  # threads, by the kernel's number
        self.is_many = False  # small files, so that all threads share one

    def look(
        self, waiting_files: int, waiting_bytes: int, unsettled_files: int, *, is_enough: bool = False
    ) -> None:
        """Move the threads onto one processor, or let them go, by the files that wait to be moved.

        `is_enough`: one processor carries as much as several.
        """
        if waiting_files >= MANY:
            self.is_many = waiting_bytes < SMALL_BYTES * waiting_files
        elif unsettled_files < MANY:
            self.is_many = False
        if self.is_many or is_enough:
            self._move()
        else:
            self.end()

    def end(self) -> None:
        """Let all threads run on any processor again, if any was moved."""
        if self._moved:
            self._set(_ours(), _usable())  # also those that began on the one processor since
            self._moved.clear()

    def _move(self) -> None:
        usable = sorted(_usable())
        if len(usable) > 1:
            new = _ours() - self._moved
            self._set(new, {usable[os.getpid() % len(usable)]})
            self._moved |= new

    @staticmethod
    def _set(threads: set[int], processors: set[int]) -> None:
        for thread in threads:
            with contextlib.suppress(OSError):  # it has ended, or this host does not permit it
                os.sched_setaffinity(thread, processors)


def _usable() -> set[int]:
    """Return the processors that this thread, and so the copy, may use."""
    return os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()


def _ours() -> set[int]:
    return {
        thread.native_id
        for thread in threading.enumerate()
        if thread.name.startswith(OURS) and thread.native_id is not None
    }
