"""Listing a folder by WebDAV (PROPFIND), and describing what is in it."""

import zlib
from collections.abc import Callable, Iterator

from mpx.endpoints.web.describe import info_of_entry
from mpx.endpoints.web.multistatus import DavEntry, MultiStatus, MultiStatusError
from mpx.endpoints.web.names import HrefError, child_name, is_href_of, own_path
from mpx.endpoints.web.reply import HttpReply
from mpx.endpoints.web.url import WebUrl
from mpx.engine.endpoint import FileInfo
from mpx.errors import ConnectionLost, MpxError, PartialFailure
from mpx.text import shown

PROPERTIES = (
    b'<?xml version="1.0" encoding="utf-8"?><propfind xmlns="DAV:"><prop><resourcetype/><getcontentlength/>'
    b"<getlastmodified/><getetag/></prop></propfind>"
)
ASKED_AS = {"Content-Type": "application/xml; charset=utf-8"}
_BLOCK_BYTES = 256 * 1024
_LARGEST_BYTES = 1 << 33  # of a listing: ten million names and more


class NotAFolder(ValueError):
    """What was listed is a file, which servers describe in the place of its contents."""


class KeptBody:
    """A body that has come whole, compressed: a folder may have a million names.

    So nobody at the server waits for us while we do something with the first of them.
    """

    def __init__(self) -> None:
        self._blocks: list[bytes] = []

    @classmethod
    def read(cls, reply: HttpReply, peer: str) -> "KeptBody":
        """Read all of it; raises as HttpReply.read_into, ConnectionLost where it has no end."""
        made, view, came = cls(), memoryview(bytearray(_BLOCK_BYTES)), 0
        while size := reply.read_into(view):
            came += size
            if came > _LARGEST_BYTES:
                raise ConnectionLost(f"{peer} sends a listing of more than {_LARGEST_BYTES} bytes")
            made._blocks.append(zlib.compress(view[:size], 1))
        return made

    @classmethod
    def of(cls, content: bytes) -> "KeptBody":
        """Return one that was read already."""
        made = cls()
        made._blocks.append(zlib.compress(content, 1))
        return made

    def take(self) -> Iterator[bytes]:
        """Yield it in pieces; what was yielded is not kept any longer."""
        self._blocks.reverse()
        while self._blocks:
            yield zlib.decompress(self._blocks.pop())


def listed(body: KeptBody, url: WebUrl) -> Iterator[DavEntry]:
    """Yield what a multi-status answer holds; raises ConnectionLost where it cannot be read."""
    parser = MultiStatus()
    try:
        for piece in body.take():
            yield from parser.feed(piece)
        yield from parser.close()
    except MultiStatusError as error:
        raise ConnectionLost(f"{url}: the answer to PROPFIND cannot be read: {shown(str(error))}") from None


def only_entry(body: KeptBody, url: WebUrl) -> DavEntry | None:
    """Return what an answer tells about the URL that was asked; None where it tells more, less or of another.

    A folder that a proxy maps to a server is the uppermost one there. Raises as `listed`.
    """
    entries = list(listed(body, url))
    if len(entries) != 1:
        return None
    (entry,) = entries
    is_asked = is_href_of(entry.href, url.path) or (entry.is_folder and is_href_of(entry.href, "/"))
    return entry if is_asked else None


def children(
    body: KeptBody, url: WebUrl, is_encoded: Callable[[str, str], bool]
) -> Iterator[tuple[str, FileInfo | MpxError]]:
    """Yield what is in the folder of a URL; see Endpoint.entries. Raises NotAFolder where that is none.

    `is_encoded` tells it of an href in a folder, whose path as a URL it gets as well.
    """
    folder: str | None = None  # as the server knows it: the folder itself mostly comes first
    for entry in listed(body, url):
        if folder is None:
            folder = own_path(entry.href, url.path) if entry.is_folder else url.path
        try:
            name = child_name(entry.href, folder, is_encoded=is_encoded(entry.href, folder))
        except HrefError as error:
            yield "", PartialFailure(f"{url}: the server lists {error}, which is not a name in this folder")
            continue
        if name is None:
            if entry.size_bytes is not None and not entry.is_folder:
                raise NotAFolder(f"{url} is not a folder")
            continue
        if entry.status is not None and not 200 <= entry.status < 300:
            yield name, PartialFailure(f"{url}: the server does not describe {shown(name)}: {entry.status}")
        else:
            yield name, info_of_entry(entry)
