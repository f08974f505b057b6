"""Making folders by WebDAV (MKCOL): all are asked for at once; what is refused is looked at alone.

Some servers say that they have made a folder which was there: what is in it would be replaced unseen. So the
first one of a copy is asked for twice, and where that goes well folders are looked for before they are made.
"""

import posixpath
from collections.abc import Callable, Sequence

from mpx.endpoints.web.dialogue import WebDialogue
from mpx.endpoints.web.quirks import DavQuirks
from mpx.endpoints.web.refusals import MISSING, is_success
from mpx.endpoints.web.reply import HttpReply
from mpx.endpoints.web.url import WebUrl
from mpx.engine.endpoint import FileInfo, Kind
from mpx.errors import MpxError

_CREATED, _IS_THERE, _NO_PARENT = 201, 405, 409
_Answer = tuple[HttpReply, bytes] | None  # see WebDialogue.ask_each
_UNCLEAR = 500  # what XRootD and WsgiDAV say whatever is wrong with a name


class WebFolders:
    """For one thread. `stats` describes names."""

    def __init__(
        self,
        dialogue: WebDialogue,
        stats: Callable[[Sequence[str]], Sequence[FileInfo | MpxError | None]],
        quirks: DavQuirks,
    ) -> None:
        self._dialogue, self._stats, self._quirks = dialogue, stats, quirks

    def make(self, names: Sequence[str]) -> list[bool | MpxError]:
        """See Endpoint.make_folders."""
        may_be_there = names if self._quirks.hides_new else []
        there = {
            name
            for name, found in zip(may_be_there, self._stats(may_be_there), strict=True)
            if isinstance(found, FileInfo) and found.kind is Kind.FOLDER
        }
        asked = [name for name in names if name not in there]
        twice = asked[:1] if not (self._quirks.hides_new or self._quirks.shows_new) else []
        answers = self._answers(asked, twice)
        results: dict[str, bool | MpxError] = dict.fromkeys(there, False)
        filled: set[str] = set()  # folders that something was made in
        for name in asked:
            is_made = answers[name] == _CREATED
            # What a server that hides it is asked for unseen, this once, may have been there.
            is_empty = _plain(name) not in filled and not (twice and self._quirks.hides_new)
            results[name] = is_empty if is_made else self._make_alone(name)
            filled.update(_above(name))
        return [results[name] for name in names]

    def _answers(self, names: Sequence[str], twice: Sequence[str]) -> dict[str, int]:
        """Ask for all; return the status of each answer (0: none). Folders go before what is in them.

        `twice`: the first of them, which is asked for once more, or none.
        """
        levels: dict[int, list[str]] = {}
        for name in names:
            levels.setdefault(0 if self._dialogue.keeps_order else _plain(name).count("/"), []).append(name)
        statuses: dict[str, int] = {}
        seconds: list[int] = []
        for _, level in sorted(levels.items()):
            again = twice if self._dialogue.keeps_order else []
            found = self._statuses([*level, *again])
            statuses.update(zip(level, found, strict=False))
            seconds = found[len(level) :]
        if twice:
            self._compare(statuses[twice[0]], (seconds or self._statuses(twice))[0])
        return statuses

    def _statuses(self, names: Sequence[str]) -> list[int]:
        answers = self._dialogue.ask_all("MKCOL", [self._url(name) for name in names])
        return [answer[0].status if answer else 0 for answer in answers]

    def _compare(self, first: int, second: int) -> None:
        """Take what a server has answered to who asks for a folder, and for the same once more."""
        self._quirks.hides_new = (first, second) == (_CREATED, _CREATED)
        self._quirks.shows_new = first == _IS_THERE or (
            first == _CREATED and second in (_IS_THERE, _NO_PARENT)
        )

    def _url(self, name: str) -> WebUrl:
        return self._dialogue.access.url_of(_plain(name) + "/")

    def _find(self, name: str) -> FileInfo | None:
        """Describe one name; raises what keeps it from being told."""
        (found,) = self._stats([name])
        if isinstance(found, MpxError):
            raise found
        return found

    def _make_alone(self, name: str) -> bool | MpxError:
        """Make a folder, and its missing parents; False where it is there."""
        try:
            found = self._find(name)
            if found is not None:
                return self._in_the_way(name) if found.kind is not Kind.FOLDER else False
            refusal = self._ask(name)
            if refusal is None:
                return True
            status, error = refusal
            if status == _IS_THERE and self._is_there_now(name):
                return False
            parent = posixpath.dirname(_plain(name))
            above = self._find(parent) if parent not in ("", "/") else FileInfo(Kind.FOLDER)
            if above is not None and above.kind is not Kind.FOLDER:
                return self._in_the_way(parent)
            if above is not None:  # so that nothing else fails there
                return self._dialogue.kind(str(error)) if status == _UNCLEAR else error
            if status not in (_NO_PARENT, _UNCLEAR, *MISSING):
                return error
        except MpxError as failed:
            if failed.may_retry or not isinstance(failed, self._dialogue.kind):
                raise
            return failed
        made = self._make_alone(parent)
        if isinstance(made, MpxError):
            return made
        again = self._ask(name)
        return again[1] if again else True

    def _is_there_now(self, name: str) -> bool:
        """Tell whether a folder that the server does not make (405) is there, after it was not found.

        Others may have made it, or it is served by its name with a slash only. A server without PROPFIND need
        not describe folders at all, nor make them: RFC 4918 (9.3.1) has 405 mean that one is there, and where
        it means that there is no MKCOL, a PUT may make what is above a file.
        """
        if self._find(name) is not None:
            return True
        return not self._dialogue.access.speaks_dav or self._find(_plain(name) + "/") is not None

    def _in_the_way(self, name: str) -> MpxError:
        url = self._dialogue.access.url_of(name)
        return self._dialogue.kind(f"{url} is a file, so no folder can have that name")

    def _ask(self, name: str) -> tuple[int, MpxError] | None:
        """Ask for one; return the status that refuses it, and what that means."""
        with self._dialogue.ask("MKCOL", self._url(name)) as (reply, at):
            if is_success(reply):
                return None
            return reply.status, self._dialogue.refused(reply, at, "make the folder")


def _plain(name: str) -> str:
    return name.rstrip("/")


def _above(name: str) -> list[str]:
    """Return the folders that a name is below of."""
    parts = _plain(name).split("/")
    return ["/".join(parts[:count]) for count in range(1, len(parts))]
