"""Whether time is simulated here: on a machine whose clock stands still while anything works.

`mpx lab simulate` makes such a machine (see simulator/). There nothing is ever late, and waiting takes no
time.
"""

from functools import cache
from pathlib import Path

from mpx.errors import UsageError
from mpx_lab.topology import Topology

MARK = "time-travel="  # among the arguments of its kernel


@cache
def is_simulated() -> bool:
    """Whether the clock of this machine is simulated."""
    return MARK in Path("/proc/cmdline").read_text()


def check_can_be_simulated(topology: Topology) -> None:
    """Raise UsageError where time is simulated and a link would have no limits.

    Open vSwitch takes away what the kernel has in front of a device that becomes a port.
    """
    links = [link for link in topology.links if topology.emulated(link)]
    at_switches = [link.name for link in links if set(link.ends) & set(topology.switches)]
    if at_switches and is_simulated():
        raise UsageError(
            f"in simulated time the links of a switch have no rate and no delay ({', '.join(at_switches)} of "
            f"{topology.name}): build it without mpx lab simulate"
        )
