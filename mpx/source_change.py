"""Whether a source is what it was when it was listed, and whether its data came to their end."""

from mpx.endpoint import FileInfo
from mpx.errors import IntegrityError, OffsetsUnproven
from mpx.move import Move

END_DECIDES = "the end of the data decides"
AGAIN = "copy the same SRC to the same DST again"


def changed(
    now: FileInfo | None, *, listed_bytes: int | None, arrived_bytes: int, modified_s: float | None
) -> str:
    """Say how a source differs from what it was when it was listed; empty if it does not.

    Its size may be the one that was listed or the one that came: where the two differ the end of the data
    has decided. One whose size nobody knows (a pipe, a file of /proc) is only looked for: its time says
    nothing.
    """
    if now is None:
        return "it is gone"
    if listed_bytes is None or (now.size_bytes == 0 and arrived_bytes > 0 and not listed_bytes):
        return ""
    if now.size_bytes is not None and now.size_bytes not in (listed_bytes, arrived_bytes):
        return f"it had {listed_bytes} bytes and has {now.size_bytes} now"
    if modified_s is not None and now.modified_s is not None and now.modified_s != modified_s:
        return "it was modified"
    return ""


def why_too_short(now: FileInfo | None, move: Move, arrived_bytes: int) -> IntegrityError | None:
    """Return why data that ended before the size that was listed are not the whole file; None if they are.

    They are where the server, asked once more, says that size too: else a transfer that was cut short
    would pass for a shorter file.
    """
    how = changed(
        now, listed_bytes=move.listed_bytes, arrived_bytes=arrived_bytes, modified_s=move.modified_s
    )
    if how:
        return IntegrityError(f"{move.source} changed while it was copied: {how}; {AGAIN}")
    if now is not None and now.size_bytes == arrived_bytes:
        return None
    return IntegrityError(
        f"{move.source} ended after {arrived_bytes} bytes, and the server says that it has "
        f"{move.listed_bytes}; {AGAIN}"
    )


def why_elsewhere(now: FileInfo | None, move: Move, what: str, *, is_proven: bool) -> IntegrityError:
    """Return what it means that another number of bytes came from within a file, `what` says which.

    `is_proven`: the server has shown before that it begins where it is asked to. OffsetsUnproven where it
    has not, or has told a wrong size of a file that is what it was.
    """
    was_wrong = (
        now is not None
        and now.size_bytes != move.listed_bytes
        and now.modified_s is not None
        and now.modified_s == move.modified_s
    )
    how = changed(
        now, listed_bytes=move.listed_bytes, arrived_bytes=move.size_bytes, modified_s=move.modified_s
    )
    if was_wrong or not (how or is_proven):
        return OffsetsUnproven(f"{move.source}: {what}")
    return IntegrityError(f"{move.source} changed while it was copied: {how or what}; {AGAIN}")
