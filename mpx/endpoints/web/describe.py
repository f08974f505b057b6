"""What answers tell of a file. Pure."""

from mpx.endpoints.web import headers
from mpx.endpoints.web.dates import http_date
from mpx.endpoints.web.multistatus import DavEntry
from mpx.endpoints.web.reply import HttpReply
from mpx.engine.endpoint import FileInfo, Kind
from mpx.engine.file_transfer import FileTransfer
from mpx.engine.source_change import changed


def info_of_head(reply: HttpReply, size_bytes: int | None) -> FileInfo:
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
    return FileInfo(Kind.FILE, entry.size_bytes, entry.modified_s, tag=plain_tag(entry.etag))


def is_shown_unchanged(now: FileInfo, file: FileTransfer) -> bool:
    """Tell whether a file is shown to be what it was: a size alone shows nothing (XRootD tells no more)."""
    is_dated = file.modified_s is not None and now.modified_s is not None
    is_tagged = bool(file.tag and now.tag)
    return (is_dated or is_tagged) and not changed(now, file, file.size_bytes)


def plain_tag(text: str) -> str:
    """Return a tag as all ways to ask for it tell it: with quotation marks or not, and weak or not.

    Apache has weak ones for a second after a change.
    """
    found = headers.etag(text)
    return found[0] if found else ""
