"""Take away what a lab has made, whatever became of the program that made it, and nothing else.

Processes are a lab's when they run in one of its namespaces or carry its ID in their environment. Devices
go with their namespaces.
"""

import os
import select
import shutil
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from mpx_lab.namespace import RUN_NETNS, unmount
from mpx_lab.plan import netns_name
from mpx_lab.state import LabError, folder_of

PATIENCE_S = 2.0  # between asking processes to end and ending them
ATTEMPTS = 20  # processes may start others while they are being ended


def remains(lab_id: str) -> bool:
    """Whether anything of a lab is there."""
    return folder_of(lab_id).exists() or bool(_namespaces(lab_id)) or bool(list(_processes(lab_id)))


def remove(lab_id: str) -> None:
    """Remove a lab; its lock must be held. Raises LabError where a process does not end."""
    folder = folder_of(lab_id)
    (folder / "state.json").unlink(missing_ok=True)
    for _ in range(ATTEMPTS):
        pids = list(_processes(lab_id))
        if not pids:
            break
        end(pids, PATIENCE_S)
    else:
        raise LabError(f"processes of the lab '{lab_id}' do not end: {' '.join(map(str, pids))}; try again")
    for path in _namespaces(lab_id):
        unmount(path)
        path.unlink()
    if folder.exists():
        shutil.rmtree(folder)


def _namespaces(lab_id: str) -> list[Path]:
    """Return the names of its namespaces; one that was interrupted may be a file only."""
    return sorted(RUN_NETNS.glob(netns_name(lab_id, "*")))


def _processes(lab_id: str) -> Iterator[int]:
    mark = f"MPX_LAB={lab_id}".encode()
    namespaces = set()
    for path in _namespaces(lab_id):
        with suppress(FileNotFoundError):
            namespaces.add(_identity(path))
    # Whatever a name says, the namespace we are in is no lab's to end.
    namespaces.discard(_identity(Path("/proc/self/ns/net")))
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal() or int(entry.name) == os.getpid():
            continue
        with suppress(OSError):  # it has ended meanwhile
            if _identity(entry / "ns" / "net") in namespaces or mark in (
                (entry / "environ").read_bytes().split(b"\0")
            ):
                yield int(entry.name)


def _identity(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_dev, found.st_ino


def end(pids: list[int], patience_s: float) -> None:
    """Ask processes to end, and end those that have not after `patience_s`."""
    fds = set()
    for pid in pids:
        with suppress(ProcessLookupError):
            fds.add(os.pidfd_open(pid))  # a number may come to mean another process, this cannot
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
