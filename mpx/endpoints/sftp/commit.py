"""Giving finished files at an SFTP server their sizes, times, modes and final names, as one group."""

import stat
from collections.abc import Callable, Sequence

from mpx.endpoints.sftp import wire
from mpx.endpoints.sftp.refusals import is_missing, is_ok, is_unsupported
from mpx.endpoints.sftp.session import HANDLES_LEFT, MOST_UNTOLD, Request, SftpSession, extended, request
from mpx.endpoints.sftp.wire import (
    LARGEST_SECONDS,
    Attributes,
    Code,
    Described,
    Handle,
    Open,
    PacketKind,
    Reply,
    Status,
)
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
        # What gfal2 reaches may replace nothing, as SRM, which is known once it has been asked to.
        self._may_put_aside = wire.POSIX_RENAME not in session.extensions or wire.GFAL in session.extensions
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
        apart = [file for file in moved if file not in in_one_step]
        done: list[Commit] = []
        for file, reply in zip(in_one_step, replies[len(stamps) :], strict=True):
            if is_ok(reply):
                done.append(file)
            elif is_unsupported(reply) and file.replaces:
                apart.append(file)
            else:
                results[file] = self._not_renamed(file, reply)
        for file in apart:
            results[file] = self._put_in_place(file.partial, file.final)
            if results[file] is None:
                done.append(file)
        self._remove_asides([file for file in done if file.was_tried])
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
        error = self._refused(refusal, "rename to", file.final)
        if file.was_tried and self._may_put_aside:
            return self._brought_back(aside_name(file.partial, file.final), file.final, error)
        return error

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
            if not is_unsupported(reply):
                return None if is_ok(reply) else self._refused(reply, "rename to", other)
        return self._put_in_place(name, other)

    # --- servers that rename to no name that is taken, as by version 3 -----------------------------------

    def _put_in_place(self, name: str, other: str) -> MpxError | None:
        """Do as `rename`: what has the name is put aside, and removed at the end."""
        (first,) = self._ask([_rename(name, other)])
        if is_ok(first):
            return None
        aside, error = aside_name(name, other), self._refused(first, "rename to", other)
        (old,) = self._ask([request(PacketKind.LSTAT, wire.name(other))])
        if is_missing(old):  # which an attempt before may have put aside: nothing else is there of it
            return self._brought_back(aside, other, error)
        if isinstance(old, Described) and stat.S_ISDIR(old.attributes.mode or 0):
            return error
        _, put = self._ask([request(PacketKind.REMOVE, wire.name(aside)), _rename(other, aside)])
        if not is_ok(put):
            return error
        (second,) = self._ask([_rename(name, other)])
        if is_ok(second):
            self._ask([request(PacketKind.REMOVE, wire.name(aside))])
            return None
        return self._brought_back(aside, other, self._refused(second, "rename to", other))

    def _brought_back(self, aside: str, other: str, error: MpxError) -> MpxError:
        """Give an old file its name again, if there is one; return the error of the new one as it is then."""
        (back,) = self._ask([_rename(aside, other)])
        if is_ok(back):
            return error
        (left,) = self._ask([request(PacketKind.LSTAT, wire.name(aside))])
        return error if is_missing(left) else NotRenamed(f"{error}; the old file is now {aside}")

    def _remove_asides(self, files: Sequence[Commit]) -> None:
        """Remove old files that an attempt before, which was cut off, has left aside."""
        if self._may_put_aside:
            asides = [aside_name(file.partial, file.final) for file in files]
            self._ask([request(PacketKind.REMOVE, wire.name(aside)) for aside in asides])

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
