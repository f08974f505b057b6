"""Giving finished files at an SFTP server their sizes, times, modes and final names, as one group."""

from collections.abc import Callable, Sequence

from mpx.endpoints.sftp import wire
from mpx.endpoints.sftp.refusals import is_ok
from mpx.endpoints.sftp.session import Request, SftpSession, extended, request
from mpx.endpoints.sftp.wire import LARGEST_SECONDS, Attributes, Code, Handle, Open, PacketKind, Reply, Status
from mpx.engine.endpoint import Commit, Stamp
from mpx.errors import MpxError, NotRenamed
from mpx.files.partial_names import aside_name
from mpx.report import OnNote

_TIMES, _MODES = "modification times", "modes"

Refused = Callable[[Reply, str, str], MpxError]


class SftpCommit:
    """What one server does with finished files. Used for one group."""

    def __init__(
        self, session: SftpSession, ask: Callable[[Sequence[Request]], list[Reply]], refused: Refused
    ) -> None:
        """`refused` makes the error of a refusal of what was tried on a name."""
        self._extensions = session.extensions
        self._host = session.host
        self._ask = ask
        self._refused = refused

    def commit(self, files: Sequence[Commit], note: OnNote) -> list[Exception | None]:
        """Name finished files; see Endpoint. Each is synced, where the server can, before it is named."""
        results: dict[Commit, Exception | None] = dict.fromkeys(files)
        opened = self._ask([_open(file.partial) for file in files])
        handles = {
            file: wire.text(reply.value)
            for file, reply in zip(files, opened, strict=True)
            if isinstance(reply, Handle)
        }
        self._settle(files, handles, results, note)
        moved = [file for file in files if results[file] is None and file.partial != file.final]
        if wire.POSIX_RENAME in self._extensions:
            replies = self._ask([_replace(file.partial, file.final) for file in moved])
            for file, reply in zip(moved, replies, strict=True):
                if not is_ok(reply):
                    results[file] = self._refused(reply, "rename to", file.final)
        else:
            for file in moved:
                results[file] = self.rename(file.partial, file.final)
        return [results[file] for file in files]

    def _settle(
        self,
        files: Sequence[Commit],
        handles: dict[Commit, bytes],
        results: dict[Commit, Exception | None],
        note: OnNote,
    ) -> None:
        """Set what is kept of files, and sync and close those that could be opened."""
        asked: list[tuple[Commit, str, Request]] = []
        for file in files:
            handle = handles.get(file)
            for kept, attributes in _stamps(file.modified_s, file.mode, note):
                if handle is None:  # its mode may not let us, as an attempt before has set it
                    asked.append((file, kept, _set(file.partial, attributes)))
                else:
                    stamp = request(PacketKind.FSETSTAT, handle, wire.attributes(attributes))
                    asked.append((file, kept, stamp))
            if handle is not None:
                if wire.FSYNC in self._extensions:
                    asked.append((file, "", extended(wire.FSYNC, handle)))
                asked.append((file, "", request(PacketKind.CLOSE, handle)))
        replies = self._ask([each for _, _, each in asked])
        for (file, kept, _), reply in zip(asked, replies, strict=True):
            if is_ok(reply):
                continue
            if kept:
                note(f"{kept} are not kept everywhere: {self._host} does not set them")
            elif not (isinstance(reply, Status) and reply.code == Code.OP_UNSUPPORTED):
                results[file] = self._refused(reply, "make safe", file.final)

    def rename(self, name: str, other: str) -> MpxError | None:
        """Give a file another name, replacing what has it; return what kept it from that."""
        if wire.POSIX_RENAME in self._extensions:
            (reply,) = self._ask([_replace(name, other)])
            return None if is_ok(reply) else self._refused(reply, "rename to", other)
        (first,) = self._ask([_rename(name, other)])
        if is_ok(first):
            return None
        # Version 3 renames to no name that is taken: what has it is put aside, and removed at the end.
        aside = aside_name(name, other)
        _, put = self._ask([request(PacketKind.REMOVE, wire.name(aside)), _rename(other, aside)])
        if not is_ok(put):
            return self._refused(first, "rename to", other)
        (second,) = self._ask([_rename(name, other)])
        if is_ok(second):
            self._ask([request(PacketKind.REMOVE, wire.name(aside))])
            return None
        (back,) = self._ask([_rename(aside, other)])
        error = self._refused(second, "rename to", other)
        return error if is_ok(back) else NotRenamed(f"{error}; the old file is now {aside}")

    def set_times(self, folders: Sequence[Stamp], note: OnNote) -> None:
        """Give folders their times and modes; see Endpoint."""
        asked = [
            (kept, _set(folder.name, attributes))
            for folder in folders
            for kept, attributes in _stamps(folder.modified_s, folder.mode, note)
        ]
        replies = self._ask([each for _, each in asked])
        for (kept, _), reply in zip(asked, replies, strict=True):
            if not is_ok(reply):
                note(f"{kept} are not kept everywhere: {self._host} does not set them")


def _stamps(modified_s: float | None, mode: int | None, note: OnNote) -> list[tuple[str, Attributes]]:
    """Return what is to be set of a name; what cannot be set is noted."""
    stamps = []
    if mode is not None:
        stamps.append((_MODES, Attributes(mode=mode & 0o777)))
    if modified_s is not None:
        if 0 <= modified_s < LARGEST_SECONDS:
            stamps.append((_TIMES, Attributes(modified_s=int(modified_s))))
        else:
            note(f"{_TIMES} are not kept everywhere: SFTP has none before 1970, nor after 2106")
    return stamps


def _open(name: str) -> Request:
    return request(PacketKind.OPEN, wire.name(name), wire.u32(Open.WRITE), wire.attributes(Attributes()))


def _set(name: str, attributes: Attributes) -> Request:
    return request(PacketKind.SETSTAT, wire.name(name), wire.attributes(attributes))


def _rename(name: str, other: str) -> Request:
    return request(PacketKind.RENAME, wire.name(name), wire.name(other))


def _replace(name: str, other: str) -> Request:
    return extended(wire.POSIX_RENAME, wire.name(name), wire.name(other))
