"""The files of a web server as an endpoint: by WebDAV (PROPFIND and the like), else by HEAD and GET."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from mpx.endpoints.web import headers
from mpx.endpoints.web.access import WebAccess
from mpx.endpoints.web.changes import TIMES, WebChanges
from mpx.endpoints.web.connection import HttpConnection
from mpx.endpoints.web.describe import info_of_entry, info_of_head
from mpx.endpoints.web.dialogue import WebDialogue
from mpx.endpoints.web.fetch import FIRST_PIECE
from mpx.endpoints.web.folder import ASKED_AS, PROPERTIES, KeptBody, children, listed
from mpx.endpoints.web.refusals import MISSING, NOT_SUPPORTED, is_success, refused
from mpx.endpoints.web.reply import Reply
from mpx.endpoints.web.url import WebUrl
from mpx.engine.endpoint import Commit, FileInfo, Kind, Part, Protection, Rtt, Stamp
from mpx.errors import (
    ConnectionLost,
    DestinationError,
    MpxError,
    NoChecksum,
    SourceError,
    UsageError,
)
from mpx.location import Location
from mpx.net import congestion_control
from mpx.report import Note, OnNote
from mpx.text import quoted

_MULTI_STATUS = 207
_NO_HEAD = (
    400,
    403,
    405,
    501,
)  # answers to HEAD where GET may be answered: URLs signed for GET, small servers
CLEAR = "what passes is in the clear (http), so that others on the way can read and change it"


class WebEndpoint:
    """Connects when first asked."""

    def __init__(
        self, location: Location, access: WebAccess, *, writing: bool, stop: Callable[[], bool] | None = None
    ) -> None:
        self.location = replace(location, query="")
        self._access = access
        self._stop = stop
        self._dialogue = WebDialogue(access, stop)
        self._refusal: type[MpxError] = DestinationError if writing else SourceError
        self._begins = ""  # the file of which the first answer is to bring the beginning
        self._takes_ranges = True  # until it says that it does not
        self._asked_s = 0.0  # smoothed, of a question

    def _url(self, name: str) -> WebUrl:
        return self._access.url_of(name)

    def _refused(self, reply: Reply, url: WebUrl, what: str) -> MpxError:
        access = self._access
        return refused(
            reply,
            url,
            what,
            self._refusal,
            has_credentials=access.has_credentials(url.origin),
            help_text=access.how_to_log_in,
        )

    @property
    def protection(self) -> Protection:
        """See Endpoint."""
        if not self._access.origin.is_secure:
            return Protection()
        return Protection(until_s=self._access.token_expires_s)

    def foresee(self, names: Sequence[str]) -> None:
        """See Endpoint. Of one file the beginning comes with the first answer."""
        if len(names) == 1 and self._refusal is SourceError:
            self._begins = names[0]

    def check_name(self, name: str) -> None:
        """See Endpoint."""
        if "\0" in name:
            raise UsageError(f"the name {quoted(name)} contains a NUL byte; no file can have it")
        if any(part in (".", "..") for part in name.split("/")):
            raise UsageError(
                f"the name {quoted(name)} has . or .. in it, which servers resolve; name it without"
            )

    def why_fallback(self) -> str:
        """See Endpoint."""
        return ""

    def owns_streams(self) -> bool:
        """See Endpoint."""
        return True

    def admits_many(self) -> bool:
        """See Endpoint. Connections are cheap to a web server; one that refuses some says so by 503."""
        return True

    def congestions(self) -> tuple[str, ...]:
        """See Endpoint."""
        return ()

    def sends_to_servers(self) -> bool:
        """See Endpoint."""
        return False

    def why_not_congestion(self) -> Callable[[str], str]:
        """See Endpoint."""
        return lambda _: "a web server chooses the congestion control that it sends with"

    def can_restart(self) -> bool:
        """See Endpoint."""
        return self._takes_ranges

    def can_carry_parts(self) -> bool:
        """See Endpoint. What comes says which part it is; nothing stores parts."""
        return self._takes_ranges and self._refusal is SourceError

    def can_rename(self) -> bool:
        """See Endpoint."""
        return self._changes.can_rename(self.location.name)

    def can_link(self) -> bool:
        """See Endpoint."""
        return False

    def measure_rtt(self) -> Rtt | None:
        """See Endpoint. The handshake of TCP is an exchange; the kernel measures later ones."""
        connection = self._dialogue.connection(self._access.origin)
        return rtt_of(connection)

    # --- describing ----------------------------------------------------------------------------------

    def special_source(self, name: str) -> FileInfo:
        """See Endpoint."""
        raise SourceError(f"{self._url(name)} is not a file")

    def stat(self, name: str, *, follow: bool = True) -> FileInfo | None:  # noqa: ARG002  there are no links
        """See Endpoint."""
        url = self._url(name)
        if self._access.speaks_dav is None:
            if name == self._begins and (begun := self._begin(url)):
                return begun
            if self._access.speaks_dav is None:
                head = self._first_look(url)
                if head is not None and is_success(head) and not url.path.endswith("/"):
                    return self._described(head, url, url, head.told_bytes)
        if self._access.speaks_dav:
            found, is_answer = self._propfind(url)
            if is_answer:
                return found
        return self._head(url)

    def _begin(self, url: WebUrl) -> FileInfo | None:
        """Ask as _first_look, for the beginning in place of HEAD; None where that is not what comes."""
        options, begun = self._dialogue.begin("OPTIONS", url, FIRST_PIECE)
        if options is not None:
            self._access.speaks_dav = is_success(options) and bool(options.header("DAV"))
        if begun is None:
            return None
        size_bytes = _size_told(begun.reply) if begun.reply.status == 206 else None
        if size_bytes is None or url.path.endswith("/"):
            begun.connection.close()
            return None
        self._access.begin(begun)
        return self._described(begun.reply, url, url, size_bytes)

    def _first_look(self, url: WebUrl) -> Reply | None:
        """Ask whether the server speaks WebDAV, which a refusal tells, too, and describe by HEAD meanwhile.

        Returns the answer to HEAD; None where another question is needed, as that is no file or the server
        speaks WebDAV and tells more by it.
        """
        options, head = self._dialogue.ask_both("OPTIONS", "HEAD", url)
        self._access.speaks_dav = options is not None and is_success(options) and bool(options.header("DAV"))
        return None if self._access.speaks_dav else head

    def _propfind(self, url: WebUrl) -> tuple[FileInfo | None, bool]:
        """Describe by PROPFIND; tell also whether that was answered."""
        with self._dialogue.ask("PROPFIND", url, {"Depth": "0", **ASKED_AS}, PROPERTIES) as (reply, at):
            if reply.status in MISSING:
                return None, True
            if reply.status in NOT_SUPPORTED:
                self._access.speaks_dav = False
                return None, False
            if reply.status != _MULTI_STATUS:
                raise self._refused(reply, at, "describe")
            return _only(KeptBody.read(reply, str(url.origin)), at), True

    def _head(self, url: WebUrl) -> FileInfo | None:
        with self._dialogue.ask("HEAD", url) as (reply, at):
            if is_success(reply):
                return self._described(reply, url, at, reply.told_bytes)
            if reply.status in MISSING:
                return None
            if reply.status not in _NO_HEAD:
                raise self._refused(reply, at, "describe")
        with self._dialogue.ask("GET", url, {"Range": "bytes=0-0"}) as (reply, at):
            if reply.status in MISSING:
                return None
            if reply.status == 206:
                return self._described(reply, url, at, _size_told(reply))
            if reply.status == 416:  # of an empty file
                return self._described(reply, url, at, 0)
            if not is_success(reply):
                raise self._refused(reply, at, "describe")
            self._takes_ranges = False
            return self._described(reply, url, at, reply.size_bytes)

    def _described(self, reply: Reply, url: WebUrl, at: WebUrl, size_bytes: int | None) -> FileInfo:
        if reply.header("Accept-Ranges").lower() == "none":
            self._takes_ranges = False
        info = info_of_head(reply, size_bytes)
        if not url.path.endswith("/") and at.origin == url.origin and at.path == url.path + "/":
            return FileInfo(Kind.FOLDER, 0, info.modified_s)  # static servers lead to folders so
        return replace(info, tag=reply.header("ETag") if at == url else "")

    def stats(self, names: Sequence[str], *, follow: bool = True) -> list[FileInfo | MpxError | None]:  # noqa: ARG002
        """See Endpoint. The first is asked about alone, which shows how the server is to be asked."""
        found: list[FileInfo | MpxError | None] = [self._stat(name) for name in names[:1]]
        rest = [self._url(name) for name in names[1:]]
        if self._access.speaks_dav:
            answers = self._dialogue.ask_all("PROPFIND", rest, {"Depth": "0", **ASKED_AS}, PROPERTIES)
        else:
            answers = self._dialogue.ask_all("HEAD", rest)
        for name, url, answer in zip(names[1:], rest, answers, strict=True):
            found.append(self._told(name, url, *answer) if answer else self._stat(name))
        return found

    def _told(self, name: str, url: WebUrl, reply: Reply, body: bytes) -> FileInfo | MpxError | None:
        """Return what an answer tells that came with others; what it does not tell is asked alone."""
        if reply.status in MISSING:
            return None
        if reply.status == _MULTI_STATUS:
            return _only(KeptBody.of(body), url)
        if is_success(reply) and not self._access.speaks_dav:
            return self._described(reply, url, url, reply.told_bytes)
        return self._stat(name)

    def _stat(self, name: str) -> FileInfo | MpxError | None:
        """As `stat`; an error that concerns only this name is returned."""
        try:
            return self.stat(name)
        except MpxError as error:
            if error.may_retry or not isinstance(error, self._refusal):
                raise
            return error

    def sizes(self, names: Sequence[str]) -> list[int | None]:
        """See Endpoint."""
        infos = self.stats(names)
        return [info.size_bytes if isinstance(info, FileInfo) else None for info in infos]

    def entries(self, name: str) -> Iterator[tuple[str, FileInfo | MpxError]]:
        """See Endpoint. The listing comes whole before it is read."""
        url = self._url(name if name.endswith("/") else name + "/")
        with self._dialogue.ask("PROPFIND", url, {"Depth": "1", **ASKED_AS}, PROPERTIES) as (reply, at):
            if reply.status in NOT_SUPPORTED:
                raise self._refusal(
                    f"{url}: the server does not list folders (it has no WebDAV); name files, or give a "
                    "list of them with --from-file"
                )
            if reply.status != _MULTI_STATUS:
                raise self._refused(reply, at, "list")
            body = KeptBody.read(reply, str(at.origin))
        yield from children(body, at)

    def listing_note(self) -> Note | None:
        """See Endpoint."""
        return None

    # --- changing ------------------------------------------------------------------------------------

    @property
    def _changes(self) -> WebChanges:
        return WebChanges(self._dialogue, self._url, self._refused, self.stat)

    def make_folders(
        self,
        names: Sequence[str],
        *,
        replace_links: bool = False,  # noqa: ARG002  there are none
    ) -> list[bool | MpxError]:
        """See Endpoint."""
        return self._changes.make_folders(names)

    def unseal(self, names: Sequence[str]) -> dict[str, int]:  # noqa: ARG002  there are no modes
        """See Endpoint."""
        return {}

    def make_link(self, name: str, target: str) -> str:
        """See Endpoint."""
        raise DestinationError(f"cannot make the symbolic link {name} to {target}: HTTP has none")

    def remove(self, name: str) -> None:
        """See Endpoint."""
        self._changes.remove(name)

    def commit(self, files: Sequence[Commit], note: OnNote) -> list[Exception | None]:
        """See Endpoint."""
        return self._changes.commit(files, note)

    def set_times(self, folders: Sequence[Stamp], note: OnNote) -> None:  # noqa: ARG002  none can be set
        """See Endpoint."""
        note(TIMES)

    most_compared_parts = 1  # see Endpoint

    def describes_links(self) -> bool:
        """See Endpoint. There are none."""
        return True

    def stores_faithfully(self) -> bool:
        """See Endpoint."""
        return False

    def keeps_times(self) -> bool:
        """See Endpoint."""
        return False

    # --- checking ------------------------------------------------------------------------------------

    def can_checksum(self, algorithm: str, *, parts: bool = False) -> bool:  # noqa: ARG002  none at all, yet
        """See Endpoint."""
        return False

    def checksums(
        self,
        algorithm: str,
        parts: Sequence[Part],
        stop: Callable[[], bool],  # noqa: ARG002  nothing is waited for
    ) -> list[str | Exception]:
        """See Endpoint."""
        text = f"{self.location.host} computes no {algorithm}; give --checksum none to copy unverified"
        return [NoChecksum(self._refusal(text)) for _ in parts]

    def free_bytes(self, name: str) -> int | None:  # noqa: ARG002  not asked
        """See Endpoint."""
        return None

    def pause(self) -> None:
        """See Endpoint. A connection that nobody uses costs the server little, and it may close it."""

    def let_go(self) -> None:
        """See Endpoint. Who moves the data need not open it, which takes several round trips."""
        connection = self._dialogue.let_go(self._access.origin)
        if connection is not None:
            self._access.give_back(connection)

    def close(self) -> None:
        """See Endpoint."""
        self._dialogue.close()


def _only(body: KeptBody, url: WebUrl) -> FileInfo | None:
    """Return what an answer tells about one name; ConnectionLost where it tells about others, or nothing."""
    entries = list(listed(body, url))
    if len(entries) != 1:
        raise ConnectionLost(f"{url}: {len(entries)} answers to a question about one name")
    (entry,) = entries
    return None if entry.status in MISSING else info_of_entry(entry)


def rtt_of(connection: HttpConnection) -> Rtt:
    """Return the round-trip time of a connection: that of its handshake, or what the kernel has measured."""
    name = congestion_control.congestion_of(connection.socket)
    address = connection.socket.getpeername()
    return Rtt(
        connection.kernel_rtt_s or connection.connected_s,
        connection.kernel_rtt_s,
        name,
        congestion_control.is_congestion_fixed(connection.socket),
        (str(address[0]), int(address[1])),
        str(connection.socket.getsockname()[0]),
    )


def _size_told(reply: Reply) -> int | None:
    """Return the size of which a partial answer says that it is a part; None where it does not."""
    try:
        return headers.content_range(reply.header("Content-Range"))[2]
    except headers.HeaderError:
        return None
