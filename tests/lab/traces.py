"""What labs leave on this machine, looked at without any code of theirs."""

import ctypes
import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

PR_SET_CHILD_SUBREAPER = 36
_LIBC = ctypes.CDLL(None, use_errno=True)


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


@contextmanager
def orphans() -> Iterator[Callable[[], list[str]]]:
    """Give what runs of programs that we have started, and that have ended: with a mark or without.

    Meanwhile the kernel makes every process whose parents have ended our child.
    """
    _LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    before = set(_children())
    try:
        yield lambda: [
            f"{pid}: {Path('/proc', str(pid), 'cmdline').read_bytes()!r}"
            for pid, has_ended in _children().items()
            if pid not in before and not has_ended
        ]
    finally:
        _LIBC.prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
        for pid, has_ended in _children().items():
            if pid not in before and has_ended:
                os.waitpid(pid, 0)


def _children() -> dict[int, bool]:
    """Return the process ids of our children, and whether they have ended."""
    found = {}
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdecimal():
                status, parent = (entry / "stat").read_text().rpartition(")")[2].split()[:2]
                if int(parent) == os.getpid():
                    found[int(entry.name)] = status == "Z"
        except OSError:  # it has ended
            continue
    return found
