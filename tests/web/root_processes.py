"""The processes that a test has begun which have XRootD's client library."""

import contextlib
from pathlib import Path


def processes_with_the_library() -> list[int]:
    """The processes of this one that have it."""
    found = []
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # a thread or a process has ended
            for each in (task / "children").read_text().split():
                if b"mpx.endpoints.xrootd" in Path(f"/proc/{each}/cmdline").read_bytes():
                    found.append(int(each))
    return found
