"""Whether a report may be written where it is asked for: it must not replace what is copied."""

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from mpx.errors import MpxError, UsageError
from mpx.location import parse_location

_BEGINS = b'{\n "mpx": '  # every report, see Report.write


def check_apart(report: str, sources: Sequence[str], destination: str) -> None:
    """Raise UsageError where a report would replace a file of the copy, as it is just now.

    An older report in a folder that is copied, or copied to, may be replaced.
    """
    for name in (*sources, destination):
        local = _local(name)
        if local is None:
            continue
        is_itself = _is_same(report, local) or os.path.realpath(report) == os.path.realpath(local)
        if is_itself or (_is_below(report, local) and _is_no_report(report)):
            raise UsageError(f"a report in {report} would replace what is copied; give --report another name")


def _local(name: str) -> str | None:
    """Return the name of a file of this host; None for another, and for what will be refused."""
    try:
        location = parse_location(name).absolute()
    except MpxError:
        return None
    return location.name if location.scheme == "file" else None


def _is_same(one: str, other: str) -> bool:
    """Tell whether two names are of one file; devices and pipes are not replaced."""
    with suppress(OSError):
        return os.path.isfile(one) and os.path.samefile(one, other)
    return False


def _is_below(name: str, folder: str) -> bool:
    return os.path.realpath(name).startswith(os.path.realpath(folder).rstrip("/") + "/")


def _is_no_report(name: str) -> bool:
    """Tell whether a file holds anything but a report."""
    if not os.path.isfile(name):
        return False
    with Path(name).open("rb") as file:
        return file.read(len(_BEGINS)) not in (b"", _BEGINS)
