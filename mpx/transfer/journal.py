"""What has arrived of an unfinished copy, kept on disk so that the next run continues it.

One journal for each pair of source and destination (and server, where s3:// is one of them), in the user's
state directory ($MPX_STATE_DIR, else $XDG_STATE_HOME/mpx, else ~/.local/state/mpx):

    KEY.journal    lines of JSON, appended to while a copy runs, and written anew once they are many
    LOCK.lock      there, and held (flock), while a copy to that destination runs

    {"mpx": 1, "source": "...", "destination": "...", "boot": "..."}       the first line
                  "server": "..." in it, where locations do not name that (s3://)
    {"file": "final name", "partial": "...", "size": n, "modified": t}      a file was begun
    {"arrived": [[start, end], ...], "of": "final name"}                    more of it has arrived
    {"lost": [[start, end], ...], "of": "final name"}                       that has not arrived after all
    {"done": "final name"}                                                  it has its final name
    {"done": "final name", "given_up": true}                                its partial file was removed
    {"finished": [files, bytes]}                                            so much has its final name so far

A line cut short by a crash ends the journal: what it said is not known, and is proven by checksum or
fetched again. `arrived` means: written to the partial file by us; or, at a server, covered by its
range marker. It does not mean synced: after the host was restarted (another `boot`) nothing that was
written here is believed without a checksum.
"""

import contextlib
import errno
import hashlib
import json
import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from mpx.engine.ranges import Range
from mpx.errors import DestinationError, MpxError, NoSpace, UsageError
from mpx.files.partial_file import NotOurs
from mpx.files.state_folder import StateFolder
from mpx.transfer.destination_lock import DestinationLock
from mpx.transfer.journal_reader import (
    UNREADABLE,
    VERSION,
    Contents,
    Unfinished,
    boot_id,
    lines_of,
    read_journal,
    text_of,
)

LONG_BYTES = 64 * 1024 * 1024  # of a journal, after which it is written anew


def copy_tag(source: str, destination: str, server: str = "") -> str:
    """Return the short name of this pair, as it stands in partial files and journals."""
    names = (source, destination, *([server] if server else []))
    pair = "\0".join(names).encode("utf-8", "surrogateescape")
    return hashlib.sha256(pair).hexdigest()[:12]


class Journal:
    """The journal of one running copy; safe for several threads."""

    def __init__(self, source: str, destination: str, *, server: str = "", counts_on: bool = True) -> None:
        """Take the lock and read what an earlier run left; `server`: where locations do not name it.

        `counts_on`: files that it finished are not copied again, so they still count as finished.
        Raises DestinationError if another copy to the same destination runs.
        """
        self.tag = copy_tag(source, destination, server)
        self._name = f"{self.tag}.journal"
        self._mutex = threading.Lock()
        self._folder = folder = StateFolder()
        self._path = folder.path / self._name
        try:
            self._lock = _take_lock(folder, destination, server)
        except BaseException:
            folder.close()
            raise
        try:
            left = read_journal(folder, self._name)
            self.unfinished = left.files
            # With `_mutex` held: files that are neither done nor given up, and what is written of them.
            self._known = Contents(
                {file.final: replace(file, arrived=file.arrived.copy()) for file in left.files.values()},
                left.finished_files if counts_on else 0,
                left.finished_bytes if counts_on else 0,
            )
            head = {"mpx": VERSION, "source": source, "destination": destination, "boot": boot_id()}
            self._head = json.dumps({**head, "server": server} if server else head) + "\n"
            self._most_bytes = LONG_BYTES
            self._fd: int | None = self._written_anew()
        except OSError as error:
            self._lock.close()
            folder.close()
            raise _refused(error, self._path) from None

    def _written_anew(self) -> int:
        """Write the journal anew, compact, with what is still unfinished; return it, open for more."""
        known = self._known
        lines = [self._head]
        if known.finished_files:
            lines.append(json.dumps({"finished": [known.finished_files, known.finished_bytes]}) + "\n")
        for file in known.files.values():
            lines.append(_begin_line(file))
            if file.arrived:
                lines.append(_arrived_line(file.final, list(file.arrived)))
        aside = f"{self.tag}.new"
        fd = self._folder.create(aside)
        try:
            _append(fd, "".join(lines))
            self._folder.rename(aside, self._name)
        except BaseException:
            os.close(fd)
            with contextlib.suppress(OSError):
                self._folder.unlink(aside)
            raise
        return fd

    def begin(self, *files: Unfinished) -> None:
        """Note that files are begun (anew: whatever was known of them before is void)."""
        with self._mutex:
            self._known.files.update((file.final, file) for file in files)
            self._write("".join(map(_begin_line, files)))

    def arrived(self, final: str, ranges: list[Range]) -> None:
        """Note that more of a file has arrived; one that is done meanwhile is left out."""
        with self._mutex:
            if file := self._known.files.get(final):
                file.arrived.update(ranges)
                self._write(_arrived_line(final, ranges))

    def lost(self, final: str, ranges: list[Range]) -> None:
        """Note that what was said to have arrived has not, or came damaged."""
        with self._mutex:
            if file := self._known.files.get(final):
                for start, end in ranges:
                    file.arrived.remove(start, end)
                self._write(json.dumps({"lost": ranges, "of": final}) + "\n")

    def done(self, finals: list[str]) -> None:
        """Note that files have their final names."""
        with self._mutex:
            for final in finals:
                self._known.done(final, is_there=True)
            self._write("".join(json.dumps({"done": final}) + "\n" for final in finals))

    def removed(self, final: str) -> None:
        """Note that a file was given up and its partial file removed."""
        with self._mutex:
            self._known.done(final, is_there=False)
            self._write(json.dumps({"done": final, "given_up": True}) + "\n")

    def _write(self, text: str) -> None:
        """Append whole lines or nothing, and nothing once it is closed; raises NoSpace, or UsageError."""
        if self._fd is None:
            return
        try:
            before = os.fstat(self._fd).st_size
            try:
                _append(self._fd, text)
            except OSError:
                with contextlib.suppress(OSError):
                    os.ftruncate(self._fd, before)
                raise
            if before > self._most_bytes:
                self._compact(self._fd, before)
        except OSError as error:
            raise _refused(error, self._path) from None

    def _compact(self, fd: int, size_bytes: int) -> None:
        """Write the journal anew, as that of a copy of weeks would grow without end; best effort."""
        self._most_bytes = 2 * size_bytes
        with contextlib.suppress(OSError):  # the long one will do
            self._fd = self._written_anew()
            self._most_bytes = LONG_BYTES + 2 * os.fstat(self._fd).st_size
            os.close(fd)

    def close(self) -> None:
        """Let go of the lock; a journal with nothing unfinished is removed. Closing twice is fine."""
        with self._mutex:
            if self._fd is None:
                return
            fd, self._fd = self._fd, None  # the number may soon be that of another file
            with contextlib.suppress(OSError):  # what a network file system could not keep is sent again
                os.close(fd)
            if not self._known.files:
                with contextlib.suppress(OSError):
                    self._folder.unlink(self._name)
            self._lock.close()
            self._folder.close()


def _append(fd: int, text: str) -> None:
    data = text.encode("utf-8", "surrogateescape")
    while data:
        data = data[os.write(fd, data) :]


def _begin_line(file: Unfinished) -> str:
    line = {"file": file.final, "partial": file.partial, "size": file.size_bytes, "modified": file.modified_s}
    return json.dumps({**line, "tag": file.tag} if file.tag else line) + "\n"


def _arrived_line(final: str, ranges: list[Range]) -> str:
    return json.dumps({"arrived": ranges, "of": final}) + "\n"


def _refused(error: OSError, path: Path) -> MpxError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return NoSpace(
            f"no space for the journal {path}: {error.strerror}; free some, or set MPX_STATE_DIR to another "
            "folder, and copy the same SRC to the same DST again"
        )
    if isinstance(error, NotOurs):
        return UsageError(f"{error.strerror}, or set MPX_STATE_DIR to another folder")
    return UsageError(
        f"cannot write the journal {path}: {error.strerror}; set MPX_STATE_DIR to a folder you can write"
    )


def _take_lock(folder: StateFolder, destination: str, server: str) -> DestinationLock:
    name = f"{copy_tag('', destination, server)}.lock"
    try:
        return DestinationLock(folder, name, destination)
    except OSError as error:
        raise _refused(error, folder.path / name) from None


@dataclass(frozen=True)
class Leftover:
    """An interrupted copy: where from, where to, and what its journal holds."""

    source: str
    destination: str
    server: str  # where locations do not name it (S3); empty: as options and settings say
    key: str  # of the journal
    known: Contents
    forget: Callable[[], None]  # removes its journal, and what it has noted of tasks at a service


def leftovers() -> Iterator[Leftover]:
    """Yield the interrupted copies of this user, those that run now left out; none can start meanwhile.

    Raises UsageError where a journal is no file of ours, or the folder cannot be used.
    """
    with StateFolder() as folder:
        for name in folder.names(".journal"):
            try:
                head = json.loads(next(lines_of(folder, name)))
                source, destination = text_of(head["source"]), text_of(head["destination"])
                server = text_of(head.get("server", ""))
            except NotOurs as error:
                raise _refused(error, folder.path / name) from None
            except (StopIteration, *UNREADABLE):
                continue
            try:
                lock = _take_lock(folder, destination, server)
            except DestinationError:
                continue
            with lock:
                key = name.removesuffix(".journal")
                known, forget = read_journal(folder, name), partial(_forget, folder, key)
                yield Leftover(source, destination, server, key, known, forget)


def _forget(folder: StateFolder, key: str) -> None:
    for name in (f"{key}.tasks", f"{key}.journal"):
        folder.unlink(name)
