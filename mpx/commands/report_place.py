"""Whether a report may be written where it is asked for: it must not replace what is copied."""

import os
import stat
from collections.abc import Sequence
from pathlib import Path

from mpx.endpoints.schemes import capabilities_of
from mpx.errors import MpxError, UsageError
from mpx.location import parse_location

_BEGINS = b'{\n "mpx": '  # every report, see Report.write


def check_apart(report: str, sources: Sequence[str], destination: str) -> None:
    """Raise UsageError where a report would replace a file of the copy, as it is just now.

    An older report in a folder that is copied, or copied to, may be replaced.
    """
    place, status = os.path.realpath(report), _stat(report)
    for name in (*sources, destination):
        local = _local(name)
        if local is None:
            continue
        there = _stat(local)
        if there is not None and not stat.S_ISDIR(there.st_mode):
            replaces = status is not None and stat.S_ISREG(status.st_mode) and os.path.samestat(status, there)
        else:
            real = os.path.realpath(local)
            is_below = place.startswith(real.rstrip("/") + "/")
            replaces = place == real or (is_below and _is_no_report(report))
        if replaces:
            raise UsageError(f"a report in {report} would replace what is copied; give --report another name")


def _stat(name: str) -> os.stat_result | None:
    try:
        return os.stat(name)
    except OSError:
        return None


def _local(name: str) -> str | None:
    """Return the name of a file of this host; None for another, and for what will be refused."""
    try:
        location = parse_location(name).absolute()
    except MpxError:
        return None
    return location.name if capabilities_of(location).is_here else None


def _is_no_report(name: str) -> bool:
    """Tell whether a file holds anything but a report."""
    if not os.path.isfile(name):
        return False
    try:
        with Path(name).open("rb") as file:
            return file.read(len(_BEGINS)) not in (b"", _BEGINS)
    except OSError:
        return True
