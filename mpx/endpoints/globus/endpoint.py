"""The files of a collection as an endpoint: the service describes, makes, renames and removes."""

import posixpath
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby

from mpx.endpoints.globus.access import GlobusAccess
from mpx.endpoints.globus.capabilities import GLOBUS
from mpx.endpoints.globus.commit import GlobusCommit
from mpx.endpoints.globus.deleting import delete
from mpx.endpoints.globus.listing import GlobusListing
from mpx.endpoints.globus.read_ahead import each
from mpx.endpoints.globus.refusals import is_missing, is_there, kind_of_end
from mpx.engine.capabilities import Capabilities, Question
from mpx.engine.endpoint import Commit, FileInfo, Kind, Part, Protection, Rtt, Stamp
from mpx.errors import DestinationError, MpxError, NoChecksum, SourceError, UsageError
from mpx.files.partial_names import is_partial_name
from mpx.location import Location
from mpx.report import Note, OnNote
from mpx.text import quoted

MODES = "modes are not kept: Globus sets none"
FOLDER_TIMES = "modification times of folders are not kept: Globus sets none"
WEB_TIMES = "modification times are not kept: a collection gives a file the time at which it was stored"
_MOST_NEW = 10_000


def _never() -> bool:
    return False


class GlobusEndpoint:
    """Asks when it is first asked."""

    def __init__(
        self,
        location: Location,
        access: GlobusAccess,
        *,
        writing: bool,
        stop: Callable[[], bool] | None = None,
    ) -> None:
        self.location = location
        self._access, self._stop = access, stop or _never
        self._kind = kind_of_end(writing=writing)
        self._listing = GlobusListing(access, self._kind, self._stop)
        self._new: dict[str, None] = {}  # the last folders that were made here: nothing is in them

    @property
    def protection(self) -> Protection:
        """See Endpoint."""
        return Protection()

    @property
    def capabilities(self) -> Capabilities:
        """See Endpoint."""
        return replace(GLOBUS, keeps_times=self._access.keeps_times)

    def find_out(self, *questions: Question) -> Capabilities:  # noqa: ARG002  all is known
        """See Endpoint."""
        self._access.about(self._kind, self._stop)
        return self.capabilities

    def foresee(self, names: Sequence[str]) -> None:
        """See Endpoint."""

    def check_name(self, name: str) -> None:
        """See Endpoint."""
        if "\0" in name:
            raise UsageError(f"the name {quoted(name)} contains a NUL byte; no file can have it")
        if any(part in (".", "..") for part in name.split("/")):
            raise UsageError(
                f"the name {quoted(name)} has . or .. in it, which servers resolve; name it without"
            )
        try:
            name.encode("utf-8")
        except UnicodeEncodeError:
            raise UsageError(
                f"the name {quoted(name)} is not UTF-8, as those of Globus are; rename it"
            ) from None

    def measure_rtt(self) -> Rtt | None:
        """See Endpoint. It shows that the service and the collection are there; data go another way."""
        self._access.about(self._kind, self._stop)
        return None

    # --- describing ----------------------------------------------------------------------------------

    def special_source(self, name: str) -> FileInfo:
        """See Endpoint."""
        raise SourceError(f"{self._shown(name)}: not a regular file at the collection")

    def stat(self, name: str, *, follow: bool = True) -> FileInfo | None:
        """See Endpoint."""
        return self._listing.stat(name, follow=follow)

    def stats(self, names: Sequence[str], *, follow: bool = True) -> list[FileInfo | MpxError | None]:
        """See Endpoint. What was found of a file as it had arrived is not asked once more."""
        known = {name: found for name in names if (found := self._access.take_settled(name))}
        asked = [name for name in names if name not in known]
        told = dict(zip(asked, self._listing.stats(asked, follow=follow), strict=True))
        return [known.get(name) or told.get(name) for name in names]

    def sizes(self, names: Sequence[str]) -> list[int | None]:
        """See Endpoint."""
        if any(is_partial_name(name) for name in names):
            self._access.changed()  # others store them
        return [found.size_bytes if isinstance(found, FileInfo) else None for found in self.stats(names)]

    def entries(self, name: str) -> Iterator[tuple[str, FileInfo | MpxError]]:
        """See Endpoint."""
        return self._listing.entries(name)

    def listing_note(self) -> Note | None:
        """See Endpoint."""
        return None

    # --- changing ------------------------------------------------------------------------------------

    def make_folders(
        self,
        names: Sequence[str],
        *,
        replace_links: bool = False,  # noqa: ARG002  there are none
    ) -> list[bool | MpxError]:
        """See Endpoint."""
        made: dict[str, bool | MpxError] = {}
        for _, some in groupby(sorted(names, key=_depth), key=_depth):  # those above first
            level = list(dict.fromkeys(some))
            looked_for = [name for name in level if posixpath.dirname(name.rstrip("/")) not in self._new]
            for name, there in zip(looked_for, self._listing.stats(looked_for, follow=True), strict=True):
                if isinstance(there, FileInfo):
                    made[name] = there.kind is not Kind.FOLDER and self._in_the_way(name)
            missing = [name for name in level if name not in made]
            made.update(zip(missing, each([partial(self._made, name) for name in missing]), strict=True))
        self._new.update(dict.fromkeys(name.rstrip("/") for name, result in made.items() if result is True))
        while len(self._new) > _MOST_NEW:  # what is in an older one is looked up, that is all
            del self._new[next(iter(self._new))]
        results, known = [], set[str]()
        for name in names:
            result = made[name]
            results.append(result and name.rstrip("/") not in known if isinstance(result, bool) else result)
            known.update(_with_those_above(name.rstrip("/")))
        return results

    def _made(self, name: str) -> bool | MpxError:
        try:
            made = self._make(name)
            if made is None:
                above = posixpath.dirname(name.rstrip("/"))
                over = self._made(above) if above.strip("/") else False
                if isinstance(over, MpxError):
                    return over
                made = self._make(name)
        except MpxError as error:
            if error.may_retry or not isinstance(error, self._kind):
                raise
            return error
        if made is None or (made is False and not self._is_folder(name)):
            return self._in_the_way(name)
        return made

    def _in_the_way(self, name: str) -> MpxError:
        return self._kind(f"cannot make the folder {self._shown(name)}: something is in its way")

    def _is_folder(self, name: str) -> bool:
        there = self._listing.stat(name, follow=True)
        return there is not None and there.kind is Kind.FOLDER

    def _make(self, name: str) -> bool | None:
        """Make a folder: True where it is new, False where it was there, None where the one above is not."""
        from globus_sdk import GlobusAPIError, TransferClient

        def ask(client: TransferClient) -> bool | None:
            try:
                client.operation_mkdir(self._access.collection, name)
            except GlobusAPIError as error:
                if is_there(error):
                    return False
                if is_missing(error):
                    return None
                raise
            return True

        made = self._access.service.ask(ask, f"make the folder {self._shown(name)}", self._kind, self._stop)
        self._access.changed()
        return made

    def unseal(self, names: Sequence[str]) -> dict[str, int]:  # noqa: ARG002  no modes can be set
        """See Endpoint."""
        return {}

    def make_link(self, name: str, target: str) -> str:
        """See Endpoint."""
        raise DestinationError(f"cannot make the symbolic link {name} to {target}: Globus makes none")

    def remove(self, name: str) -> None:
        """See Endpoint. The service removes as it copies: by a task, which is waited for."""
        there = self._listing.stat(name, follow=False)
        if there is not None and there.kind is Kind.FOLDER:
            raise self._kind(f"cannot remove {self._shown(name)}: it is a folder")
        if there is not None:
            delete(self._access, name, self._kind, self._stop)

    def commit(self, files: Sequence[Commit], note: OnNote) -> list[Exception | None]:
        """See Endpoint. What the service has copied has its name, and its time, already."""
        if any(file.mode is not None for file in files):
            note(MODES)
        renamed = [file for file in files if file.partial != file.final]
        if any(file.modified_s is not None for file in renamed):
            note(WEB_TIMES)
            self._access.keeps_no_times()
        names = GlobusCommit(self._access, self._listing, self._kind, self._stop)
        return [names.rename(file, note) if file.partial != file.final else None for file in files]

    def set_times(self, folders: Sequence[Stamp], note: OnNote) -> None:
        """See Endpoint."""
        if any(folder.mode is not None for folder in folders):
            note(MODES)
        if any(folder.modified_s is not None for folder in folders):
            note(FOLDER_TIMES)

    # --- checking ------------------------------------------------------------------------------------

    def checksums(
        self,
        algorithm: str,
        parts: Sequence[Part],
        stop: Callable[[], bool],  # noqa: ARG002  nothing is computed
    ) -> list[str | Exception]:
        """See Endpoint."""
        return [
            NoChecksum(self._kind(f"Globus tells no {algorithm} of {self._shown(part.name)}"))
            for part in parts
        ]

    def free_bytes(self, name: str) -> int | None:  # noqa: ARG002  it does not tell
        """See Endpoint."""
        return None

    def pause(self) -> None:
        """See Endpoint."""

    def let_go(self) -> None:
        """See Endpoint."""

    def close(self) -> None:
        """See Endpoint."""
        self._listing.close()

    def _shown(self, name: str) -> str:
        return str(self.location.at(name))


def _depth(name: str) -> int:
    return name.rstrip("/").count("/")


def _with_those_above(name: str) -> Iterator[str]:
    while name:
        yield name
        name = posixpath.dirname(name).rstrip("/")
