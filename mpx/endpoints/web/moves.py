"""Giving files their final names by WebDAV (MOVE), several at once.

`Overwrite: T` has a server remove a folder that is in the way, with all that is in it (RFC 4918, 9.9.3): so
it is sent only where what is in the way was seen to be none, and never where nothing is to be replaced.
"""

import posixpath
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from mpx.endpoints.web.connection import WebRequest
from mpx.endpoints.web.dialogue import WebDialogue
from mpx.endpoints.web.quirks import BAD_GATEWAY, BAD_REQUEST, DavQuirks
from mpx.endpoints.web.refusals import MISSING, NOT_SUPPORTED, is_success
from mpx.endpoints.web.reply import HttpReply
from mpx.engine.endpoint import Commit, FileInfo, Kind
from mpx.errors import DestinationError, IsThere, MpxError

_MULTI_STATUS, _IN_THE_WAY, _SERVER_ERROR = 207, 412, 500
_UNKNOWN_FOLDER = (403, 409, 500)
_IN_PLACE = "--in-place writes under the final name at once"


class WebMoves:
    """For one thread. `stats` describes names."""

    def __init__(
        self,
        dialogue: WebDialogue,
        stats: Callable[[Sequence[str]], Sequence[FileInfo | MpxError | None]],
        quirks: DavQuirks,
    ) -> None:
        self._dialogue, self._stats, self._quirks = dialogue, stats, quirks
        self._url_of = dialogue.access.url_of
        self._is_foreign = False  # the server itself takes itself for another one, however it is named

    def move(self, files: Sequence[Commit]) -> dict[Commit, MpxError]:
        """Give files their final names, replacing what has these; return what kept some from theirs."""
        unfit = self._quirks.unfit
        errors = {file: self._unfit(file) for file in files if unfit and unfit.search(file.final)}
        plain = []
        for file in (file for file in files if file not in errors):
            if self._quirks.misnames:
                errors[file] = self._elsewhere(file)
            elif not self._quirks.unproven(file.final):
                plain.append(file)
            elif error := self._move_all([file]).get(file) or self._prove(file):
                errors[file] = error
        return errors | self._move_all(plain)

    def _move_all(self, files: Sequence[Commit]) -> dict[Commit, MpxError]:
        left = self._asked_first(files)
        errors: dict[Commit, MpxError] = {}
        for file, there in zip(left, self._stats([file.final for file in left]), strict=True):
            if isinstance(there, FileInfo) and there.kind is Kind.FOLDER:
                what = f"{self._url_of(file.final)} is a folder, which no file replaces"
                errors[file] = DestinationError(f"{what}; remove it, or copy to another name")
            elif there is None and left[file] == _IN_THE_WAY:
                errors[file] = self._elsewhere(file)
            elif left[file] == _IN_THE_WAY and not file.replaces:
                errors[file] = IsThere(str(self._url_of(file.final)))
        again = [file for file in left if file not in errors]
        for file in (
            *self._asked([file for file in again if file.replaces], overwrite=True),
            *(file for file in again if not file.replaces),
        ):
            if error := self._move_alone(file):
                errors[file] = error
        return errors

    def _asked_first(self, files: Sequence[Commit]) -> dict[Commit, int]:
        """As `_asked`, replacing nothing; one that seems to go elsewhere is written otherwise."""
        left = self._asked(files, overwrite=False)
        if self._quirks.plain_destination or not _seem_foreign(left):
            return left
        seen = set(left.values())
        for _ in self._quirks.other_forms():
            left = self._asked(list(left), overwrite=False)
            if not _seem_foreign(left):
                return left
            seen |= set(left.values())
        self._is_foreign = BAD_REQUEST in seen
        return left

    def _asked(self, files: Sequence[Commit], *, overwrite: bool) -> dict[Commit, int]:
        """Ask for all together; return the status of those not shown to have their names (0: none)."""
        answers = list(self._dialogue.ask_each([self._request(file, overwrite=overwrite) for file in files]))
        statuses = [0 if answer is None else answer[0].status for answer in answers]
        done = [answer is not None and _is_moved(answer[0]) for answer in answers]
        return {
            file: status for file, status, is_done in zip(files, statuses, done, strict=True) if not is_done
        }

    def _request(self, file: Commit, *, overwrite: bool) -> WebRequest:
        access = self._dialogue.access
        return access.request("MOVE", self._url_of(file.partial), self._headers(file, overwrite=overwrite))

    def _headers(self, file: Commit, *, overwrite: bool) -> dict[str, str]:
        to = self._url_of(file.final)
        if self._quirks.plain_destination:
            plain = file.final.encode("utf-8", "surrogateescape").decode("latin-1")  # as headers are sent
            to = replace(to, target=plain)
        return {"Destination": self._quirks.destination(to), "Overwrite": "T" if overwrite else "F"}

    def _move_alone(self, file: Commit) -> MpxError | None:
        """Give a file its final name, which no folder has; return what kept it from that.

        It may have been given it already, over a connection that was lost before the answer.
        """
        headers = self._headers(file, overwrite=file.replaces)
        with self._dialogue.ask("MOVE", self._url_of(file.partial), headers) as (reply, at):
            if _is_moved(reply):
                return None
            final = self._url_of(file.final).path
            error = self._dialogue.refused(reply, at, f"give the name {final} to")
            if reply.status in MISSING:
                error = DestinationError(f"{error}; it was to get the name {final}")
            elif self._is_foreign and reply.status == BAD_GATEWAY:
                error = DestinationError(f"{error}; behind a proxy it takes that for another server")
            elif self._quirks.is_mapped and reply.status in _UNKNOWN_FOLDER:
                error = DestinationError(f"{error}; a proxy maps a folder to it; {_IN_PLACE}")
            elif reply.status == _IN_THE_WAY and not file.replaces:
                error = IsThere(str(self._url_of(file.final)))
            if reply.status in NOT_SUPPORTED or self._is_foreign:
                error = DestinationError(f"{error}; {_IN_PLACE}")
        if reply.status in (*MISSING, _IN_THE_WAY) and file.size_bytes is not None:
            there, partial = self._stats([file.final, file.partial])
            if isinstance(there, FileInfo) and there.size_bytes == file.size_bytes and partial is None:
                return None
        if reply.status == _SERVER_ERROR:
            folder = posixpath.dirname(file.final)
            if self._stats([folder]) == [None]:
                return DestinationError(f"{error}; the folder {self._url_of(folder)} does not exist")
        return error

    # --- servers that do not decode where a file is to go ---------------------------------------------

    def _prove(self, file: Commit) -> MpxError | None:
        """Look whether a file has its name, as the server says."""
        unproven = self._quirks.unproven(file.final)
        if self._stats([file.final]) == [None]:
            self._quirks.misnames = unproven == {"/"}
            return self._elsewhere(file)
        self._quirks.proven |= unproven
        return None

    def _elsewhere(self, file: Commit) -> MpxError:
        return DestinationError(
            f"{self._url_of(file.final)}: the server takes this for another name when it renames to it; "
            f"{_IN_PLACE}"
        )

    def _unfit(self, file: Commit) -> MpxError:
        return DestinationError(
            f"{self._url_of(file.final)}: this server renames to no name with such characters; {_IN_PLACE}"
        )


def _seem_foreign(statuses: Mapping[Commit, int]) -> bool:
    return any(status in (BAD_REQUEST, BAD_GATEWAY) for status in statuses.values())


def _is_moved(reply: HttpReply) -> bool:
    """Tell whether a file has its new name: 207 says that something was not done."""
    return is_success(reply) and reply.status != _MULTI_STATUS
