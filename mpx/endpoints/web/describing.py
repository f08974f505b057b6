"""Describing files and listing folders of a web server: by WebDAV (PROPFIND), else by HEAD and GET."""

import posixpath
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from mpx.endpoints.web import headers
from mpx.endpoints.web.describe import info_of_entry, info_of_head, plain_tag
from mpx.endpoints.web.dialogue import WebDialogue
from mpx.endpoints.web.fetch import FIRST_PIECE
from mpx.endpoints.web.folder import ASKED_AS, PROPERTIES, KeptBody, NotAFolder, children, only_entry
from mpx.endpoints.web.names import HrefError, child_name, is_mapped
from mpx.endpoints.web.refusals import MISSING, NOT_SUPPORTED, has_data, is_success
from mpx.endpoints.web.reply import HttpReply
from mpx.endpoints.web.slashes import SlashedNames
from mpx.endpoints.web.url import WebUrl
from mpx.engine.endpoint import FileInfo, Kind
from mpx.engine.retry import ServerBusy
from mpx.errors import AuthenticationError, ConnectionLost, MpxError, SourceError

_FORBIDDEN = 403
_DRAINED_BYTES = 64 * 1024
_UNCLEAR = (400, 500)  # answers for what cannot be described, which is missing or not
_MULTI_STATUS, _PARTIAL, _NO_SUCH_RANGE = 207, 206, 416
_NO_HEAD = (
    400,
    403,
    405,
    501,
)  # answers to HEAD where GET may be answered: URLs signed for GET, small servers
_NOTHING_SEEN: tuple[None, None] = None, None  # ahead of a question


class WebDescriber:
    """For one thread."""

    def __init__(self, dialogue: WebDialogue, slashes: SlashedNames) -> None:
        self._slashes = slashes
        self._access, self._dialogue = dialogue.access, dialogue
        self.takes_ranges = True  # until the server says that it does not
        self.begins = ""  # the file of which the first answer is to bring the beginning
        self._seen: tuple[str | None, FileInfo | MpxError | None] = _NOTHING_SEEN

    def look(self, name: str) -> None:
        """Describe a name ahead of who is to ask for it next, for what the answer shows of the server."""
        self._seen = name, self._stat(name)

    def stat(self, name: str) -> FileInfo | None:
        """See Endpoint."""
        (seen, found), self._seen = self._seen, _NOTHING_SEEN
        if seen == name:
            if isinstance(found, MpxError):
                raise found
            return found
        spoke_dav = self._access.speaks_dav
        found = self._asked(name)
        return self._slashed(name, spoke_dav=spoke_dav) if found is None else found

    def _slashed(self, name: str, *, spoke_dav: bool | None) -> FileInfo | None:
        """Describe a name that is missing once more, with a slash at its end where it may be a folder so.

        `spoke_dav`: whether the server speaks WebDAV, as known before it was asked about the name without.
        """
        if (
            name in self._access.slashed
            or self._access.given.has_query(name)
            or not self._slashes.may_hold(name, is_dav=bool(self._access.speaks_dav))
        ):
            return None
        self._access.speaks_dav = spoke_dav  # what refuses the name without may be another place there
        try:
            found = self._asked(f"{name}/")
        except AuthenticationError:
            return None  # who may not see that name may see others; of this one it is no failure
        except MpxError as error:
            if error.may_retry or not isinstance(error, self._dialogue.kind):
                raise
            return None  # it is missing, as it was told
        if found is None or found.kind is not Kind.FOLDER:
            return None
        self._access.slashed.add(name)
        return found

    def _asked(self, name: str) -> FileInfo | None:
        """Describe a name.

        What a URL that is signed for writing does not let us see: a file, perhaps, in a folder that is there.
        Who replaces nothing has to know. Nor is the folder of a file known whose URL has an encoded slash.
        """
        if self._access.given.is_unknown(name):
            return FileInfo(Kind.FOLDER)
        try:
            return self._told_of(name)
        except MpxError as error:
            if error.may_retry or self._dialogue.kind is SourceError:
                raise
            if self._access.given.has_query(name) and self._access.options.replaces_unseen:
                return FileInfo(Kind.FILE, None)
            if not self._access.given.has_query(name) and self._access.given.holds_query(name):
                return FileInfo(Kind.FOLDER)
            raise

    def _told_of(self, name: str) -> FileInfo | None:
        """Describe a name by what the server speaks."""
        url = self._access.url_of(name)
        if self._access.speaks_dav is None:
            if name == self.begins and (begun := self._begin(url)):
                return begun
            if self._access.speaks_dav is None:
                head = self._first_look(url)
                if head is not None and has_data(head):
                    return self._described(head, url, url, head.told_bytes)
        if not self._access.speaks_dav:
            return self._head(url)
        try:
            found, is_answer = self._propfind(name, url)
        except MpxError as error:
            if error.may_retry or (plain := self._without_dav(url)) is None:
                raise
            return plain
        if not is_answer:
            return self._head(url)
        is_unclear = found is None and self._may_be_there and not self._is_folder_above(url)
        return self._without_dav(url) if is_unclear else found

    @property
    def _is_maybe_plain(self) -> bool:
        """Whether the user has not said that the server speaks WebDAV."""
        return self._access.location.scheme in ("http", "https")

    @property
    def _may_be_there(self) -> bool:
        """Whether a source that WebDAV does not find may be there all the same."""
        return self._is_maybe_plain and self._dialogue.kind is SourceError

    def _is_folder_above(self, url: WebUrl) -> bool:
        """Tell whether WebDAV describes a folder above a URL, as far as it lets us ask about them.

        Then what it does not find is missing, whatever page a site sends for names that it does not know.
        """
        path = url.path
        while path.strip("/"):
            path = posixpath.dirname(path.rstrip("/")).rstrip("/") + "/"
            above = replace(url, target=path)
            with self._dialogue.ask("PROPFIND", above, {"Depth": "0", **ASKED_AS}, PROPERTIES) as (reply, at):
                if reply.status == _MULTI_STATUS:
                    if self._only(KeptBody.read(reply, str(url.origin)), at) is not None:
                        return True
                elif reply.status not in MISSING:
                    return False
        return False

    def _without_dav(self, url: WebUrl) -> FileInfo | None:
        """Describe what WebDAV does not, which may be for authors of a site; None for all but a file."""
        if not self._is_maybe_plain:
            return None
        try:
            found = self._head(url)
        except MpxError as error:
            if error.may_retry:
                raise
            return None
        if found is None or found.kind is not Kind.FILE:
            return None
        self._access.speaks_dav = False
        return found

    def _begin(self, url: WebUrl) -> FileInfo | None:
        """Ask as _first_look, for the beginning in place of HEAD; None where that is not what comes."""
        options, begun = self._dialogue.begin("OPTIONS", url, FIRST_PIECE)
        try:
            self._note_dav(options, url)
        except ServerBusy:
            if begun is not None:
                begun.connection.close()
            raise
        if begun is None:
            return None
        size_bytes = _size_told(begun.reply) if begun.reply.status == _PARTIAL else None
        if size_bytes is None or _names_folder(url):
            begun.connection.close()
            return None
        self._access.begin(begun)
        return self._described(begun.reply, url, url, size_bytes)

    def _first_look(self, url: WebUrl) -> HttpReply | None:
        """Ask whether the server speaks WebDAV, which a refusal tells, too, and describe by HEAD meanwhile.

        Returns the answer to HEAD; None where another question is needed, as that is no file or the server
        speaks WebDAV and tells more by it.
        """
        options, head = self._dialogue.ask_both("OPTIONS", "HEAD", url)
        self._note_dav(options, url)
        if self._access.speaks_dav is None:  # as that was not answered
            self._access.speaks_dav = False
        return None if self._access.speaks_dav else head

    def _note_dav(self, options: HttpReply | None, url: WebUrl) -> None:
        """Note whether the server speaks WebDAV, as an answer tells; ServerBusy where that tells nothing."""
        if options is None:
            return
        if isinstance(error := self._dialogue.refused(options, url, "say what it can do with"), ServerBusy):
            raise error
        self._access.says_dav = is_success(options) and bool(options.header("DAV"))
        self._access.speaks_dav = self._access.says_dav

    def _propfind(self, name: str, url: WebUrl) -> tuple[FileInfo | None, bool]:
        """Describe by PROPFIND; tell also whether that was answered."""
        with self._dialogue.ask("PROPFIND", url, {"Depth": "0", **ASKED_AS}, PROPERTIES) as (reply, at):
            if reply.status in MISSING:
                return None, True
            if reply.status in NOT_SUPPORTED:
                self._access.speaks_dav = False
                return None, False
            if reply.status == _MULTI_STATUS:
                return self._only(KeptBody.read(reply, str(url.origin)), at), True
            error = self._dialogue.refused(reply, at, "describe")
        if reply.status not in _UNCLEAR or not self._is_missing(name, error):
            raise error
        return None, True

    def _only(self, body: KeptBody, url: WebUrl) -> FileInfo | None:
        """Return what an answer tells about one name; ConnectionLost for one about others, or none."""
        entry = only_entry(body, url)
        if entry is None:
            raise ConnectionLost(f"{url}: the server answers about other names, or none")
        if self._access.quirks and is_mapped(entry.href, url.path):
            self._access.quirks.is_mapped = True
        return None if entry.status in MISSING else info_of_entry(entry)

    def _is_missing(self, name: str, error: MpxError) -> bool:
        """Tell whether a name that the server does not describe cannot be there, by what is above it.

        Apache and XRootD do not tell what is below a file from what fails. A server that describes the folder
        has no failure of its own, and more attempts will not help: then an error of the name is raised.
        """
        folder = posixpath.dirname(name.rstrip("/"))
        if folder in ("", "/"):
            return False
        above = self.stat(folder)
        if above is not None and above.kind is Kind.FOLDER:
            raise self._dialogue.kind(str(error))
        return True

    def _head(self, url: WebUrl) -> FileInfo | None:
        with self._dialogue.ask("HEAD", url) as (reply, at):
            if _is_folder_of(url, at) and reply.status not in MISSING:
                return FileInfo(Kind.FOLDER)
            if has_data(reply):
                return self._described(reply, url, at, reply.told_bytes)
            if reply.status in MISSING:
                return None
            if reply.status not in _NO_HEAD and not is_success(reply):
                raise self._dialogue.refused(reply, at, "describe")
        if reply.status == _FORBIDDEN and _names_folder(url):
            if not url.path.strip("/"):
                return FileInfo(Kind.FOLDER)
            found = self._head(replace(url, target=url.path.rstrip("/")))  # which leads here, of a folder
            if found is None or found.kind is Kind.FOLDER:
                return found
        with self._dialogue.ask("GET", url, {"Range": "bytes=0-0"}) as (reply, at):
            if reply.status in MISSING:
                return None
            if reply.status == _PARTIAL:
                return self._described(reply, url, at, _size_told(reply))
            if reply.status == _NO_SUCH_RANGE:  # of an empty file
                return self._described(reply, url, at, 0)
            if not has_data(reply):
                raise self._dialogue.refused(reply, at, "describe")
            self.takes_ranges = False
            return self._described(reply, url, at, reply.size_bytes)

    def _described(self, reply: HttpReply, url: WebUrl, at: WebUrl, size_bytes: int | None) -> FileInfo:
        if _names_folder(url) and _names_folder(at):  # what comes is a page about it
            return FileInfo(Kind.FOLDER)
        if reply.header("Accept-Ranges").lower() == "none":
            self.takes_ranges = False
        info = info_of_head(reply, size_bytes)
        return replace(info, tag=plain_tag(reply.header("ETag")) if at == url else "")

    def stats(self, names: Sequence[str]) -> list[FileInfo | MpxError | None]:
        """See Endpoint. The first is asked about alone where it is to show how the server is to be asked."""
        if self._access.given.has_slashes:
            return [self._stat(name) for name in names]
        alone = int(self._access.speaks_dav is None or self._access.quirks is None)
        found: list[FileInfo | MpxError | None] = [self._stat(name) for name in names[:alone]]
        rest = [self._access.url_of(name) for name in names[alone:]]
        if self._access.speaks_dav:
            answers = self._dialogue.ask_all("PROPFIND", rest, {"Depth": "0", **ASKED_AS}, PROPERTIES)
        else:
            answers = self._dialogue.ask_all("HEAD", rest)
        # All answers first: what one of them does not tell is asked alone.
        for name, url, answer in zip(names[alone:], rest, list(answers), strict=True):
            found.append(self._told(name, url, *answer) if answer else self._stat(name))
        return found

    def _told(self, name: str, url: WebUrl, reply: HttpReply, body: bytes) -> FileInfo | MpxError | None:
        """Return what an answer tells that came with others; what it does not tell is asked alone."""
        speaks_dav = self._access.speaks_dav
        if reply.status in MISSING and not (speaks_dav and self._may_be_there):
            return self._slashed(name, spoke_dav=speaks_dav)
        if reply.status == _MULTI_STATUS:
            return self._only(KeptBody.of(body), url)
        if has_data(reply) and not speaks_dav:
            return self._described(reply, url, url, reply.told_bytes)
        return self._stat(name)

    def _stat(self, name: str) -> FileInfo | MpxError | None:
        """As `stat`; an error that concerns only this name is returned."""
        try:
            return self.stat(name)
        except MpxError as error:
            if error.may_retry or not isinstance(error, self._dialogue.kind):
                raise
            return error

    def entries(self, name: str) -> Iterator[tuple[str, FileInfo | MpxError]]:
        """See Endpoint. The listing comes whole before it is read."""
        url = self._access.url_of(name if name.endswith("/") else name + "/")
        with self._dialogue.ask("PROPFIND", url, {"Depth": "1", **ASKED_AS}, PROPERTIES) as (reply, at):
            if reply.status in NOT_SUPPORTED:
                raise self._dialogue.kind(
                    f"{url}: the server does not list folders (it has no WebDAV); name files, or give a "
                    "list of them with --from-file"
                )
            if reply.status != _MULTI_STATUS:
                raise self._why_not_listed(name, reply, self._dialogue.refused(reply, at, "list"))
            body = KeptBody.read(reply, str(at.origin))
        try:
            yield from children(body, at, partial(self._is_encoded, name))
        except NotAFolder as error:
            raise self._dialogue.kind(str(error)) from None

    def _is_encoded(self, name: str, href: str, folder: str) -> bool:
        """Tell whether an href of a listing is encoded, by whether the name that it is else is there.

        Of a server that may list names as they are that is asked once, where it makes a difference.
        """
        quirks = self._access.quirks
        if quirks is None or quirks.lists_plain is not None:
            return quirks is None or not quirks.lists_plain
        plain, unencoded = (_child(href, folder, is_encoded=each) for each in (False, True))
        if plain == unencoded or plain == "":
            return True
        is_itself = plain is None
        quirks.lists_plain = is_itself or isinstance(self._stat(posixpath.join(name, plain or "")), FileInfo)
        return not quirks.lists_plain

    def _why_not_listed(self, name: str, reply: HttpReply, error: MpxError) -> MpxError:
        """Return what an answer means, where servers do not say whether the name is that of a folder."""
        if reply.status not in _UNCLEAR:
            return error
        reply.read(_DRAINED_BYTES)  # before another question
        found = self.stat(name.rstrip("/"))
        if found is None or found.kind is Kind.FOLDER:
            return error
        return self._dialogue.kind(f"{self._access.url_of(name)} is not a folder")


def _child(href: str, folder: str, *, is_encoded: bool) -> str | None:
    """As child_name; empty where that is none."""
    try:
        return child_name(href, folder, is_encoded=is_encoded)
    except HrefError:
        return ""


def _is_folder_of(url: WebUrl, at: WebUrl) -> bool:
    """Tell whether a URL leads to itself with a slash, as static servers do with folders."""
    return not url.path.endswith("/") and at.origin == url.origin and at.path == url.path + "/"


def _names_folder(url: WebUrl) -> bool:
    """Tell whether a URL is that of a folder, as people write them; with a query it may be that of a file."""
    return url.target.endswith("/") and "?" not in url.target


def _size_told(reply: HttpReply) -> int | None:
    """Return the size of which a partial answer says that it is a part; None where it does not."""
    try:
        return headers.content_range(reply.header("Content-Range"))[2]
    except headers.HeaderError:
        return None
