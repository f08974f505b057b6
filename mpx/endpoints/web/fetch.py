"""One range of a file that a server is asked for, and what its answers say of the file as a whole."""

import threading
import time
from weakref import WeakKeyDictionary, WeakSet

from mpx.endpoints.web import headers
from mpx.endpoints.web.dates import http_date
from mpx.endpoints.web.reply import HttpReply
from mpx.endpoints.web.url import Origin, WebUrl
from mpx.engine.file_transfer import FileTransfer
from mpx.engine.ranges import RangeSet
from mpx.engine.source_change import AGAIN, opaque
from mpx.errors import ConnectionLost, IntegrityError, OffsetsUnproven

FIRST_PIECE = 1 << 20  # bytes that are asked for as long as nothing is known of a server


class WebFetch:
    """[start, end) of a file, asked for by one GET; all of one, whatever its size, where it is `is_whole`.

    See range_scheduler.Fetch. Used by its worker, but for `missing`.
    """

    def __init__(
        self, file: FileTransfer, start: int, end: int, url: WebUrl, *, is_whole: bool, fd: int = -1
    ) -> None:
        """`url`: of the file, before redirects.

        `fd`: of the partial file (FileTransfer.close closes it), where it is stored here.
        """
        self.file, self.start, self.end, self.fd = file, start, end, fd
        self.url = url
        self.at = url  # where it is asked for, after redirects
        self.is_whole = is_whole
        self.asked_end = end  # a server may send less at once: then `end` is where that ends
        self.is_checked = False  # what the file is now is asked for behind it, on the same connection
        self.is_sent = False  # the server was asked, over the connection that there is
        self.is_ahead = False  # ... before the last answer had come
        self.hops = 0  # redirects so far
        self.misses = 0  # times that it was not there, and is
        self.is_led_anew = False  # where it led to was refused, and the first URL was asked once more
        self.sent_s = time.monotonic()
        self.reply: HttpReply | None = None  # once its head has come
        self.position = start  # of what comes next

    def missing(self) -> RangeSet:
        """Return what of it has not come, whoever was to bring it."""
        return self.file.not_here(self.start, self.end)

    @property
    def left_bytes(self) -> int:
        """How many bytes the server still has to send; 0 where that is not known."""
        return max(0, self.end - self.position)

    def read(self, view: memoryview) -> int:
        """Receive some of the body of its answer; return how many bytes came, 0 at the end of the body.

        Raises as HttpReply.read_into, and ConnectionLost where more comes than was asked for.
        """
        assert self.reply is not None
        if not self.file.is_streamed:
            view = view[: max(1, self.end - self.position)]  # one more shows that the body does not end
        size = self.reply.read_into(view)
        if not self.file.is_streamed and self.position + size > self.end:
            raise ConnectionLost(f"the server sends more of {self.file.named()} than it was asked for")
        self.position += size
        return size

    def headers(self) -> dict[str, str]:
        """Return what is asked for; no Range where that is all, as not every server knows it."""
        return {} if self.is_whole else {"Range": f"bytes={self.start}-{self.end - 1}"}


class FileTags:
    """What answers have said of each file: whoever says otherwise sends another file. For any thread.

    By origin, as redirects may lead to several mirrors, of which each has tags of its own.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._told: WeakKeyDictionary[FileTransfer, dict[Origin, tuple[str, str]]] = WeakKeyDictionary()
        self._mixed: WeakSet[FileTransfer] = WeakSet()  # of which several servers tell tags of their own

    def first(self, file: FileTransfer, origin: Origin) -> tuple[str, float | None]:
        """Return the tag, and the time, that the first answer of a server told."""
        with self._lock:
            tag, modified = self._told[file][origin]
        return tag, http_date(modified)

    def begin(self, file: FileTransfer, origin: Origin, reply: HttpReply) -> None:
        """Compare with this answer from now on."""
        with self._lock:
            self._told.setdefault(file, {})[origin] = _told_by(reply)

    def mixed(self, file: FileTransfer) -> OffsetsUnproven:
        """Have no answer taken any more: several servers tell tags of their own; return what that means."""
        with self._lock:
            self._mixed.add(file)
        return _mixed_tags(file)

    @staticmethod
    def is_as_listed(file: FileTransfer, reply: HttpReply) -> bool:
        """Tell whether an answer may belong to what was listed, as far as tags and times tell."""
        tag, listed = headers.etag(reply.header("ETag")), headers.etag(file.tag or "")
        modified_s = http_date(reply.header("Last-Modified"))
        return not (
            (tag and listed and tag[0] != listed[0])
            or (modified_s and file.modified_s and modified_s != int(file.modified_s))
        )

    def why_another(self, file: FileTransfer, origin: Origin, reply: HttpReply) -> IntegrityError | None:
        """Return why an answer belongs to another content than one before; None where it does not.

        Raises OffsetsUnproven for a file of `mixed`: whoever has it in hand would put parts of two together.
        """
        told = _told_by(reply)
        with self._lock:
            before = self._told.setdefault(file, {}).setdefault(origin, told)
            if file in self._mixed:
                raise _mixed_tags(file)
        for what, then, now in zip(("ETag", "Last-Modified"), before, told, strict=True):
            if then and now and opaque(then) != opaque(now):
                return IntegrityError(
                    f"{file.named()} changed while it was copied: its {what} was {then} and is {now} now; "
                    f"{AGAIN}"
                )
        return None


def _told_by(reply: HttpReply) -> tuple[str, str]:
    return reply.header("ETag"), reply.header("Last-Modified")


def _mixed_tags(file: FileTransfer) -> OffsetsUnproven:
    return OffsetsUnproven(f"{file.source}: several servers tell different ETags of it")
