"""A link of a running lab, whichever way it is carried on this machine."""

from pathlib import Path

from mpx_lab.emulator.kernel_link import KernelLink
from mpx_lab.emulator.link import RunningLink
from mpx_lab.simulated import is_simulated


def running_link(folder: Path, name: str) -> RunningLink | KernelLink:
    """Return the link of this name of the lab whose folder that is."""
    return KernelLink(folder, name) if is_simulated() else RunningLink(folder, name)
