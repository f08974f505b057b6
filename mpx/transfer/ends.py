"""Both ends of a copy: opened once for its steps, and again for each thread with sessions of its own."""

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from mpx.endpoints.ftp.session_pool import SessionPool
from mpx.endpoints.schemes import capabilities_of
from mpx.engine.endpoint import Admission, Endpoint, FileInfo
from mpx.engine.reconnecting import Reconnecting
from mpx.engine.shared_connections import SharedConnections
from mpx.errors import NameNotCarried
from mpx.files.guarded_folders import LocalFolders
from mpx.files.source_trees import ANYWHERE, SourceTrees
from mpx.location import Location
from mpx.options import CopyOptions
from mpx.report import OnNote
from mpx.transfer.early_start import EarlyStart
from mpx.transfer.planner import base_name
from mpx.transfer.refusals import check_places, check_told_apart
from mpx.transfer.registry import (
    check_one_password,
    endpoint_at,
    log_in_to_probe,
    open_endpoint,
    session_options,
    shared_certificate,
    shared_connections,
)
from mpx.transfer.ssh_protocol import find_protocol, turn_to_sftp

if TYPE_CHECKING:
    from mpx.rtt.methods.choose import LogIn

PROBE_CONNECT_S, PROBE_REPLY_S = 1.0, 3.0  # over a path that may be lost


class Ends:
    """The endpoints of a copy. `far` is the server's, or the destination within this host; `near` the other.

    Between two servers `far` is the one that receives, and each has a pool of sessions of its own.
    `source` and `destination` are used by the steps of the copy, and then by the scan: by one thread at a
    time. What `open_...` returns belongs to the caller, who closes it; these may be called from any thread.
    """

    def __init__(
        self,
        sources: Sequence[Location],
        destination: Location,
        options: CopyOptions,
        stop: Callable[[], bool],
        note: OnNote,
        early: EarlyStart | None = None,
    ) -> None:
        """Raises UsageError for sources in several places, and for URLs of one name.

        `early`: what was begun for it before.
        """
        check_places(sources)
        check_told_apart((*sources, destination))
        reads_here = capabilities_of(sources[0]).is_here
        self.writes_here = capabilities_of(destination).is_here
        self.is_local = self.writes_here and reads_here
        self.is_between_servers = not (self.writes_here or reads_here)
        self.far_is_source = self.writes_here and not reads_here
        servers = early.servers if early else None
        self.sessions = SessionPool(note, remembers=options.history, servers=servers)  # with the far server
        self.source_sessions = self.sessions
        if self.is_between_servers and sources[0].endpoint != destination.endpoint:
            self.source_sessions = SessionPool(note, remembers=options.history, servers=servers)
        if self.is_between_servers:
            check_one_password(sources[0], destination)
            certificate = shared_certificate(sources[0], destination)
            self.sessions.data_certificate = self.source_sessions.data_certificate = certificate
            self.source_sessions.gsi_memory = self.sessions.gsi_memory
        # By endpoint, of servers that have more in common than sessions of FTP:
        self._shared: dict[tuple[str, str, str, int], SharedConnections] = {}
        for location in (sources[0], destination):
            named = [each for each in (*sources, destination) if each.endpoint == location.endpoint]
            if shared := shared_connections(location, options, stop, named, note):
                self._shared[location.endpoint] = shared
        self.folders = LocalFolders()  # of the destination, where that is this host
        self.reconnecting = Reconnecting()  # who waits to ask a server again
        self.trees = SourceTrees()  # of this host, read without following links
        self._source, self._destination = sources[0], destination
        self._names = [source.name for source in sources]
        self._options, self._stop, self._note = options, stop, note
        self._use(*self.open_both())

    def choose_protocol(self) -> None:
        """Find out what is at the other end of an ssh, which connects; comes before all else."""
        there = [self._destination.name, *map(base_name, self._names)]
        asked = [(self._destination, self.sessions, there)]
        if self._destination.endpoint == self._source.endpoint:
            asked = [(self._source, self.source_sessions, [*self._names, *there])]
        else:
            asked.insert(0, (self._source, self.source_sessions, self._names))
        found = [self._find_protocol(*each) for each in asked]
        if any(found):
            self._use(*self.open_both())

    def _find_protocol(self, location: Location, pool: SessionPool, names: Sequence[str]) -> bool:
        """Tell whether a location turns out to be served by something else than its scheme stands for."""
        found = find_protocol(location, self._options, self._stop, pool, self._note, names=names)
        if found is None:
            return False
        self._shared[location.endpoint] = found
        return True

    def turn_to_sftp(self, error: NameNotCarried) -> None:
        """Leave GridFTP servers at the other end of an ssh; raises `error` where there is no other way."""
        given = (self._source, self.source_sessions), (self._destination, self.sessions)
        left = [(location, pool) for location, pool in given if pool.remote_servers.sshftp_at(location)]
        if not left:
            raise error
        for location, pool in left:
            if location.endpoint not in self._shared:  # both ends may be one host
                self._shared[location.endpoint] = turn_to_sftp(
                    location, str(error), self._options, self._stop, pool, self._note
                )
        self._use(*self.open_both())

    def shared_of(self, end: Endpoint) -> SharedConnections | None:
        """Return what connections to the server of an endpoint share, beside sessions of FTP."""
        return self._shared.get(end.location.endpoint)

    def _use(self, source: Endpoint, destination: Endpoint) -> None:
        self.source, self.destination = source, destination
        self.far = self.source if self.far_is_source else self.destination
        self.near = self.destination if self.far_is_source else self.source

    @property
    def host(self) -> str:
        """The name of the server's host; empty within this host."""
        return self.far.location.host

    def open_source(self) -> Endpoint:
        """Open the source once more."""
        return self._open(self._source, writing=False)

    def open_destination(self) -> Endpoint:
        """Open the destination once more."""
        return self._open(self._destination, writing=True)

    def open_far(self) -> Endpoint:
        """Open the far endpoint once more."""
        return self.open_source() if self.far_is_source else self.open_destination()

    def open_both(self) -> tuple[Endpoint, Endpoint]:
        """Open source and destination once more.

        Where both are servers and one waits for its turn, the other lets its session go to who waits for it:
        else two that have one each could wait for each other.
        """

        def pause() -> None:
            destination.pause()

        source = self._open(self._source, writing=False, while_waiting=pause)
        destination = self._open(self._destination, writing=True, while_waiting=source.pause)
        return source, destination

    def pause(self) -> None:
        """Let others have the sessions of `source` and `destination` that wait for one; see Endpoint."""
        self.near.pause()
        self.far.pause()

    def let_go(self) -> None:
        """Let others have the sessions of `source` and `destination`; see Endpoint."""
        self.near.let_go()
        self.far.let_go()

    @property
    def is_tunable(self) -> bool:
        """Whether the number of streams may change while bytes flow."""
        may = self.far.capabilities.tunable
        return may and (self.near.capabilities.tunable or not self.is_between_servers)

    @property
    def admission(self) -> Admission | None:
        """What lets us in at a server and ends first; None: nothing does."""
        ends = [end.protection.admission for end in (self.near, self.far)]
        return min(filter(None, ends), key=lambda each: each.until_s, default=None)

    @property
    def takes_turns(self) -> bool:
        """Whether a server admits fewer sessions than there is work for."""
        is_full = any(shared.takes_turns for shared in self._shared.values())
        return is_full or self.sessions.takes_turns or self.source_sessions.takes_turns

    @property
    def server_url(self) -> str:
        """The server that locations do not name, and options or settings do; empty where there is none."""
        return next((each.server_url for each in self._shared.values() if each.server_url), "")

    def open_spare(self, is_over: Callable[[], bool]) -> Endpoint:
        """Open the far endpoint with sessions that the copy can do without: they wait for no turn.

        Nor does anybody wait for them once `is_over`: they raise Interrupted.
        """
        return self._open(
            self.far.location,
            writing=not self.far_is_source,
            stop=lambda: self._stop() or is_over(),
            waits_for_turn=False,
        )

    @property
    def log_in_to_probe(self) -> "LogIn | None":
        """What opens a session for probes; None where that is in the clear."""
        return log_in_to_probe(self.far.location, self._options, self.sessions)

    def open_path_probe(self, bound: Callable[[int], None]) -> Endpoint:
        """Open the far endpoint for questions that are answered soon or not at all; see Multipath."""
        soon = replace(self._options, connect_timeout_s=PROBE_CONNECT_S, timeout_s=PROBE_REPLY_S)
        writing = not self.far_is_source
        return open_endpoint(self.far.location, soon, self._stop, writing=writing, bound=bound)

    def _open(
        self,
        location: Location,
        *,
        writing: bool,
        stop: Callable[[], bool] | None = None,
        waits_for_turn: bool = True,
        while_waiting: Callable[[], None] = lambda: None,
    ) -> Endpoint:
        pool = self.sessions if writing else self.source_sessions
        session = session_options(self._options, stop or self._stop, pool=pool)
        session = replace(session, waits_for_turn=waits_for_turn, while_waiting=while_waiting)
        folders, trees = (self.folders, ANYWHERE) if writing else (None, self.trees)
        return endpoint_at(
            location,
            session,
            writing=writing,
            note=self._note,
            folders=folders,
            trees=trees,
            shared=self._shared.get(location.endpoint),
        )

    def describe(self, name: str, *, anew: bool = False) -> FileInfo | None:
        """Describe a source over a session of its own; `anew`: see Supervisor."""
        with contextlib.closing(self.open_source()) as end:
            found = end.stat(name)
            if not anew:
                end.let_go()
            return found

    def disconnect(self) -> None:
        """Close the sessions of `source` and `destination`, which connect again when they are used."""
        self.source.close()
        self.destination.close()

    def close(self) -> None:
        """Close all sessions and folders."""
        self.disconnect()
        self.folders.close()
        for shared in self._shared.values():
            shared.close()
        self.sessions.close()
        self.source_sessions.close()
