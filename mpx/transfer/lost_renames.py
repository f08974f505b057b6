"""What became of files whose session was lost while they were given their final names.

The answer to a rename may be lost before or after it was done, and an old file may have the size of the new.
"""

from collections.abc import Sequence

from mpx.engine.endpoint import Endpoint, FileInfo
from mpx.engine.file_transfer import FileTransfer
from mpx.engine.source_change import AGAIN
from mpx.errors import IntegrityError


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


def unshown(file: FileTransfer) -> IntegrityError:
    """Return the error of a file whose connection was lost during the rename a second time."""
    return IntegrityError(
        f"{file.source}: connection lost during the rename; cannot confirm that {file.final} is the new "
        f"file; {AGAIN}"
    )
