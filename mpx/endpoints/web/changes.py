"""Making folders, removing and renaming by WebDAV: several questions at once, where the server takes them."""

import posixpath
from collections.abc import Callable, Sequence

from mpx.endpoints.web.connection import WebRequest
from mpx.endpoints.web.dialogue import WebDialogue
from mpx.endpoints.web.refusals import MISSING, NOT_SUPPORTED, is_success
from mpx.endpoints.web.reply import Reply
from mpx.endpoints.web.url import WebUrl
from mpx.engine.endpoint import Commit, FileInfo, Kind
from mpx.errors import DestinationError, MpxError
from mpx.report import OnNote

TIMES = "modification times are not kept: WebDAV has no way to set them that this server understands"
_NO_PARENT, _MULTI_STATUS = 409, 207


class WebChanges:
    """Changes at one server. For one thread.

    `refused(reply, url, what)` makes the error of a refusal; `stat` describes a name.
    """

    def __init__(
        self,
        dialogue: WebDialogue,
        url_of: Callable[[str], WebUrl],
        refused: Callable[[Reply, WebUrl, str], MpxError],
        stat: Callable[[str], FileInfo | None],
    ) -> None:
        self._dialogue, self._url_of, self._refused, self._stat = dialogue, url_of, refused, stat

    def make_folders(self, names: Sequence[str]) -> list[bool | MpxError]:
        """See Endpoint. All are asked for together, in their order; what is refused is looked at alone."""
        urls = [self._url_of(name.rstrip("/") + "/") for name in names]
        answers = self._dialogue.ask_all("MKCOL", urls)
        made: list[bool | None] = []
        for answer in answers:  # whoever asks another thing meanwhile would read what belongs to these
            made.append(True if answer and answer[0].status == 201 else None)
        return [
            self._make_folder(name) if done is None else done for name, done in zip(names, made, strict=True)
        ]

    def _make_folder(self, name: str) -> bool | MpxError:
        """Make a folder alone, and its missing parents; False where it is there."""
        found = self._stat(name)
        if found is not None and found.kind is Kind.FOLDER:
            return False
        url = self._url_of(name.rstrip("/") + "/")
        with self._dialogue.ask("MKCOL", url) as (reply, at):
            if is_success(reply):
                return True
            error = self._refused(reply, at, "make the folder")
            may_be_there = reply.status in NOT_SUPPORTED
            may_lack_parent = reply.status == _NO_PARENT or reply.status in MISSING
        if may_be_there and (now := self._stat(name)) is not None and now.kind is Kind.FOLDER:
            return True  # made over a connection that ended before its answer
        parent = posixpath.dirname(name.rstrip("/"))
        if found is not None or not may_lack_parent or parent in ("", "/") or self._stat(parent) is not None:
            return error
        above = self._make_folder(parent)
        if isinstance(above, MpxError):
            return above
        with self._dialogue.ask("MKCOL", url) as (reply, at):
            return True if is_success(reply) else self._refused(reply, at, "make the folder")

    def remove(self, name: str) -> None:
        """See Endpoint."""
        url = self._url_of(name)
        with self._dialogue.ask("DELETE", url) as (reply, at):
            if not is_success(reply) and reply.status not in MISSING:
                raise self._refused(reply, at, "remove")

    def commit(self, files: Sequence[Commit], note: OnNote) -> list[Exception | None]:
        """See Endpoint. What is stored is renamed; when it is synced is the server's affair."""
        if any(file.modified_s is not None for file in files):
            note(TIMES)
        moved = [file for file in files if file.partial != file.final]
        answers = self._dialogue.ask_each([self._move(file) for file in moved])
        done = [answer is not None and _is_moved(answer[0]) for answer in answers]
        errors = {
            file: self._move_alone(file) for file, is_done in zip(moved, done, strict=True) if not is_done
        }
        return [errors.get(file) for file in files]

    def _move(self, file: Commit) -> WebRequest:
        return self._dialogue.access.request("MOVE", self._url_of(file.partial), self._to(file))

    def _to(self, file: Commit) -> dict[str, str]:
        to = self._url_of(file.final)
        return {"Destination": f"{to.origin}{to.target}", "Overwrite": "T"}

    def _move_alone(self, file: Commit) -> MpxError | None:
        """Give a file its final name, replacing what has it; return what kept it from that.

        It may have been given it already, over a connection that was lost before the answer.
        """
        with self._dialogue.ask("MOVE", self._url_of(file.partial), self._to(file)) as (reply, at):
            if _is_moved(reply):
                return None
            error = self._refused(reply, at, f"give the name {self._url_of(file.final).path} to")
            if reply.status in MISSING:
                error = DestinationError(f"{error}; it was to get the name {self._url_of(file.final).path}")
            if reply.status in NOT_SUPPORTED:
                return DestinationError(f"{error}; give --in-place, which needs no rename")
        if reply.status in MISSING and file.size_bytes is not None:
            there = self._stat(file.final)
            if there is not None and there.size_bytes == file.size_bytes and self._stat(file.partial) is None:
                return None
        return error

    def can_rename(self, name: str) -> bool:
        """Tell whether files can be renamed, by what the server says that it can do.

        One that does not say so to us, as it refuses the question, is believed to be what the URL says.
        """
        with self._dialogue.ask("OPTIONS", self._url_of(name)) as (reply, at):
            if reply.status in NOT_SUPPORTED:
                return False
            error = self._refused(reply, at, "say what it can do with")
            if error.may_retry:
                raise error
            if not is_success(reply):
                return bool(self._dialogue.access.speaks_dav)
            return "MOVE" in reply.header("Allow").upper().replace(" ", "").split(",") or bool(
                reply.header("DAV")
            )


def _is_moved(reply: Reply) -> bool:
    """Tell whether a file has its new name: 207 says that something was not done."""
    return is_success(reply) and reply.status != _MULTI_STATUS
