"""Making folders, removing and renaming by WebDAV, as far as the server can."""

import math
import secrets
import time
from collections.abc import Callable, Sequence

from mpx.endpoints.web.destination_forms import SEEM_FOREIGN
from mpx.endpoints.web.dialogue import WebDialogue
from mpx.endpoints.web.folders import WebFolders
from mpx.endpoints.web.moves import WebMoves
from mpx.endpoints.web.quirks import DavQuirks
from mpx.endpoints.web.refusals import MISSING, is_success
from mpx.endpoints.web.reply import HttpReply
from mpx.endpoints.web.url import WebUrl
from mpx.engine.endpoint import Commit, FileInfo, Kind, Stamp
from mpx.engine.retry import ServerBusy
from mpx.errors import DestinationError, MpxError
from mpx.files.partial_names import partial_name
from mpx.report import OnNote

TIMES = "modification times are not kept: WebDAV has no way to set them that this server understands"
FOLDER_TIMES = "modification times of folders are not kept: WebDAV has no way to set them"
OLDER_S = 3600.0  # than now, and perhaps the clock of the server
MODES = "modes are not kept: WebDAV has none"
_NOT_THERE = (*MISSING, 409, 412)  # to who asks to rename what is not there: a server that could


class WebChanges:
    """Changes at one server. For one thread. `stat` and `stats` describe names."""

    def __init__(
        self,
        dialogue: WebDialogue,
        stat: Callable[[str], FileInfo | None],
        stats: Callable[[Sequence[str]], Sequence[FileInfo | MpxError | None]],
    ) -> None:
        self._dialogue, self._stat, self._stats = dialogue, stat, stats

    def make_folders(self, names: Sequence[str]) -> list[bool | MpxError]:
        """See Endpoint."""
        quirks, url_of = self._quirks(names), self._dialogue.access.url_of
        refused = {name: error for name in names if (error := quirks.why_not_named(name, url_of(name)))}
        asked = [name for name in names if name not in refused]
        made = iter(WebFolders(self._dialogue, self._stats, quirks).make(asked))
        return [refused[name] if name in refused else next(made) for name in names]

    def remove(self, name: str) -> None:
        """See Endpoint. A server removes a folder with all that is in it, so none is asked to."""
        url = self._dialogue.access.url_of(name)
        if self._quirks([name]).why_not_named(name, url):
            return  # it has nothing of that name, and would remove another file
        found = self._stat(name)
        if found is None:
            return
        if found.kind is Kind.FOLDER:
            raise DestinationError(f"{url} is a folder, which is not removed")
        with self._dialogue.ask("DELETE", url) as (reply, at):
            if not is_success(reply) and reply.status not in MISSING:
                raise self._dialogue.refused(reply, at, "remove")

    def commit(self, files: Sequence[Commit], note: OnNote) -> list[Exception | None]:
        """See Endpoint. What is stored is renamed; when it is synced is the server's affair."""
        moved = [file for file in files if file.partial != file.final]
        quirks = self._quirks([file.final for file in moved])
        errors = WebMoves(self._dialogue, self._stats, quirks).move(moved)
        self._look_at_times([file for file in files if file not in errors])
        self.note_unkept(files, note, gives_times=self.gives_times)
        return [errors.get(file) for file in files]

    @property
    def keeps_times(self) -> bool:
        """Whether files were seen to have the times that they were stored with."""
        quirks = self._dialogue.access.quirks
        return quirks is not None and quirks.keeps_times is True

    @property
    def gives_times(self) -> bool:
        """Whether files have the times that they were stored with, as far as nothing else was seen."""
        quirks = self._dialogue.access.quirks
        return quirks is not None and quirks.dates_files and quirks.keeps_times is not False

    def _look_at_times(self, files: Sequence[Commit]) -> None:
        """Find out whether a server that gives files their times does so, by the first that is older."""
        quirks = self._dialogue.access.quirks
        if quirks is None or not quirks.dates_files or quirks.keeps_times is not None:
            return
        for file in files:
            if file.modified_s is None or time.time() - file.modified_s < OLDER_S:
                continue  # it has about that time anyway
            (found,) = self._stats([file.final])
            if isinstance(found, FileInfo) and found.modified_s is not None:
                quirks.keeps_times = found.modified_s == math.floor(file.modified_s)
            return

    @staticmethod
    def note_unkept(files: Sequence[Commit | Stamp], note: OnNote, *, gives_times: bool = False) -> None:
        """Say what cannot be kept of what files and folders are to have."""
        if any(file.mode is not None for file in files):
            note(MODES)
        if any(file.modified_s is not None for file in files) and not gives_times:
            note(TIMES)

    def can_rename(self, name: str) -> bool:
        """Tell whether files can be renamed, by what the server says that it can do; raises ServerBusy.

        nginx with no module but its own answers OPTIONS by 405. Such a server is asked to rename what is not
        there, below the name, as a token may be for that alone. A query lets us in to one name, and beside an
        encoded slash no other name is known.
        """
        given = self._dialogue.access.given
        if given.has_query(name) or given.has_slash(name):
            return False
        if self._dialogue.access.says_dav:
            return True
        reply, at = self._options(name)
        self._check_not_busy(reply, at)
        if "MOVE" in reply.header("Allow").upper().replace(" ", "").split(",") or reply.header("DAV"):
            return True
        missing = f"{name.rstrip('/')}/{secrets.token_hex(8)}"
        names = (partial_name(missing, tag) for tag in ("0", "1"))
        source, to = (self._dialogue.access.url_of(each) for each in names)
        quirks = self._quirks([name])
        forms = quirks.forms.in_turn()
        status = self._try_to_rename(source, next(forms).of(to))
        if status in SEEM_FOREIGN and not quirks.plain_destination:
            return any(self._try_to_rename(source, form.of(to)) in _NOT_THERE for form in forms)
        return status in _NOT_THERE

    def _try_to_rename(self, source: WebUrl, destination: str) -> int:
        """Return the status of an attempt to rename what is not there; raises ServerBusy."""
        headers = {"Destination": destination, "Overwrite": "F"}
        with self._dialogue.ask("MOVE", source, headers) as (reply, at):
            self._check_not_busy(reply, at)
            return reply.status

    def _check_not_busy(self, reply: HttpReply, at: WebUrl) -> None:
        error = self._dialogue.refused(reply, at, "say what it can do with")
        if isinstance(error, ServerBusy):
            raise error

    def _options(self, name: str) -> tuple[HttpReply, WebUrl]:
        with self._dialogue.ask("OPTIONS", self._dialogue.access.url_of(name)) as (reply, at):
            return reply, at

    def _quirks(self, names: Sequence[str]) -> DavQuirks:
        """Return what is known of the server, which is asked where nothing is."""
        if self._dialogue.access.quirks is None and names:
            self._options(names[0])
        return self._dialogue.access.quirks or DavQuirks()
