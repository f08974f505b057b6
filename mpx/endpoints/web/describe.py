"""What answers tell of a file. Pure."""

from mpx.endpoints.web.dates import http_date
from mpx.endpoints.web.multistatus import DavEntry
from mpx.endpoints.web.reply import Reply
from mpx.engine.endpoint import FileInfo, Kind


def info_of_head(reply: Reply, size_bytes: int | None) -> FileInfo:
    """Return what the answer to HEAD or GET tells; folders look like files there."""
    return FileInfo(
        Kind.FILE,
        size_bytes,
        http_date(reply.header("Last-Modified")),
    )


def info_of_entry(entry: DavEntry) -> FileInfo:
    """Return what a listing tells of one entry."""
    if entry.is_folder:
        return FileInfo(Kind.FOLDER, 0, entry.modified_s)
    return FileInfo(Kind.FILE, entry.size_bytes, entry.modified_s, tag=entry.etag)
