"""What the service tells of files and folders, read into ours. Pure."""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from mpx.engine.endpoint import FileInfo, Kind
from mpx.errors import ConnectionLost

_KINDS = {"file": Kind.FILE, "dir": Kind.FOLDER}
_MODE = re.compile("[0-7]{3,6}")


def info_of(told: Mapping[str, Any], *, follow: bool) -> FileInfo:
    """Return what a document describes; a link as one, unless it is followed. ConnectionLost for nonsense."""
    kind = told.get("type")
    if not isinstance(kind, str):
        raise ConnectionLost("Globus describes a file without a type")
    target = told.get("link_target")
    is_link = isinstance(target, str) and bool(target)
    if is_link and not follow:
        return FileInfo(Kind.LINK, 0, link_target=str(target))
    size = told.get("size")
    is_file = kind == "file"
    if is_file and (not isinstance(size, int) or isinstance(size, bool) or size < 0):
        raise ConnectionLost("Globus describes a file without a size")
    return FileInfo(
        _KINDS.get(kind, Kind.OTHER),
        size if is_file else 0,
        time_of(told.get("last_modified")),
        _mode_of(told.get("permissions")),
    )


def time_of(text: object) -> float | None:
    """Return a time as seconds since 1970; None for what is none."""
    if not isinstance(text, str):
        return None
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        return None
    return when.timestamp() if when.tzinfo else None


def _mode_of(text: object) -> int | None:
    if not isinstance(text, str) or not _MODE.fullmatch(text):
        return None
    return int(text, 8) & 0o7777
