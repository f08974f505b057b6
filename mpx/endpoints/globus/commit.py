"""Giving files that were stored by HTTPS their final names: a rename by the service, which replaces nothing.

What has the name is put aside first, and removed once the new file has it: whenever that is cut short, one of
the two is there, and the next run of the same copy goes on from there.
"""

import posixpath
import time
from collections.abc import Callable

from mpx.endpoints.globus.access import GlobusAccess
from mpx.endpoints.globus.deleting import delete
from mpx.endpoints.globus.listing import GlobusListing
from mpx.endpoints.globus.refusals import is_there
from mpx.endpoints.globus.tasks import CANCEL_S
from mpx.engine.endpoint import Commit, FileInfo, Kind
from mpx.errors import (
    AuthenticationError,
    ConnectionLost,
    Interrupted,
    IsThere,
    MpxError,
    NotRenamed,
    TransferTimeout,
)
from mpx.files.partial_names import aside_name
from mpx.report import OnNote, Severity


class GlobusCommit:
    """Names finished files of one collection. For one thread."""

    def __init__(
        self, access: GlobusAccess, listing: GlobusListing, kind: type[MpxError], stop: Callable[[], bool]
    ) -> None:
        self._access, self._listing, self._kind, self._stop = access, listing, kind, stop

    def rename(self, file: Commit, note: OnNote) -> MpxError | None:
        """Give a file its final name; return what kept it from that.

        Raises AuthenticationError, Interrupted.
        """
        try:
            if self._rename(file.partial, file.final, self._stop):
                if file.was_tried:
                    self._remove_aside(file, note)
                return None
            if not file.replaces:
                return IsThere(self._shown(file.final))
            return self._replace(file, note)
        except (AuthenticationError, Interrupted):
            raise  # they concern all files
        except MpxError as error:
            return error

    def _replace(self, file: Commit, note: OnNote) -> MpxError | None:
        old = self._listing.stat(file.final, follow=False)
        if old is not None and old.kind is Kind.FOLDER:
            return self._kind(f"cannot replace {self._shown(file.final)}: it is a folder")
        if old is not None:
            self._put_aside(file)
        error = self._named_in_place(file)
        if error is None:
            self._remove_aside(file, note)
        elif old is not None:
            return self._brought_back(file, error)
        return error

    def _put_aside(self, file: Commit) -> None:
        aside = aside_name(file.partial, file.final)
        # Else a task that removes what an earlier attempt has left there may remove this one.
        if self._access.begun_delete(aside):
            delete(self._access, aside, self._kind, self._stop)
        if self._rename(file.final, aside, self._stop):
            return
        delete(self._access, aside, self._kind, self._stop)  # of an earlier run
        if not self._rename(file.final, aside, self._stop):
            raise self._kind(f"cannot put {self._shown(file.final)} aside: {aside} is there")

    def _named_in_place(self, file: Commit) -> MpxError | None:
        try:
            if self._rename(file.partial, file.final, self._patient()):
                return None
        except MpxError as error:
            return error
        return self._kind(f"cannot rename {self._shown(file.partial)}: {file.final} is there again")

    def _brought_back(self, file: Commit, error: MpxError) -> MpxError:
        """Give an old file its name again, and return the error as it is then.

        Where something has the name that may be the new file after all, which another attempt finds out.
        """
        aside = aside_name(file.partial, file.final)
        text = f"{error}; the old file is now {self._shown(aside)}"
        try:
            is_back = self._rename(aside, file.final, self._patient())
        except MpxError:
            is_back = False
        if isinstance(error, Interrupted):
            raise error
        if is_back:
            return error
        if error.may_retry:  # the same copy again settles it
            return TransferTimeout(text) if isinstance(error, TransferTimeout) else ConnectionLost(text)
        return NotRenamed(text)

    def _remove_aside(self, file: Commit, note: OnNote) -> None:
        """Remove the old file; what cannot be tried again is noted, as the new one is there."""
        aside = aside_name(file.partial, file.final)
        try:
            found = self._listing.stat(aside, follow=False)
            if isinstance(found, FileInfo):
                delete(self._access, aside, self._kind, self._stop)
        except MpxError as error:
            if error.may_retry or isinstance(error, Interrupted):
                raise
            text = f"the old file is still there, as {self._shown(aside)}; remove it: {error}"
            note(text, Severity.NOTICE)

    def _rename(self, name: str, other: str, stop: Callable[[], bool]) -> bool:
        """Give a file another name; False where another one has it."""
        from globus_sdk import GlobusAPIError, TransferClient

        def ask(client: TransferClient) -> bool:
            try:
                client.operation_rename(self._access.collection, name, other)
            except GlobusAPIError as error:
                if is_there(error):
                    return False
                raise
            return True

        what = f"rename {self._shown(name)} to {posixpath.basename(other)}"
        done = self._access.service.ask(ask, what, self._kind, stop)
        self._access.changed()
        return done

    def _patient(self) -> Callable[[], bool]:
        """Return what stops a question that is not to be cut short, while the old name has no file."""
        until_s = time.monotonic() + CANCEL_S
        return lambda: self._stop() and time.monotonic() > until_s

    def _shown(self, name: str) -> str:
        return f"globus://{self._access.collection}{name}"
