"""Removes what a lab has made, and nothing else, whatever happened to the program that made it.

Processes are a lab's when they run in one of its namespaces, or carry its ID in their environment and are
root's: other users can set any environment. Devices are removed with their namespaces.
"""

import os
import select
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

from mpx_lab.namespace import RUN_NETNS, unmount
from mpx_lab.state import LabError, folder_of
from mpx_lab.steps import netns_name

PATIENCE_S = 2.0  # between asking processes to end and ending them
ATTEMPTS = 20  # processes may start others while they are being ended

Identity = tuple[int, int]  # of a namespace, as the kernel numbers it


def remains(lab_id: str) -> bool:
    """Whether anything of a lab is there."""
    if folder_of(lab_id).exists() or _namespaces(lab_id):
        return True
    return any(_belongs(lab_id, set(), pid) for pid in _all_pids())


def remove(lab_id: str) -> None:
    """Remove a lab; its lock must be held. Raises LabError where a process does not end."""
    folder = folder_of(lab_id)
    (folder / "state.json").unlink(missing_ok=True)
    with _held_namespaces(lab_id) as namespaces:
        _end_all(lab_id, namespaces)
        for path in _namespaces(lab_id):
            unmount(path)
            path.unlink()
        _end_all(lab_id, namespaces)  # processes that were just entering; from now on none can
    if folder.exists():
        shutil.rmtree(folder)


def _end_all(lab_id: str, namespaces: set[Identity]) -> None:
    belongs = partial(_belongs, lab_id, namespaces)
    for _ in range(ATTEMPTS):
        pids = [pid for pid in _all_pids() if belongs(pid)]
        if not pids:
            return
        end(pids, PATIENCE_S, belongs)
    raise LabError(f"processes of the lab '{lab_id}' did not end: {' '.join(map(str, pids))}; try again")


def _namespaces(lab_id: str) -> list[Path]:
    """Return the names of its namespaces; one whose creation was interrupted may be only a file."""
    return sorted(RUN_NETNS.glob(netns_name(lab_id, "*")))


@contextmanager
def _held_namespaces(lab_id: str) -> Iterator[set[Identity]]:
    """Hold its namespaces open for the block, so that their inode numbers are not reused meanwhile."""
    held = []
    try:
        for path in _namespaces(lab_id):
            with suppress(FileNotFoundError):
                held.append(os.open(path, os.O_RDONLY | os.O_CLOEXEC))
        # Never end the namespace that this process is in, whatever its name.
        yield {_identity(os.stat(fd)) for fd in held} - {_identity(os.stat("/proc/self/ns/net"))}
    finally:
        for fd in held:
            os.close(fd)


def _all_pids() -> list[int]:
    """Return all processes but this one."""
    return [
        int(entry.name)
        for entry in Path("/proc").iterdir()
        if entry.name.isdecimal() and int(entry.name) != os.getpid()
    ]


def _belongs(lab_id: str, namespaces: set[Identity], pid: int) -> bool:
    """Whether a process belongs to the lab; False where it has ended."""
    entry = Path(f"/proc/{pid}")
    try:
        if _identity(os.stat(entry / "ns" / "net")) in namespaces:
            return True
        marked = f"MPX_LAB={lab_id}".encode() in (entry / "environ").read_bytes().split(b"\0")
        return marked and _real_user(entry) == 0
    except OSError:
        return False


def _real_user(entry: Path) -> int:
    status = (entry / "status").read_text()
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("Uid:")))


def _identity(found: os.stat_result) -> Identity:
    return found.st_dev, found.st_ino


def end(pids: list[int], patience_s: float, meant: Callable[[int], bool] = lambda _: True) -> None:
    """End processes: SIGTERM, then SIGKILL after `patience_s`.

    Process ids may be reused: `meant` is asked again once a pidfd pins the process.
    """
    fds = set()
    for pid in pids:
        with suppress(ProcessLookupError):
            fd = os.pidfd_open(pid)
            if meant(pid):
                fds.add(fd)
            else:
                os.close(fd)
    try:
        left = fds
        for number, wait_s in ((signal.SIGTERM, patience_s), (signal.SIGKILL, 1.0)):
            for fd in left:
                with suppress(ProcessLookupError):
                    signal.pidfd_send_signal(fd, number)
            left = _not_ended(left, wait_s)
    finally:
        for fd in fds:
            os.close(fd)


def _not_ended(fds: set[int], within_s: float) -> set[int]:
    """Return those of `fds` (of processes) that have not ended in time."""
    poll = select.poll()
    for fd in fds:
        poll.register(fd, select.POLLIN)
    left = set(fds)
    deadline_s = time.monotonic() + within_s
    while left and (rest_s := deadline_s - time.monotonic()) > 0:
        for fd, _ in poll.poll(rest_s * 1000):
            poll.unregister(fd)
            left.discard(fd)
    return left
