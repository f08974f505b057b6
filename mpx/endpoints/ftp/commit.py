"""Giving finished files at a server their times, modes and final names, however little of that it can.

A server cannot be asked to sync; names and times go in one pipelined group. The bytes of every file were
acknowledged before, so a command that is refused harms only its own file: without RNFR its RNTO is refused.
"""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime

from mpx.endpoints.ftp import telnet_escape
from mpx.endpoints.ftp.extensions import renaming
from mpx.endpoints.ftp.refusals import is_missing
from mpx.endpoints.ftp.session import ClientSession
from mpx.endpoints.ftp.stored_size import stated_size, stored_sizes, stores_faithfully
from mpx.endpoints.ftp.wire import Reply, command
from mpx.engine.endpoint import OPEN, Commit, FileInfo, Kind, Stamp
from mpx.engine.source_change import AGAIN
from mpx.errors import DestinationError, IntegrityError, IsThere, MpxError, NotRenamed
from mpx.files.partial_names import aside_name
from mpx.report import OnNote
from mpx.units import counted

_TIMES, _MODES = "modification times", "modes"
_NO_RENAME = "; where a server permits no renaming, --in-place writes under the final name at once"


class ServerCommit:
    """What one server does with finished files. Lives as long as its session."""

    def __init__(
        self,
        session: ClientSession,
        refused: Callable[[Reply, str, str], MpxError],
        describe: Callable[[Sequence[str]], list[FileInfo | MpxError | None]],
    ) -> None:
        """`refused` makes the error of a refusal of what was tried on a name; `describe` is `stats`."""
        self.sets_times = True  # as far as it is known
        self._session = session
        self._refused = refused
        self._describe = describe
        self._verb = "MFMT" if "MFMT" in session.features else "MDTM"  # which some servers take as a setter

    def commit(self, files: Sequence[Commit], note: OnNote) -> list[Exception | None]:
        """Name finished files; see Endpoint."""
        stamps = [Stamp(self._name(file.partial), file.modified_s, file.mode) for file in files]
        lines = [line for stamp in stamps for line in self._stamp(stamp)]
        moved = [file for file in files if file.partial != file.final]
        renames = [line for file in moved for line in self._final_name(file)]
        questions = self._questions(moved)
        replies = self._session.pipeline([*(line for _, line in lines), *renames, *questions])
        self._note_refused([kept for kept, _ in lines], replies, note)
        answers = replies[len(lines) + len(renames) :]
        outcomes = dict(zip(moved, _pairs(replies[len(lines) : len(lines) + len(renames)]), strict=True))
        results: dict[Commit, Exception | None] = dict.fromkeys(files)
        in_the_way = []
        for file, (first, second) in outcomes.items():
            if not first.is_accepted:
                error = self._refused(first, "rename to", file.final)
                is_forbidden = isinstance(error, DestinationError) and not is_missing(first)
                results[file] = DestinationError(f"{error}{_NO_RENAME}") if is_forbidden else error
            elif not second.is_ok:
                results[file] = self._refused(second, "rename to", file.final)
                in_the_way.append(file)
        if questions:
            named = [
                (*seen, file) for seen, file in zip(_pairs(answers), moved, strict=True) if not results[file]
            ]
            results |= self._only_said([file for old, new, file in named if not _is_moved(old, new)])
            results |= self._misfits(
                [f for _, new, f in named if not results[f] and stated_size(new) != f.size_bytes]
            )
        results |= self._replace(in_the_way, results, note)
        self._tidy([file for file in moved if file.was_tried], results)
        return [results[file] for file in files]

    def _name(self, name: str) -> str:
        telnet_escape.learn(self._session, name)
        return self._session.name(name)

    def _final_name(self, file: Commit) -> tuple[bytes, bytes]:
        """Return what gives a file its name, in the place of nothing where a server can be told so."""
        first, second = self._rename(file.partial, file.final)
        if not file.replaces and renaming.FEATURE in self._session.features:
            second = command("SITE", renaming.VERB, self._name(file.final))
        return first, second

    def _rename(self, name: str, other: str) -> tuple[bytes, bytes]:
        return command("RNFR", self._name(name)), command("RNTO", self._name(other))

    # --- servers that say more than they do ----------------------------------------------------------

    def _questions(self, files: Sequence[Commit]) -> list[bytes]:
        """Return what is asked of renamed files: whether the old name is still there, and the new one is."""
        features = self._session.features
        if stores_faithfully(features):
            return []
        verb = "MLST" if "MLST" in features else "SIZE"
        return [command(verb, self._name(name)) for file in files for name in (file.partial, file.final)]

    def _only_said(self, files: Sequence[Commit]) -> dict[Commit, Exception | None]:
        """Return the errors of files whose rename the server acknowledged but did not do."""
        olds = self._describe([file.partial for file in files])
        news = self._describe([file.final for file in files])
        return {
            file: NotRenamed(
                f"{self._session.peer} acknowledged renaming {file.partial} to {file.final} but did not do "
                f"it; {AGAIN}"
            )
            for file, old, new in zip(files, olds, news, strict=True)
            if new is None or (isinstance(old, FileInfo) and old.size_bytes is not None)
        }

    def _misfits(self, files: Sequence[Commit]) -> dict[Commit, Exception | None]:
        """Return the errors of files that have another size under their final names than they were sent with.

        SIZE decides, as MLST may tell the size of a link.
        """
        asked = [file for file in files if file.size_bytes is not None]
        sizes = stored_sizes(self._session, [self._name(file.final) for file in asked])
        return {
            file: IntegrityError(
                f"{self._session.peer}: {file.final} has {stored_bytes} instead of "
                f"{counted(file.size_bytes or 0, 'byte')} after the rename; do not use it, and {AGAIN}"
            )
            for file, stored_bytes in zip(asked, sizes, strict=True)
            if stored_bytes not in (None, file.size_bytes)
        }

    # --- servers whose RNTO replaces nothing -------------------------------------------------------

    def _replace(
        self, files: Sequence[Commit], errors: dict[Commit, Exception | None], note: OnNote
    ) -> dict[Commit, Exception | None]:
        """Name files where old ones are in the way: the old ones are put aside, and removed at the end.

        An old file that cannot be put aside is removed before the new one, which is whole, gets its name; but
        only where the new one has shown that it can be renamed. Where it is then refused this very name it
        stays under its partial name.
        """
        there = self._describe([file.final for file in files])
        found = {file: info for file, info in zip(files, there, strict=True) if isinstance(info, FileInfo)}
        stays: dict[Commit, Exception | None] = {
            file: IsThere(file.final) for file in found if not file.replaces
        }
        old = [file for file, info in found.items() if file not in stays and info.kind is Kind.FILE]
        if not old:
            return stays
        asides = {file: aside_name(file.partial, file.final) for file in old}
        lines = []
        for file in old:
            lines += [
                command("DELE", self._name(asides[file])),  # of an earlier run
                *self._rename(file.final, asides[file]),
            ]
        replies = self._session.pipeline(lines)
        put_aside = [
            file
            for file, first, second in zip(old, replies[1::3], replies[2::3], strict=True)
            if first.is_accepted and second.is_ok
        ]
        # Where RNTO was refused once more it is not the old file that is in the way, so that stays.
        fixed = [file for file, reply in zip(old, replies[1::3], strict=True) if not reply.is_accepted]
        strays = {file: self._is_stray(file, asides[file]) for file in fixed}
        removed = [file for file, is_stray in strays.items() if is_stray is False]
        self._session.pipeline([command("DELE", self._name(file.final)) for file in removed])
        tried = [*put_aside, *removed]
        lines = [line for file in tried for line in self._rename(file.partial, file.final)]
        renamed = _pairs(self._session.pipeline(lines))
        results: dict[Commit, Exception | None] = {
            file: NotRenamed(f"{errors[file]}; what was sent is whole, as {asides[file]}")
            if is_stray
            else DestinationError(f"{errors[file]}{_NO_RENAME}")
            for file, is_stray in strays.items()
        }
        for file, (_, second) in zip(tried, renamed, strict=True):
            results[file] = None if second.is_ok else errors[file]
            if not second.is_ok and file in removed:
                (old_info,) = self._describe([file.final])
                if not isinstance(old_info, FileInfo):  # as far as anybody can tell
                    results[file] = _kept(file, errors[file])
        if not stores_faithfully(self._session.features):
            results |= self._only_said([file for file in tried if results[file] is None])
            results |= self._misfits([file for file in tried if results[file] is None])
        self._settle_asides({file: asides[file] for file in put_aside}, results, note)
        return results | stays

    def _is_stray(self, file: Commit, other: str) -> bool | None:
        """Give a finished file another name that is free, and its own again.

        False where it has that; None where it is given no other name; True where it does not come back.
        """
        lines = [*self._rename(file.partial, other), *self._rename(other, file.partial)]
        replies = self._session.pipeline(lines)
        return not replies[3].is_ok if replies[1].is_ok else None

    def _settle_asides(
        self, asides: dict[Commit, str], results: dict[Commit, Exception | None], note: OnNote
    ) -> None:
        """Remove old files whose successors have their names, and bring the others back."""
        name = self._name
        done = [aside for file, aside in asides.items() if results[file] is None]
        kept = {file: aside for file, aside in asides.items() if results[file] is not None}
        back = [line for file, aside in kept.items() for line in self._rename(aside, file.final)]
        replies = self._session.pipeline([*(command("DELE", name(aside)) for aside in done), *back])
        for (file, aside), (_, second) in zip(kept.items(), _pairs(replies[len(done) :]), strict=True):
            if not second.is_ok:
                error = results[file]
                kind = type(error) if isinstance(error, (NotRenamed, IntegrityError)) else DestinationError
                results[file] = kind(f"{error}; the old file is now {aside}")
        for aside, reply in zip(done, replies, strict=False):
            if not reply.is_ok:
                note(f"{self._session.peer} does not delete the old file, now {aside} ({reply.code})")

    def _tidy(self, files: Sequence[Commit], results: dict[Commit, Exception | None]) -> None:
        """Settle old files that an attempt that was cut off may have left aside, as far as there are any.

        Where neither has the final name the old one may have been removed, and the new one is kept.
        """
        if stores_faithfully(self._session.features):
            return  # their RNTO replaces, so nothing was put aside
        done = [file for file in files if results[file] is None]
        failed = [file for file in files if results[file] is not None]
        there = self._describe([file.final for file in failed])
        nameless = [file for file, info in zip(failed, there, strict=True) if info is None]
        asides = {file: aside_name(file.partial, file.final) for file in files}
        back = [line for file in nameless for line in self._rename(asides[file], file.final)]
        replies = self._session.pipeline(
            [*(command("DELE", self._name(asides[file])) for file in done), *back]
        )
        for file, (_, second) in zip(nameless, _pairs(replies[len(done) :]), strict=True):
            (new,) = self._describe([file.partial]) if not second.is_ok else (None,)
            if isinstance(new, FileInfo) and not isinstance(results[file], NotRenamed):
                results[file] = _kept(file, results[file])

    # --- times and modes -----------------------------------------------------------------------------

    def set_times(self, folders: Sequence[Stamp], note: OnNote) -> None:
        """Give folders their times and modes; see Endpoint. All go out together."""
        lines = [line for folder in folders for line in self._stamp(folder)]
        replies = self._session.pipeline([line for _, line in lines])
        self._note_refused([kept for kept, _ in lines], replies, note)

    def _stamp(self, stamp: Stamp) -> Iterator[tuple[str, bytes]]:
        """Yield what is to be kept of a name, and the command for it."""
        full = self._name(stamp.name)
        if stamp.mode is not None:
            yield _MODES, command("SITE", "CHMOD", f"{stamp.mode & 0o777:04o}", full)
        if stamp.modified_s is None or not self.sets_times:
            return
        with contextlib.suppress(ValueError, OverflowError, OSError):  # there are four digits for the year
            when = datetime.fromtimestamp(stamp.modified_s, UTC).strftime("%Y%m%d%H%M%S")
            yield _TIMES, command(self._verb, when, full)

    def _note_refused(self, stamps: Sequence[str], replies: Sequence[Reply], note: OnNote) -> None:
        answers = list(zip(stamps, replies, strict=False))
        refused = {kept: reply.code for kept, reply in answers if not reply.is_ok}
        peer = self._session.peer
        if _MODES in refused:
            note(f"{_MODES} are not kept everywhere: {peer} refuses SITE CHMOD ({refused[_MODES]})")
        if _TIMES in refused and self._verb == "MFMT":
            note(f"{_TIMES} are not kept everywhere: {peer} refuses MFMT ({refused[_TIMES]})")
        elif _TIMES in refused:
            note(f"{_TIMES} are not kept: {peer} has no MFMT, and no MDTM that sets them")
            self.sets_times = False


def unseal(
    session: ClientSession, described: Sequence[tuple[str, str, FileInfo | MpxError | None]]
) -> dict[str, int]:
    """Let the owner write in folders that do not let him; return the modes that those had, by name.

    Each folder comes with its name as the server takes it, and what it is there.
    """
    sealed = [
        (name, full, found.mode)
        for name, full, found in described
        if isinstance(found, FileInfo) and found.mode is not None and found.mode & OPEN != OPEN
    ]
    replies = session.pipeline(
        [command("SITE", "CHMOD", f"{(mode | OPEN) & 0o777:04o}", full) for _, full, mode in sealed]
    )
    return {name: mode for (name, _, mode), reply in zip(sealed, replies, strict=True) if reply.is_ok}


def _kept(file: Commit, error: Exception | None) -> NotRenamed:
    return NotRenamed(f"{error}; what was sent is whole, as {file.partial}")


def _is_moved(old: Reply, new: Reply) -> bool:
    return not old.is_ok and new.is_ok


def _pairs(replies: Sequence[Reply]) -> list[tuple[Reply, Reply]]:
    return list(zip(replies[::2], replies[1::2], strict=True))
