"""What all that asks about one collection shares: the service, what is known of it, and its HTTPS."""

import threading
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

from mpx.endpoints.globus.https import CollectionWebAccess
from mpx.endpoints.globus.service import GlobusService, document
from mpx.endpoints.web.options import WebOptions
from mpx.endpoints.web.url import Origin
from mpx.engine.endpoint import FileInfo
from mpx.errors import ConnectionLost, MpxError, UsageError
from mpx.location import Location
from mpx.report import OnNote, no_note
from mpx.text import shown

_MOST_SETTLED = 20_000  # files, of which what was found is kept until they have their final names


class GlobusAccess:
    """For any thread."""

    takes_turns = False  # a service that is busy says so by 429 or 503
    server_url = ""  # the ids of collections say all

    def __init__(self, location: Location, web: WebOptions, note: OnNote = no_note) -> None:
        """`web`: how the HTTPS of the collection is reached. Raises UsageError without the SDK."""
        self.collection, self.note = location.host, note
        self.service, self.timeout_s = GlobusService(web.timeout_s, note=note), web.timeout_s
        self._web_options = web
        self._lock = threading.Lock()  # guards what follows
        self._about: Mapping[str, Any] | None = None  # the collection
        self._web: CollectionWebAccess | None = None
        self._keeps_times = True  # as far as it has shown
        self._changes = 0
        self._settled: dict[str, FileInfo] = {}
        self._deletes: dict[str, str] = {}  # submissions of tasks that may still remove what has these names

    def about(self, kind: type[MpxError], stop: Callable[[], bool]) -> Mapping[str, Any]:
        """Return what the service tells of the collection, asked once."""
        with self._lock:
            if self._about is not None:
                return self._about
        what = f"look up the collection {self.collection}"
        asked = self.service.ask(lambda client: client.get_endpoint(self.collection), what, kind, stop)
        about = document(asked)
        with self._lock:
            self._about = about
        return about

    def web(self, kind: type[MpxError] = MpxError) -> CollectionWebAccess:
        """Return how its HTTPS is reached; UsageError where it has none.

        Raises AuthenticationError where the user has not logged in for it, before anything connects.
        """
        about = self.about(kind, self._web_options.stop)
        with self._lock:
            known = self._web
        if known is not None:
            return known
        origin = _origin_of(about.get("https_server"), self.collection)
        made = CollectionWebAccess(self.collection, origin, self._web_options, self.service, self.note)
        made.check_login()
        with self._lock:
            self._web = self._web or made
            return self._web

    @property
    def keeps_times(self) -> bool:
        """Whether files have the times of their sources, as far as is known; by HTTPS they do not."""
        with self._lock:
            return self._keeps_times and self._web is None

    def keeps_no_times(self) -> None:
        """Take note that it has shown otherwise."""
        with self._lock:
            self._keeps_times = False

    # --- what changes while a copy runs ---------------------------------------------------------------

    @property
    def changes(self) -> int:
        """How often something may have been changed there: older listings do not hold any more."""
        with self._lock:
            return self._changes

    def changed(self) -> None:
        """Take note that something may have been changed there."""
        with self._lock:
            self._changes += 1

    def settled(self, found: Mapping[str, FileInfo]) -> None:
        """Keep what was found of files once all of them had arrived, for who looks at them next."""
        with self._lock:
            self._settled.update(found)
            while len(self._settled) > _MOST_SETTLED:
                del self._settled[next(iter(self._settled))]

    def take_settled(self, name: str) -> FileInfo | None:
        """Return what was found of a file, once."""
        with self._lock:
            return self._settled.pop(name, None)

    def begun_delete(self, name: str) -> str | None:
        """Return the submission of a task that removes a file, where its end was not seen."""
        with self._lock:
            return self._deletes.get(name)

    def note_delete(self, name: str, submission: str | None) -> None:
        """Take note of a task that is to remove a file; None: it has ended."""
        with self._lock:
            if submission is None:
                self._deletes.pop(name, None)
            else:
                self._deletes[name] = submission

    def close(self) -> None:
        """See SharedConnections."""
        if self._web is not None:
            self._web.close()
        self.service.close()


def _origin_of(server: object, collection: str) -> Origin:
    """Return the server that a collection has for HTTPS; raises UsageError."""
    if not server:
        raise UsageError(
            f"the collection {collection} has no HTTPS of its own (Globus Connect Server 5 has, Globus "
            "Connect Personal has not); give --globus-local COLLECTION for the files of this host"
        )
    try:
        parts = urlsplit(str(server))
        host, port = parts.hostname, parts.port or 443
    except ValueError:
        host, port = None, 0
    if parts.scheme != "https" or not host:
        raise ConnectionLost(
            f"Globus tells a server that is none of the collection {collection}: {shown(str(server))}"
        )
    return Origin(True, host, port)
