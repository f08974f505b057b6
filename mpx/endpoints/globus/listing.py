"""Folders of a collection as the service lists them: page by page, as a large one takes much memory."""

import posixpath
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from mpx.endpoints.globus.access import GlobusAccess
from mpx.endpoints.globus.described import info_of
from mpx.endpoints.globus.read_ahead import FolderReadAhead, each
from mpx.endpoints.globus.refusals import is_missing
from mpx.endpoints.globus.service import document
from mpx.engine.endpoint import FileInfo, Kind
from mpx.errors import ConnectionLost, MpxError

PAGE = 10_000  # entries; the service sends 100,000 at most, as 100 MB
FEW = 3  # files of one folder, that are asked for one by one
_MOST_KEPT, _KEPT_S = 20_000, 60.0  # entries of a listing that is kept, and for how long
Described = dict[str, FileInfo | MpxError | None]  # by name


class GlobusListing:
    """Describes what is at a collection. For one thread, which has others list several folders at once."""

    def __init__(self, access: GlobusAccess, kind: type[MpxError], stop: Callable[[], bool]) -> None:
        self._access, self._kind, self._stop = access, kind, stop
        self._ahead = FolderReadAhead(lambda folder: self._page(folder, 0))
        self._keeping = threading.Lock()  # held while the next two are replaced together
        self._kept: dict[str, FileInfo] = {}  # of the folder that was listed last
        self._kept_of = ("", -1, 0.0)  # that folder, what had changed by then, and when

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
        """Describe many: one by one where they are few of a folder, else by listing that."""
        wanted: dict[str, list[str]] = {}
        for name in dict.fromkeys(names):
            wanted.setdefault(posixpath.dirname(name.rstrip("/")), []).append(name)
        asked: list[Callable[[], Described]] = []
        found: Described = {}
        for folder, some in wanted.items():
            if follow and self._is_kept(folder):
                found.update((name, self._kept.get(_last_of(name))) for name in some)
            elif len(some) > FEW:
                asked.append(partial(self._in_folder, folder, some, follow=follow))
            else:
                asked += [partial(self._alone, name, follow=follow) for name in some]
        for told in each(asked):
            found |= told
        return [found[name] for name in names]

    def _alone(self, name: str, *, follow: bool) -> Described:
        try:
            return {name: self.stat(name, follow=follow)}
        except MpxError as error:
            if error.may_retry or not isinstance(error, self._kind):
                raise
            return {name: error}

    def _is_kept(self, folder: str) -> bool:
        name, changes, at_s = self._kept_of
        return (name, changes) == (folder, self._access.changes) and time.monotonic() - at_s < _KEPT_S

    def _in_folder(self, folder: str, names: Sequence[str], *, follow: bool) -> Described:
        """Look for names in the listing of a folder, which is kept where it is not too long for that.

        Where it may not be listed they are asked for one by one.
        """
        changes, at_s = self._access.changes, time.monotonic()
        found: Described = dict.fromkeys(names)
        by_entry = {_last_of(name): name for name in names}
        kept: dict[str, FileInfo] = {}
        try:
            for entry, told in self._documents(folder):
                info = info_of(told, follow=follow)
                if info and len(kept) <= _MOST_KEPT:
                    kept[entry] = info
                if entry in by_entry:
                    found[by_entry[entry]] = info
        except _NoFolder:
            return found
        except MpxError as error:
            if error.may_retry or not isinstance(error, self._kind):
                raise
            return {
                name: info
                for each_name in names
                for name, info in self._alone(each_name, follow=follow).items()
            }
        if len(kept) <= _MOST_KEPT and follow:
            with self._keeping:
                self._kept, self._kept_of = kept, (folder, changes, at_s)
        return found

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
            page = first_page(folder) if first_page and not offset else self._page(folder, offset)
            if page and page[0] == before:
                raise ConnectionLost(
                    f"Globus lists the same entries of {self._shown(folder)} again and again"
                )
            before = page[0] if page else None
            for told in page:
                name = told.get("name")
                if not _is_name(name):
                    raise ConnectionLost(f"Globus lists an entry of {self._shown(folder)} without a name")
                yield str(name), told
            if len(page) < PAGE:
                return
            offset += len(page)

    def _page(self, folder: str, offset: int) -> list[Mapping[str, Any]]:
        from globus_sdk import GlobusAPIError, TransferClient

        path = folder if folder.endswith("/") else f"{folder}/"

        def ask(client: TransferClient) -> list[Mapping[str, Any]]:
            try:
                told = document(
                    client.operation_ls(
                        self._access.collection, path, orderby="name", limit=PAGE, offset=offset
                    )
                )["DATA"]
            except GlobusAPIError as error:
                if is_missing(error):
                    raise _NoFolder from None
                raise
            if not isinstance(told, list) or not all(isinstance(each, dict) for each in told):
                raise ConnectionLost(f"Globus answers nonsense to a listing of {self._shown(folder)}")
            return told

        return self._access.service.ask(ask, f"list {self._shown(folder)}", self._kind, self._stop)

    def close(self) -> None:
        """List nothing ahead any more."""
        self._ahead.close()

    def _shown(self, name: str) -> str:
        return f"globus://{self._access.collection}{name}"


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
