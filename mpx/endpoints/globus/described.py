"""What the service tells of files and folders, read into ours. Pure."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from mpx.engine.endpoint import FileInfo, Kind
from mpx.errors import ConnectionLost

_KINDS = {"file": Kind.FILE, "dir": Kind.FOLDER}
_BROKEN = "invalid_symlink"  # that leads nowhere


def info_of(told: Mapping[str, Any], *, follow: bool) -> FileInfo | None:
    """Return what a document describes; a link as one, unless it is followed (None: it leads nowhere).

    Modes are left out, as none can be set. Raises ConnectionLost for nonsense.
    """
    kind = told.get("type")
    if not isinstance(kind, str):
        raise ConnectionLost("Globus describes a file without a type")
    target = told.get("link_target")
    is_link = isinstance(target, str) and bool(target)
    if is_link and not follow:
        return FileInfo(Kind.LINK, 0, link_target=str(target))
    if kind == _BROKEN:
        return None if follow else FileInfo(Kind.OTHER)
    size = told.get("size")
    is_file = kind == "file"
    if is_file and (not isinstance(size, int) or isinstance(size, bool) or size < 0):
        raise ConnectionLost("Globus describes a file without a size")
    return FileInfo(
        _KINDS.get(kind, Kind.OTHER),
        size if is_file else 0,
        time_of(told.get("last_modified")),
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
