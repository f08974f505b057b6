"""Final names that others have taken while files were copied, where nothing is to be replaced."""

from collections.abc import Sequence

from mpx.engine.capabilities import PartsUp
from mpx.engine.endpoint import Endpoint
from mpx.engine.file_transfer import FileTransfer
from mpx.errors import IsThere, MpxError
from mpx.transfer.planner import named_at


def taken_names(files: Sequence[FileTransfer], destination: Endpoint) -> dict[FileTransfer, MpxError]:
    """Return the errors of files that are to be renamed to a name that something has by now.

    Most servers replace what has it, so it is looked for shortly before. Objects of S3 may have their names
    already, as they are stored.
    """
    if destination.capabilities.parts_up is PartsUp.NUMBERED:
        return {}
    renamed = [file for file in files if file.partial != file.final]
    there = destination.stats([file.final for file in renamed], follow=False)
    return {
        file: found if isinstance(found, MpxError) else IsThere(named_at(destination, file.final))
        for file, found in zip(renamed, there, strict=True)
        if found is not None
    }
