"""How much room there is in a folder, as far as a WebDAV server tells: a quota, or a disk (RFC 4331)."""

import posixpath
import time

from mpx.endpoints.web.access import WebAccess
from mpx.endpoints.web.dialogue import WebDialogue
from mpx.endpoints.web.folder import ASKED_AS, KeptBody, only_entry
from mpx.endpoints.web.refusals import MISSING

ROOM_S = 1.0  # that an answer counts: who lists many small files asks every few hundred
_MULTI_STATUS = 207
_QUOTA = (
    b'<?xml version="1.0" encoding="utf-8"?><propfind xmlns="DAV:"><prop><quota-available-bytes/></prop>'
    b"</propfind>"
)


class WebRoom:
    """For one thread."""

    def __init__(self, access: WebAccess, dialogue: WebDialogue) -> None:
        self._access, self._dialogue = access, dialogue
        self._told: tuple[tuple[str | None, float], int | None] = (None, 0.0), None  # of a folder, when
        self._tells_none = False

    def free_bytes(self, name: str) -> int | None:
        """See Endpoint. Asks of the nearest folder that exists; a server that tells nothing only once."""
        if self._tells_none or not self._access.speaks_dav or not self._access.server.may_tell_quota:
            return None
        (folder, told_s), found = self._told
        if folder == name and time.monotonic() - told_s < ROOM_S:
            return found
        found = self._free_bytes(name)
        self._told = (name, time.monotonic()), found
        return found

    def _free_bytes(self, name: str) -> int | None:
        folder = name.rstrip("/")
        while True:
            url = self._access.url_of(folder + "/")
            with self._dialogue.ask("PROPFIND", url, {"Depth": "0", **ASKED_AS}, _QUOTA) as (reply, at):
                if reply.status == _MULTI_STATUS:
                    entry = only_entry(KeptBody.read(reply, str(at.origin)), at)
                    free = entry.quota_available_bytes if entry else None
                    self._tells_none = free is None
                    return free
                if reply.status not in MISSING or not folder:
                    return None
            folder = posixpath.dirname(folder).rstrip("/")
