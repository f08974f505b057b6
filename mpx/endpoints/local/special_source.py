"""A source that is no regular file: a pipe or a device that the user names is read once, to its end.

Below a folder such files are skipped, as opening one may wait, or do something, for ever.
"""

import os
import stat

from mpx.engine.endpoint import FileInfo, Kind
from mpx.errors import SourceError, UsageError
from mpx.files.local_error import local_error
from mpx.files.open_descriptor import named_descriptor
from mpx.files.standard_descriptors import held_descriptors

_ENDLESS = frozenset(os.makedev(1, minor) for minor in (5, 7, 8, 9))  # /dev/zero, full, random, urandom


def special_source(name: str) -> FileInfo:
    """Describe a pipe or device that the user has named as a file of unknown size.

    Raises SourceError for what cannot be read as a file, UsageError for a device without an end.
    """
    opened = named_descriptor(name)
    if opened and opened[0] == os.getpid() and opened[1] in held_descriptors:
        raise SourceError(f"{name} was closed when mpx was started; there is nothing to read")
    try:
        status = os.stat(name)
    except OSError as error:
        raise local_error(error, name, writing=False) from None
    if stat.S_ISSOCK(status.st_mode):
        raise SourceError(f"{name} is a socket, which cannot be read as a file; name a file or a pipe")
    if stat.S_ISCHR(status.st_mode) and status.st_rdev in _ENDLESS:
        raise UsageError(
            f"{name} has no end; copy a part of it: head -c BYTES {name} | mpx copy /dev/stdin DST"
        )
    return FileInfo(Kind.FILE, None)  # with the time of the copy and the usual mode, as of `cat`
