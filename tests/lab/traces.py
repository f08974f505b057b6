"""What labs leave on this machine, looked at without any code of theirs."""

import os
import subprocess
from pathlib import Path


def traces(lab_id: str) -> list[str]:
    """Return everything that a lab of this ID has on this machine now."""
    found = [str(path) for path in Path("/run/netns").glob(f"mpxlab.{lab_id}.*")]
    found += [
        str(path) for path in Path("/run/mpx-lab").glob("*") if path.name.removesuffix(".lock") == lab_id
    ]
    mark = f"MPX_LAB={lab_id}".encode()
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdecimal() and mark in (entry / "environ").read_bytes().split(b"\0"):
                found.append(f"process {entry.name}: {(entry / 'cmdline').read_bytes()!r}")
        except OSError:  # it has ended
            continue
    own = (f"mpxlab.{lab_id}.", f"mpx-lab/{lab_id}/")
    mounts = Path("/proc/self/mounts").read_text().splitlines()
    found += [line for line in mounts if any(name in line for name in own)]
    return found


def devices() -> set[str]:
    """Return the network devices of the namespace that the tests run in."""
    return set(os.listdir("/sys/class/net"))


def processes_in(netns: str) -> list[int]:
    """Return who runs in a namespace, as iproute2 sees it."""
    told = subprocess.run(["ip", "netns", "pids", netns], capture_output=True, text=True, check=True)
    return [int(pid) for pid in told.stdout.split()]
