"""Giving finished files at an SFTP server their sizes, times, modes and final names, as one group."""

from collections.abc import Callable, Sequence

from mpx.endpoints.sftp import wire
from mpx.endpoints.sftp.refusals import is_ok, is_unsupported
from mpx.endpoints.sftp.session import HANDLES_LEFT, MOST_UNTOLD, Request, SftpSession, extended, request
from mpx.endpoints.sftp.wire import LARGEST_SECONDS, Attributes, Code, Handle, Open, PacketKind, Reply, Status
from mpx.engine.endpoint import Commit, Stamp
from mpx.errors import IsThere, MpxError, NotRenamed
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
        self._at_once = max(1, (session.limits.handles or MOST_UNTOLD + HANDLES_LEFT) - HANDLES_LEFT)
        self._host = session.host
        self._ask = ask
        self._refused = refused

    def commit(self, files: Sequence[Commit], note: OnNote) -> list[Exception | None]:
        """Name finished files; see Endpoint. Each is synced, where the server can, before it is named."""
        results: dict[Commit, Exception | None] = dict.fromkeys(files)
        unsynced = [file for file in files if not file.is_synced]
        for i in range(0, len(unsynced), self._at_once):
            self._sync(unsynced[i : i + self._at_once], results)
        synced = [file for file in files if results[file] is None]
        stamps = [(file, _set(file.partial, each)) for file in synced if (each := _stamp(file, note))]
        moved = [file for file in synced if file.partial != file.final]
        # Version 3 renames to no name that is taken; what has replaced it may.
        can_replace = wire.POSIX_RENAME in self._extensions
        in_one_step = [file for file in moved if can_replace or not file.replaces]
        renames = [(_replace if file.replaces else _rename)(file.partial, file.final) for file in in_one_step]
        replies = self._ask([*(each for _, each in stamps), *renames])  # in this order, so done in it
        refused = [file for (file, _), reply in zip(stamps, replies, strict=False) if not is_ok(reply)]
        for file, reply in zip(in_one_step, replies[len(stamps) :], strict=True):
            if not is_ok(reply):
                results[file] = self._not_renamed(file, reply)
        for file in moved:
            if file not in in_one_step:
                results[file] = self.rename(file.partial, file.final)
        self._set_apart(
            [Stamp(file.final, file.modified_s, file.mode) for file in refused if results[file] is None], note
        )
        return [results[file] for file in files]

    def _not_renamed(self, file: Commit, refusal: Reply) -> MpxError:
        """Return what kept a file from its name: one that is there, where none is to be replaced."""
        if not file.replaces:
            (there,) = self._ask([request(PacketKind.LSTAT, wire.name(file.final))])
            if not isinstance(there, Status):
                return IsThere(file.final)
        return self._refused(refusal, "rename to", file.final)

    def _sync(self, files: Sequence[Commit], results: dict[Commit, Exception | None]) -> None:
        """Sync and close files; those that cannot be opened beside the others, once these are closed."""
        if wire.FSYNC not in self._extensions:
            return
        opened = self._ask([_open(file.partial) for file in files])
        asked: list[tuple[Commit, Request]] = []
        again: list[Commit] = []
        for file, reply in zip(files, opened, strict=True):
            if isinstance(reply, Handle):
                handle = wire.text(reply.value)
                asked.append((file, extended(wire.FSYNC, handle)))
                asked.append((file, request(PacketKind.CLOSE, handle)))
            elif isinstance(reply, Status) and reply.code == Code.FAILURE and len(files) > 1:
                again.append(file)
            elif not isinstance(reply, Status) or reply.code != Code.PERMISSION_DENIED:
                # Its mode may not let us, as an attempt before has set it once it was synced.
                results[file] = self._refused(reply, "make safe", file.final)
        replies = self._ask([each for _, each in asked])
        for (file, _), reply in zip(asked, replies, strict=True):
            if not is_ok(reply) and not is_unsupported(reply):
                results[file] = self._refused(reply, "make safe", file.final)
        if again:
            self._at_once = max(1, len(files) - len(again))
        for i in range(0, len(again), self._at_once):
            self._sync(again[i : i + self._at_once], results)

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
        stamps = [(folder, each) for folder in folders if (each := _stamp(folder, note))]
        replies = self._ask([_set(folder.name, each) for folder, each in stamps])
        refused = [folder for (folder, _), reply in zip(stamps, replies, strict=True) if not is_ok(reply)]
        self._set_apart(refused, note)

    def _set_apart(self, refused: Sequence[Stamp], note: OnNote) -> None:
        """Set what is kept of names one by one, where that was refused as a whole; note what is not kept."""
        apart = [
            (kept, _set(stamp.name, each))
            for stamp in refused
            for kept, each in (
                (_MODES, _stamp(Stamp(stamp.name, None, stamp.mode), note)),
                (_TIMES, _stamp(Stamp(stamp.name, stamp.modified_s, None), note)),
            )
            if each
        ]
        replies = self._ask([each for _, each in apart])
        for (kept, _), reply in zip(apart, replies, strict=True):
            if not is_ok(reply):
                note(f"{kept} are not kept everywhere: {self._host} does not set them")


def _stamp(kept: Commit | Stamp, note: OnNote) -> Attributes | None:
    """Return what is to be set of a name, None where that is nothing; what cannot be set is noted."""
    modified_s = kept.modified_s
    if modified_s is not None and not 0 <= modified_s < LARGEST_SECONDS:
        note(f"{_TIMES} are not kept everywhere: SFTP has none before 1970, nor after 2106")
        modified_s = None
    if modified_s is None and kept.mode is None:
        return None
    return Attributes(
        mode=None if kept.mode is None else kept.mode & 0o777,
        modified_s=None if modified_s is None else int(modified_s),
    )


def _open(name: str) -> Request:
    return request(PacketKind.OPEN, wire.name(name), wire.u32(Open.WRITE), wire.attributes(Attributes()))


def _set(name: str, attributes: Attributes) -> Request:
    return request(PacketKind.SETSTAT, wire.name(name), wire.attributes(attributes))


def _rename(name: str, other: str) -> Request:
    return request(PacketKind.RENAME, wire.name(name), wire.name(other))


def _replace(name: str, other: str) -> Request:
    return extended(wire.POSIX_RENAME, wire.name(name), wire.name(other))
