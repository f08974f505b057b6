"""What the kernel says of a file, as an error of ours."""

import errno

from mpx.errors import DestinationError, MpxError, NoSpace, SourceError


def local_error(error: OSError, name: str, *, writing: bool) -> MpxError:
    """Translate what the kernel says of a file into our errors."""
    reason = error.strerror or str(error)
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return NoSpace(
            f"no space for {name}: {reason}; free some and copy the same SRC to the same DST again"
        )
    if writing:
        return DestinationError(f"cannot write {name}: {reason}")
    if error.errno == errno.ESPIPE:
        return SourceError(f"{name} is a pipe and cannot be read a second time; run the command again")
    return SourceError(f"cannot read {name}: {reason}")
