"""What the kernel says of a file, as an error of ours."""

import errno

from mpx.errors import (
    AuthenticationError,
    ConnectionLost,
    DestinationError,
    MpxError,
    NoSpace,
    SourceError,
    TransferTimeout,
)

_READ_ONCE = "is a pipe and cannot be read a second time; run the command again"


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
        return SourceError(f"{name} {_READ_ONCE}")
    return SourceError(f"cannot read {name}: {reason}")


def lost_pipe(name: str, why: MpxError) -> MpxError:
    """Return the error of a pipe that was read, in part at least, when its session was lost by `why`."""
    kinds = (AuthenticationError, TransferTimeout, ConnectionLost)
    kind = next((kind for kind in kinds if isinstance(why, kind)), MpxError)
    return kind(f"{why}; {name} {_READ_ONCE}")
