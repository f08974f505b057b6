"""Gives a file its name at a cluster, where other servers of it may have an older file of that name.

The head leads to one server that has what is renamed, and knows nothing of the others then. So these are
asked for first. Each of their files is put aside before the new one has the name, and removed under its other
name after that. So what is removed is never the new file, whatever is answered, and however late:

- Servers may share their storage, so that all have the old file, and each has the new one, too. One that has
  the same partial file is left alone, as the rename replaces its file. But one may say for a minute that a
  file is missing which another has made (NFS remembers that): then the old file is put aside there, and the
  new one takes its name all the same. Were the old one removed by its name once the new file has that, the
  new one would be.
- Heads are not believed: nothing is done at a server that does not say itself that it is of this cluster (see
  clusters.py), nor where it leads (see data_server.py). To have the head remove the old files is no way out,
  as the library goes wherever a head leads, and one of shared storage leads in a circle.

Whoever is killed between both steps leaves no file of that name, but the partial one, which the next copy
goes on with, and the old one beside it (see aside_name), which that copy removes in the end.
"""

import queue
import threading
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from XRootD.client.flags import QueryCode

from mpx.endpoints.xrootd import meaning
from mpx.endpoints.xrootd.clusters import plain_address
from mpx.endpoints.xrootd.data_server import DataServer, is_missing
from mpx.files.partial_names import aside_name

PREFERS_NAMES = 0x0100  # kXR_prefname, of `locate` alone: certificates are for names
_KNOWN_WITHIN_S = 60.0
_ALONE = ("server", "none", "role", "")  # what a server answers that leads nowhere, or does not know
_NO_QUESTION = (
    3000,
    3006,
    3013,
)  # kXR_ArgInvalid, kXR_InvalidRequest, kXR_Unsupported: it leads nowhere, too


class Replacing:
    """For any thread. `url`: of the server, which is asked at once whether it leads to others."""

    def __init__(self, url: str, server: Any) -> None:
        self._scheme, _, self.head = url.rstrip("/").partition("://")
        self._server = server
        self._is_known = threading.Event()
        self._leads: bool | None = None  # not known
        self._unknown: Any = None  # why it is not
        self._lock = threading.Lock()  # of `_data_servers`
        self._data_servers: dict[str, DataServer] = {}  # by HOST:PORT
        status = server.query(QueryCode.CONFIG, "role", callback=self._answered)
        if not status.ok:
            self._answered(status, None, None)

    def _answered(self, status: Any, found: Any, _hosts: Any) -> None:
        if status.ok:
            self._leads = (found or b"").rstrip(b"\0\n").decode("ascii", "replace") not in _ALONE
        elif status.code == meaning.ERROR_RESPONSE and status.errno in _NO_QUESTION:
            self._leads = False
        else:
            self._unknown = status
        self._is_known.set()

    @property
    def leads(self) -> bool:
        """Whether the server leads to others, or may; waits for its answer, which comes before others do."""
        self._is_known.wait(_KNOWN_WITHIN_S)
        return self._leads is not False

    def rename(self, name: str, other: str) -> Any:
        """Return the status of all of it; waits for the servers."""
        if self._leads is None:
            return self._not_known()
        here, refusal = self._place(name)
        if refusal:
            return refusal
        if not here:  # a head that leads nowhere knows all that it has itself
            return self._server.mv(name, other)[0]
        aside = aside_name(name, other)
        with ThreadPoolExecutor(2) as both:  # as a head takes seconds to find that nobody has a name
            (places, refusal), (left, also) = both.map(self._places, (other, aside))
        if refusal or also:
            return refusal or also
        status = self._replace(name, other, here, places)
        return (status.ok and self._remove_left(aside, here, left)) or status

    def _replace(self, name: str, other: str, here: str, places: dict[str, str]) -> Any:
        places.pop(plain_address(here), None)
        if not places:
            return self._server.mv(name, other)[0]
        server = self.at(here)
        status, new = server.stat(name)
        if not status.ok:
            return status
        old = _OldFiles(other, aside_name(name, other))
        refusal = (
            old.find(map(self.at, sorted(places.values())), (name, new), self.head, here) or old.put_aside()
        )
        if refusal:
            return old.put_back(refusal)
        status = server.move(name, other)
        if not status.ok:  # where no answer came it may have the name, and what is put back would take it
            return old.put_back(status) if status.code == meaning.ERROR_RESPONSE else status
        refusal = _lost(server, other, new.size) or old.remove() or _lost(server, other, new.size)
        return refusal or status

    def _remove_left(self, aside: str, here: str, places: dict[str, str]) -> Any:
        """Remove old files that a copy has put aside which was killed then; return a refusal."""
        for server in map(self.at, sorted(places.values())):
            found = server.stat(aside)[0]
            if found.ok and server.is_of(self.head, here):
                removed = server.remove(aside)
                if not removed.ok and not is_missing(server.stat(aside)[0]):
                    return meaning.Failed(
                        f"{server.address} has an older file of that name as {aside}, which stays: "
                        f"{meaning.told(removed.message)}"
                    )
        return None

    def _not_known(self) -> Any:
        if self._unknown is not None and self._unknown.code != meaning.ERROR_RESPONSE:
            return self._unknown
        why = f": {meaning.told(self._unknown.message)}" if self._unknown else ""
        return meaning.Failed(
            f"{self.head} does not say whether it leads to other servers, which may have older files of that "
            f"name; copy it again{why}"
        )

    def _place(self, name: str) -> tuple[str, Any]:
        """Return the HOST:PORT that the head leads to for a name, or a refusal; empty if it leads nowhere."""
        answers: queue.SimpleQueue[tuple[Any, Any, Any]] = queue.SimpleQueue()
        begun = self._server.stat(name, callback=lambda *answer: answers.put(answer))
        status, _, hosts = answers.get() if begun.ok else (begun, None, None)
        if not status.ok:
            return "", status
        urls = [each.url for each in hosts or ()]
        return (f"{urls[-1].hostname}:{urls[-1].port}" if len(urls) > 1 else ""), None

    def _places(self, name: str) -> tuple[dict[str, str], Any]:
        """Return the HOST:PORT of each server that has a name, as the head says; or a refusal.

        By how an address is compared.
        """
        status, found = self._server.deeplocate(name, PREFERS_NAMES)
        if is_missing(status):
            return {}, None
        if not status.ok:
            return {}, status
        if status.code != meaning.WHOLE:
            return {}, meaning.Failed(
                f"not all servers of {self.head} say whether they have an older file of that name; "
                "copy it again when they can be asked"
            )
        return {plain_address(each.address): each.address for each in found or ()}, None

    def at(self, address: str) -> DataServer:
        """Return one server, HOST:PORT; the same each time."""
        with self._lock:
            if address not in self._data_servers:
                self._data_servers[address] = DataServer(self._scheme, address)
            return self._data_servers[address]


class _OldFiles:
    """The files of a name that are to be replaced at other servers than the one with the new file."""

    def __init__(self, name: str, aside: str) -> None:
        self._name, self._aside = name, aside
        self._found: list[DataServer] = []
        self._put: list[DataServer] = []

    def find(self, servers: Iterable[DataServer], new: tuple[str, Any], head: str, here: str) -> Any:
        """Find out which may be told to, and do not have the `new` file, too; return a refusal.

        `new`: its name, and what is known of it `here`, where it was uploaded to.
        """
        name, known = new
        for server in servers:
            status, found = server.stat(name)
            if status.ok and (found.size, found.modtime) == (known.size, known.modtime):
                continue
            if not status.ok and not is_missing(status):
                return self._refusal(server, f"and cannot be asked: {meaning.told(status.message)}")
            if not server.is_of(head, here):
                return self._refusal(
                    server,
                    f"as {head} says, but names another cluster, or none, so nothing is removed; "
                    f"remove {self._name} there yourself, or copy to another name",
                )
            self._found.append(server)
        return None

    def put_aside(self) -> Any:
        """Give each another name; return a refusal."""
        for server in self._found:
            moved = server.move(self._name, self._aside)
            if moved.ok:
                self._put.append(server)
            elif not is_missing(server.stat(self._name)[0]):
                return self._refusal(server, f"which stays: {meaning.told(moved.message)}")
        return None

    def put_back(self, refusal: Any) -> Any:
        """Give each its name again; return the refusal, and what was not put back."""
        left = [each.address for each in self._put if not each.move(self._aside, self._name).ok]
        if not left:
            return refusal
        told = meaning.told(refusal.message)
        return meaning.Failed(f"{told}; the older file is now {self._aside} at {', '.join(left)}")

    def remove(self) -> Any:
        """Remove each; return a refusal."""
        for server in self._put:
            removed = server.remove(self._aside)
            if not removed.ok and not is_missing(server.stat(self._aside)[0]):
                told = meaning.told(removed.message)
                return self._refusal(server, f"now as {self._aside}, which stays: {told}")
        return None

    def _refusal(self, server: DataServer, why: str) -> meaning.Failed:
        return meaning.Failed(f"{server.address} has an older file of that name, {why}")


def _lost(server: DataServer, name: str, size_bytes: int) -> Any:
    """Return a refusal where a server does not have what it has just given a name."""
    status, found = server.stat(name)
    if status.ok and found.size == size_bytes:
        return None
    has = f"{found.size} of {size_bytes} bytes" if status.ok else f"nothing ({meaning.told(status.message)})"
    return meaning.Failed(f"{server.address} has renamed it, and now has {has} of that name; copy it again")
