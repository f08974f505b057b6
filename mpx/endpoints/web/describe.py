"""What answers tell of a file. Pure."""

from mpx.endpoints.web.dates import http_date
from mpx.endpoints.web.multistatus import DavEntry
from mpx.endpoints.web.reply import Reply
from mpx.engine.endpoint import FileInfo, Kind


def info_of_head(reply: Reply, size_bytes: int | None, *, is_led: bool) -> FileInfo:
    """Return what the answer to HEAD or GET tells; folders look like files there.

    `is_led`: a redirect led there, perhaps to one of several mirrors, of which each has tags of its own.
    """
    tag = "" if is_led else reply.header("ETag")
    return FileInfo(Kind.FILE, size_bytes, http_date(reply.header("Last-Modified")), tag=tag)


def info_of_entry(entry: DavEntry) -> FileInfo:
    """Return what a listing tells of one entry."""
    if entry.is_folder:
        return FileInfo(Kind.FOLDER, 0, entry.modified_s)
    return FileInfo(Kind.FILE, entry.size_bytes, entry.modified_s, tag=entry.etag)
