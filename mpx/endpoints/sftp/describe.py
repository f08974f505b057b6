"""What SFTP tells of a name, as the engine has it. Pure."""

import stat

from mpx.endpoints.sftp.wire import Attributes
from mpx.engine.endpoint import FileInfo, Kind

LARGEST_FILE_BYTES = 2**63 - 1


def info_of(attributes: Attributes, link_target: str = "") -> FileInfo:
    """Return what is told of a name. A server that tells no type is taken to mean a file."""
    kind = _kind(attributes.mode)
    size_bytes = attributes.size_bytes
    if size_bytes is not None and size_bytes > LARGEST_FILE_BYTES:
        size_bytes = None  # no file has so many
    return FileInfo(
        kind,
        size_bytes if kind is Kind.FILE else size_bytes or 0,
        None if attributes.modified_s is None else float(attributes.modified_s),
        None if attributes.mode is None else stat.S_IMODE(attributes.mode),
        link_target,
    )


def tells_type(attributes: Attributes) -> bool:
    """Tell whether the type of a name is told."""
    return attributes.mode is not None and stat.S_IFMT(attributes.mode) != 0


def _kind(mode: int | None) -> Kind:
    if mode is None or not stat.S_IFMT(mode):
        return Kind.FILE
    if stat.S_ISREG(mode):
        return Kind.FILE
    if stat.S_ISDIR(mode):
        return Kind.FOLDER
    return Kind.LINK if stat.S_ISLNK(mode) else Kind.OTHER
