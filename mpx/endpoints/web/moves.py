"""Giving files their final names by WebDAV (MOVE), several at once.

`Overwrite: T` has a server remove a folder that is in the way, with all that is in it (RFC 4918, 9.9.3): so
it is sent only where what is in the way was seen to be none, and never where nothing is to be replaced.
"""

import posixpath
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from mpx.endpoints.web.connection import WebRequest
from mpx.endpoints.web.destination_forms import BAD_GATEWAY, BAD_REQUEST, SEEM_FOREIGN, DestinationForm
from mpx.endpoints.web.dialogue import WebDialogue
from mpx.endpoints.web.quirks import DavQuirks
from mpx.endpoints.web.refusals import MISSING, NOT_SUPPORTED, is_success
from mpx.endpoints.web.reply import HttpReply
from mpx.endpoints.web.url import WebUrl
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
        refused = {file: left[file] for file in left if left[file] in SEEM_FOREIGN and file not in errors}
        others = [file for file in left if file not in refused and file not in errors]
        known, replacing = self._quirks.forms.first(), [file for file in others if file.replaces]
        again = [
            *self._asked(replacing, known, overwrite=True),
            *(file for file in others if not file.replaces),
        ]
        for file, status in (*refused.items(), *((file, 0) for file in again)):
            if error := self._move_alone(file, status):
                errors[file] = error
        return errors

    def _asked_first(self, files: Sequence[Commit]) -> dict[Commit, int]:
        """As `_asked`, replacing nothing, and in each form for a file that seems to go elsewhere.

        One that seems so in each form has the status 400 where any answer had.
        """
        left: dict[Commit, int] = {}
        foreign = list(files)
        for form in self._forms():
            now = self._asked(foreign, form, overwrite=False)
            for file in foreign:
                status, before = now.get(file), left.pop(file, 0)
                if status is not None:
                    left[file] = BAD_REQUEST if {status, before} == {BAD_REQUEST, BAD_GATEWAY} else status
            foreign = [file for file in foreign if now.get(file) in SEEM_FOREIGN]
            if not foreign:
                break
        return left

    def _forms(self) -> Iterator[DestinationForm]:
        """Give the forms of a Destination to try."""
        if self._quirks.plain_destination:
            return iter((DestinationForm.URL,))
        return self._quirks.forms.in_turn()

    def _asked(self, files: Sequence[Commit], form: DestinationForm, *, overwrite: bool) -> dict[Commit, int]:
        """Ask for all together; return the status of those not shown to have their names (0: none)."""
        requests = [self._request(file, form, overwrite=overwrite) for file in files]
        left = {}
        for file, answer in zip(files, list(self._dialogue.ask_each(requests)), strict=True):
            if answer is None or not self._is_moved(answer[0], form):
                left[file] = 0 if answer is None else answer[0].status
        return left

    def _is_moved(self, reply: HttpReply, form: DestinationForm) -> bool:
        """Tell whether a file has its new name: 207 says that something was not done."""
        is_moved = is_success(reply) and reply.status != _MULTI_STATUS
        if is_moved or reply.status == _IN_THE_WAY:
            self._quirks.forms.taken(form)
        return is_moved

    def _request(self, file: Commit, form: DestinationForm, *, overwrite: bool) -> WebRequest:
        headers = self._headers(file, form, overwrite=overwrite)
        return self._dialogue.access.request("MOVE", self._url_of(file.partial), headers)

    def _headers(self, file: Commit, form: DestinationForm, *, overwrite: bool) -> dict[str, str]:
        to = self._url_of(file.final)
        if self._quirks.plain_destination:
            plain = file.final.encode("utf-8", "surrogateescape").decode("latin-1")  # as headers are sent
            to = replace(to, target=plain)
        return {"Destination": form.of(to), "Overwrite": "T" if overwrite else "F"}

    def _move_alone(self, file: Commit, status: int) -> MpxError | None:
        """Give a file its final name, which no folder has; return what kept it from that.

        It may have been given it already, over a connection that was lost before the answer. `status`: that
        it was answered in each form of a Destination, else it is tried in these.
        """
        seen = {status}
        for form in [self._quirks.forms.first()] if status in SEEM_FOREIGN else self._forms():
            headers = self._headers(file, form, overwrite=file.replaces)
            with self._dialogue.ask("MOVE", self._url_of(file.partial), headers) as (reply, at):
                if self._is_moved(reply, form):
                    return None
                seen.add(reply.status)
                is_foreign = BAD_REQUEST in seen and not self._knows_form
                error = self._why_not(file, reply, at, is_foreign=is_foreign)
            if reply.status not in SEEM_FOREIGN:
                break
        if reply.status in (*MISSING, _IN_THE_WAY) and file.size_bytes is not None:
            there, partial = self._stats([file.final, file.partial])
            if isinstance(there, FileInfo) and there.size_bytes == file.size_bytes and partial is None:
                return None
        if reply.status == _SERVER_ERROR:
            folder = posixpath.dirname(file.final)
            if self._stats([folder]) == [None]:
                return DestinationError(f"{error}; the folder {self._url_of(folder)} does not exist")
        return error

    def _why_not(self, file: Commit, reply: HttpReply, at: WebUrl, *, is_foreign: bool) -> MpxError:
        """Return what an answer means; `is_foreign`: the server takes itself for another one in each form."""
        final = self._url_of(file.final).path
        error = self._dialogue.refused(reply, at, f"give the name {final} to")
        if reply.status in MISSING:
            error = DestinationError(f"{error}; it was to get the name {final}")
        elif is_foreign and reply.status == BAD_GATEWAY:
            error = DestinationError(f"{error}; behind a proxy it takes that for another server")
        elif self._quirks.is_mapped and reply.status in _UNKNOWN_FOLDER:
            error = DestinationError(f"{error}; a proxy maps a folder to it; {_IN_PLACE}")
        elif reply.status == _IN_THE_WAY and not file.replaces:
            error = IsThere(str(self._url_of(file.final)))
        if reply.status in NOT_SUPPORTED or is_foreign:
            error = DestinationError(f"{error}; {_IN_PLACE}")
        return error

    @property
    def _knows_form(self) -> bool:
        return self._quirks.plain_destination or self._quirks.forms.is_known

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
