"""Becomes a command that the kernel kills when its parent ends, whatever ends it, SIGKILL too.

    python -P -m mpx_lab.traffic.with_parent PARENT COMMAND ...

PARENT is the parent's process id; the thread that starts this must outlive it, as the main thread does.
"""

import ctypes
import os
import signal
import sys
from collections.abc import Sequence
from typing import NoReturn

_PR_SET_PDEATHSIG = 1


def end_with_parent() -> None:
    """Have the kernel kill this process when the thread that started it ends."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def main(arguments: Sequence[str]) -> NoReturn:
    """Become the command; exit code 1 where it cannot be run or the parent has ended already."""
    parent, *command = arguments
    end_with_parent()
    if os.getppid() != int(parent):
        sys.exit("its parent has ended")
    try:
        os.execvp(command[0], command)
    except OSError as error:
        sys.exit(f"cannot run {command[0]}: {error.strerror}")


if __name__ == "__main__":
    main(sys.argv[1:])
