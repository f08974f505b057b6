"""What became of files whose session was lost while they were given their final names.

The answer to a rename may be lost before or after it was done, and an old file may have the size of the new.
"""

from collections.abc import Mapping, Sequence

from mpx.engine.endpoint import Endpoint, FileInfo
from mpx.engine.file_transfer import FileTransfer
from mpx.engine.source_change import AGAIN
from mpx.errors import DestinationError, IntegrityError, MpxError


def what_became_of(
    files: Sequence[FileTransfer], destination: Endpoint
) -> tuple[set[FileTransfer], set[FileTransfer]]:
    """Return those that are shown to have their final names, and those of which nothing is shown.

    Of the latter the partial file is gone; those that still have one are in neither.
    """
    partials = destination.stats([file.partial for file in files])
    finals = destination.stats([file.final for file in files])
    renamed: set[FileTransfer] = set()
    gone: set[FileTransfer] = set()
    for file, partial, final in zip(files, partials, finals, strict=True):
        if partial is None:
            (renamed if isinstance(final, FileInfo) and _is_new(file, final) else gone).add(file)
    return renamed, gone


def _is_new(file: FileTransfer, now: FileInfo) -> bool:
    """Tell whether what has the final name is shown to be another file than the old one, if there was one."""
    before = file.replaces
    if now.size_bytes != file.size_bytes or before is None:
        return now.size_bytes == file.size_bytes
    facts = [
        (now.size_bytes, before.size_bytes),
        (now.modified_s, before.modified_s),
        (now.identity, before.identity),
    ]
    return any(None not in fact and fact[0] != fact[1] for fact in facts)


def not_done(
    files: Mapping[FileTransfer, FileInfo | MpxError | None], destination: Endpoint
) -> dict[FileTransfer, MpxError]:
    """Return the errors of files that a server says it renamed, and that still have their partial names.

    By what has their final names. One that is in neither place was taken away by others.
    """
    strange = [
        file
        for file, final in files.items()
        if final is None or (isinstance(final, FileInfo) and final.size_bytes not in (None, file.size_bytes))
    ]
    partials = destination.stats([file.partial for file in strange]) if strange else []
    return {
        file: DestinationError(
            f"{file.final}: the server says that {file.partial} has this name now, and it has not; give "
            "--in-place, which needs no rename"
        )
        for file, partial in zip(strange, partials, strict=True)
        if isinstance(partial, FileInfo) and file.partial != file.final
    }


def unshown(file: FileTransfer) -> IntegrityError:
    """Return the error of a file whose connection was lost during the rename a second time."""
    return IntegrityError(
        f"{file.source}: connection lost during the rename; cannot confirm that {file.final} is the new "
        f"file; {AGAIN}"
    )
