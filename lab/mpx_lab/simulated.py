"""Whether time is simulated here: on a machine whose clock stands still while anything works.

`mpx lab simulate` makes such a machine (see simulator/). There nothing is ever late, and waiting takes no
time.
"""

from functools import cache
from pathlib import Path

MARK = "time-travel="  # among the arguments of its kernel


@cache
def is_simulated() -> bool:
    """Whether the clock of this machine is simulated."""
    return MARK in Path("/proc/cmdline").read_text()
