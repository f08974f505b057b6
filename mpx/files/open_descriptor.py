"""Names of files that this process, or another, has open: /dev/stdout, /dev/fd/N, /proc/PID/fd/N."""

import os
import re
from pathlib import Path

_MOST_LINKS = 40  # as the kernel
_PLACE = re.compile(r"/proc/(\d+)(?:/task/\d+)?/fd")


def named_descriptor(name: str) -> tuple[int, int] | None:
    """Return the process and the number of the open file that a name stands for; None if for none.

    Such a name is a link that must not be replaced, whatever the open file is.
    """
    path = Path(os.path.abspath(name))
    for _ in range(_MOST_LINKS):
        try:
            place = _PLACE.fullmatch(str(path.parent.resolve()))
            if place and path.name.isdecimal():
                return int(place.group(1)), int(path.name)
            path = path.parent / path.readlink()
        except OSError:
            return None
    return None
