"""Scheduling of programs that measure, so that they run on time on a busy machine."""

import contextlib
import ctypes
import os

_PR_SET_TIMERSLACK = 29
_PRIORITY = 1  # below the emulator's


def wake_in_time() -> None:
    """Set the timer slack of this thread to zero; the default delays waits by up to 50 us."""
    ctypes.CDLL(None).prctl(_PR_SET_TIMERSLACK, 1, 0, 0, 0)


def be_punctual() -> None:
    """Set the timer slack to zero, and a real-time priority where that is permitted."""
    wake_in_time()
    with contextlib.suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(_PRIORITY))
