"""Folders of a collection as the service lists them: page by page, as a large one takes much memory."""

import posixpath
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from mpx.endpoints.globus.access import GlobusAccess
from mpx.endpoints.globus.described import info_of
from mpx.endpoints.globus.folder_search import FolderSearch, ListedPlaces
from mpx.endpoints.globus.read_ahead import FolderReadAhead, each
from mpx.endpoints.globus.refusals import is_missing
from mpx.endpoints.globus.service import document
from mpx.engine.endpoint import FileInfo, Kind
from mpx.errors import ConnectionLost, MpxError

PAGE = 10_000  # entries; the service sends 100,000 at most, as 100 MB
FEW = 3  # files of one folder, that are asked for one by one
_MOST_KEPT, _KEPT_S = 100_000, 60.0  # entries of a listing (about 30 MB), and for how long
Described = dict[str, FileInfo | MpxError | None]  # by name


@dataclass(frozen=True, slots=True)
class _Kept:
    """What a listing has shown of a folder."""

    folder: str
    changes: int  # that there had been by then
    at_s: float
    pages: int = 0  # from the first one on, that need not be read again
    entries: Mapping[str, FileInfo] = field(default_factory=dict)
    is_whole: bool = False  # there are no others

    def told(self, names: Sequence[str]) -> Described:
        """Return what it tells of names."""
        found = {name: self.entries.get(_last_of(name)) for name in names}
        return {name: info for name, info in found.items() if info or self.is_whole}

    def with_more(self, seen: Mapping[str, FileInfo], search: FolderSearch) -> "_Kept":
        """Return the same with what further pages have shown.

        Where it would be too much that alone is kept, and not all of it: then no page counts as known.
        """
        pages = search.next_page if search.is_in_order else 0
        entries = {**self.entries, **seen}
        if len(entries) < _MOST_KEPT:
            return replace(self, pages=pages, entries=entries, is_whole=search.saw_all)
        return replace(self, pages=0, entries=seen)


class GlobusListing:
    """Describes what is at a collection. For one thread, which has others list several folders at once."""

    def __init__(
        self,
        access: GlobusAccess,
        kind: type[MpxError],
        stop: Callable[[], bool],
        places: ListedPlaces | None = None,
    ) -> None:
        """`places`: of an older listing, that this one goes on from."""
        self._access, self._kind, self._stop = access, kind, stop
        self._places = places or ListedPlaces()
        self._ahead = FolderReadAhead(partial(self._page, 0))
        self._keeping = threading.Lock()  # guards the next one
        self._kept = _Kept("", -1, 0.0)  # of the folder that was listed last

    def stat(self, name: str, *, follow: bool) -> FileInfo | None:
        """Describe one file or folder."""
        from globus_sdk import GlobusAPIError, TransferClient

        def ask(client: TransferClient) -> Mapping[str, Any] | None:
            try:
                return document(client.operation_stat(self._access.collection, name))
            except GlobusAPIError as error:
                if is_missing(error):
                    return None
                raise

        found = self._access.service.ask(ask, f"describe {self._shown(name)}", self._kind, self._stop)
        return info_of(found, follow=follow) if found is not None else None

    def stats(self, names: Sequence[str], *, follow: bool) -> list[FileInfo | MpxError | None]:
        """Describe many: one by one where they are few of a folder, else by listing that.

        Of a long folder the pages are read on which they are likely to be (see FolderSearch); those that are
        on none of these are asked for one by one, so that the number of requests is that of the names at
        most, and some percent more, however many files a folder has.
        """
        wanted: dict[str, list[str]] = {}
        for name in dict.fromkeys(names):
            wanted.setdefault(posixpath.dirname(name.rstrip("/")), []).append(name)
        asked: list[Callable[[], Described]] = []
        found: Described = {}
        for folder, some in wanted.items():
            known = self._kept_now(folder).told(some) if follow else {}
            found |= known
            if len(rest := [name for name in some if name not in known]) > FEW:
                asked.append(partial(self._in_folder, folder, rest, follow=follow))
        for told in each(asked):
            found |= told
        rest = [name for some in wanted.values() for name in some if name not in found]
        for told in each([partial(self._alone, name, follow=follow) for name in rest]):
            found |= told
        return [found[name] for name in names]

    def _alone(self, name: str, *, follow: bool) -> Described:
        try:
            return {name: self.stat(name, follow=follow)}
        except MpxError as error:
            if error.may_retry or not isinstance(error, self._kind):
                raise
            return {name: error}

    def _kept_now(self, folder: str) -> "_Kept":
        """Return what is kept of a folder, as far as it still holds."""
        with self._keeping:
            kept = self._kept
        changes, now_s = self._access.changes, time.monotonic()
        is_valid = (kept.folder, kept.changes) == (folder, changes) and now_s - kept.at_s < _KEPT_S
        return kept if is_valid else _Kept(folder, changes, now_s)

    def _in_folder(self, folder: str, names: Sequence[str], *, follow: bool) -> Described:
        """Look for names in the listing of a folder, and keep what that shows.

        Those of which it does not tell are left out, as all are where it may not be listed.
        """
        kept = self._kept_now(folder) if follow else _Kept(folder, self._access.changes, 0.0)
        found: Described = {}
        by_entry = {_last_of(name): name for name in names}
        seen: dict[str, FileInfo] = {}
        start = kept.pages or self._places.of(folder)
        search = FolderSearch(start, len(names), PAGE, kept.pages)
        try:
            for page in search.pages(lambda number: self._page(number * PAGE, folder)):
                for entry, told in _named(page):
                    info = info_of(told, follow=follow)
                    if info and len(seen) < _MOST_KEPT:
                        seen[entry] = info
                    if entry in by_entry:
                        found[by_entry[entry]] = info
                        search.was_useful = True
                if search.was_useful:
                    self._places.note(folder, search.page)
                if len(found) == len(names):
                    break
        except _NoFolder:
            return dict.fromkeys(names)
        except MpxError as error:
            if error.may_retry or not isinstance(error, self._kind):
                raise
            return {}
        if follow:
            with self._keeping:
                self._kept = kept.with_more(seen, search)
        return {**dict.fromkeys(names), **found} if search.saw_all else found

    def entries(self, folder: str) -> Iterator[tuple[str, FileInfo | MpxError]]:
        """Yield what is in a folder, links as links; raises the kind of error of this end."""
        folders: list[str] = []
        try:
            for name, told in self._documents(folder, self._ahead.page):
                info = info_of(told, follow=False) or FileInfo(Kind.OTHER)
                if info.kind is Kind.FOLDER:
                    folders.append(name)
                yield name, info
        except _NoFolder:
            raise self._kind(f"{self._shown(folder)} does not exist, or is no folder") from None
        self._ahead.found(folder, folders)

    def _documents(
        self, folder: str, first_page: Callable[[str], list[Mapping[str, Any]]] | None = None
    ) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Yield what the service tells of the entries of a folder; raises _NoFolder."""
        offset, before = 0, None
        while True:
            page = first_page(folder) if first_page and not offset else self._page(offset, folder)
            if page and page[0] == before:
                raise self._repeats(folder)
            before = page[0] if page else None
            yield from _named(page)
            if len(page) < PAGE:
                return
            offset += len(page)

    def _page(
        self, offset: int, folder: str, is_unwanted: Callable[[], bool] = lambda: False
    ) -> list[Mapping[str, Any]]:
        """Return PAGE entries from one on, or all that follow, by several answers where these are shorter."""
        found: list[Mapping[str, Any]] = []
        names: set[str] = set()
        while True:
            some, total = self._asked(offset + len(found), PAGE - len(found), folder, is_unwanted)
            if not all(_is_name(each.get("name")) for each in some):
                raise ConnectionLost(f"Globus lists an entry of {self._shown(folder)} without a name")
            found += some
            is_last = total is not None and offset + len(found) >= total
            if not some or len(found) >= PAGE or is_last:
                return found
            if names.issuperset(name for name, _ in _named(some)):
                raise self._repeats(folder)
            names.update(name for name, _ in _named(some))

    def _asked(
        self, offset: int, limit: int, folder: str, is_unwanted: Callable[[], bool]
    ) -> tuple[list[Mapping[str, Any]], int | None]:
        """Return some entries, and how many there are in all, if that is told."""
        from globus_sdk import GlobusAPIError, TransferClient

        path = folder if folder.endswith("/") else f"{folder}/"

        def ask(client: TransferClient) -> tuple[list[Mapping[str, Any]], int | None]:
            try:
                answer = document(
                    client.operation_ls(
                        self._access.collection, path, orderby="name", limit=limit, offset=offset
                    )
                )
            except GlobusAPIError as error:
                if is_missing(error):
                    raise _NoFolder from None
                raise
            told, total = answer["DATA"], answer.get("total")
            if not isinstance(told, list) or not all(isinstance(each, dict) for each in told):
                raise ConnectionLost(f"Globus answers nonsense to a listing of {self._shown(folder)}")
            is_told = isinstance(total, int) and not isinstance(total, bool)
            return told, total if is_told else None

        def stop() -> bool:
            return self._stop() or is_unwanted()

        return self._access.service.ask(ask, f"list {self._shown(folder)}", self._kind, stop)

    def close(self) -> None:
        """List nothing ahead any more."""
        self._ahead.close()

    def _repeats(self, folder: str) -> ConnectionLost:
        return ConnectionLost(f"Globus lists the same entries of {self._shown(folder)} again and again")

    def _shown(self, name: str) -> str:
        return f"globus://{self._access.collection}{name}"


def _named(page: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    return ((str(told["name"]), told) for told in page)


def _is_name(name: object) -> bool:
    """Tell whether that can be the name of an entry, which half of a surrogate pair is not."""
    if not isinstance(name, str) or name in ("", ".", "..") or "/" in name:
        return False
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


class _NoFolder(MpxError):
    """There is no folder of this name."""


def _last_of(name: str) -> str:
    return posixpath.basename(name.rstrip("/"))
