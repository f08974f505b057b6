"""Whether a source is what it was when it was listed, and whether its data came to their end."""

from collections.abc import Callable
from dataclasses import replace

from mpx.engine.endpoint import FileInfo
from mpx.engine.file_transfer import FileTransfer
from mpx.errors import IntegrityError, OffsetsUnproven
from mpx.units import counted

END_DECIDES = "the end of the data decides"
AGAIN = "copy the same SRC to the same DST again"
_ASKED_AGAIN = 8  # times, of servers behind one name


def changed(now: FileInfo | None, file: FileTransfer, arrived_bytes: int) -> str:
    """Say how a source differs from what it was when it was listed; empty if it does not.

    Its size may be the one that was listed or the one that came: where the two differ the end of the data
    has decided. One whose size nobody knows (a pipe, a file of /proc) is only looked for: its time says
    nothing.
    """
    listed_bytes, modified_s = file.listed_bytes, file.modified_s
    if now is None:
        return "it is gone"
    if listed_bytes is None or (now.size_bytes == 0 and not listed_bytes):
        return ""
    sizes = {now.size_bytes, now.other_size_bytes} - {None}
    if sizes and not sizes & {listed_bytes, arrived_bytes}:
        return f"it had {counted(listed_bytes, 'byte')} and has {now.size_bytes} now"
    if modified_s is not None and now.modified_s is not None and now.modified_s != modified_s:
        return "it was modified"
    if file.tag and now.tag and opaque(now.tag) != opaque(file.tag):
        return f"its ETag was {file.tag} and is {now.tag} now"
    return ""


def opaque(tag: str) -> str:
    """Return an entity tag without the mark of a weak one, which some servers set for a second only."""
    return tag.removeprefix("W/")


def is_told_by_another_server(
    now: FileInfo | None,
    file: FileTransfer,
    tag: str,
    ask: Callable[[], FileInfo | None],
    modified_s: float | None = None,
) -> bool:
    """Tell whether a source with another tag or time is what it was, as one of several servers tells it.

    Servers that share a name may make tags of what differs between them (the number of an inode), or have
    stored the file at times of their own. Then `ask` is told the old ones, `tag` and `modified_s` (None: as
    it was listed), again soon, and never once the content was replaced. The size is as it was, and one of the
    two. A file may be read whole from any of them then, and not in parts.
    """
    old_s = file.modified_s if modified_s is None else modified_s

    def is_else(info: FileInfo) -> bool:
        as_listed = replace(info, tag="", modified_s=file.modified_s)
        return info.modified_s is None or bool(changed(as_listed, file, file.size_bytes))

    def is_old_time(info: FileInfo) -> bool:
        return info.modified_s == old_s

    if now is None or not (tag and now.tag and file.modified_s) or is_else(now):
        return False
    if not is_old_time(now) and opaque(now.tag) != opaque(tag):
        return False
    asked = (ask() for _ in range(_ASKED_AGAIN))
    return any(
        again is not None and opaque(again.tag) == opaque(tag) and is_old_time(again) and not is_else(again)
        for again in asked
    )


def why_changed(now: FileInfo | None, file: FileTransfer, arrived_bytes: int) -> IntegrityError | None:
    """Return how a source differs from what it was when it was listed; None if it does not."""
    how = changed(now, file, arrived_bytes)
    return IntegrityError(f"{file.named()} changed while it was copied: {how}; {AGAIN}") if how else None


def why_too_short(now: FileInfo | None, file: FileTransfer, arrived_bytes: int) -> IntegrityError | None:
    """Return why data that ended before the size that was listed are not the whole file; None if they are.

    They are where the server, asked once more, says that size too: else a transfer that was cut short
    would pass for a shorter file.
    """
    if change := why_changed(now, file, arrived_bytes):
        return change
    if now is not None and arrived_bytes in (now.size_bytes, now.other_size_bytes):
        return None
    return IntegrityError(
        f"{file.named()} ended after {counted(arrived_bytes, 'byte')}, but the server reports "
        f"{file.listed_bytes}; {AGAIN}"
    )


def why_elsewhere(now: FileInfo | None, file: FileTransfer, what: str) -> IntegrityError:
    """Return what it means that another number of bytes came from within a file, `what` says which.

    OffsetsUnproven unless the file has changed: the server began elsewhere, or reported a wrong size.
    """
    was_wrong = (
        now is not None
        and now.size_bytes != file.listed_bytes
        and now.modified_s is not None
        and now.modified_s == file.modified_s
    )
    how = changed(now, file, file.size_bytes)
    if was_wrong or not how:
        return OffsetsUnproven(f"{file.source}: {what}")
    return IntegrityError(f"{file.named()} changed while it was copied: {how}; {AGAIN}")


def end_proof(start: int, size_bytes: int) -> int:
    """Return an offset near the end of a file from which to read it, other than `start`."""
    return size_bytes - 1 if start != size_bytes - 1 else max(0, size_bytes - 2)
