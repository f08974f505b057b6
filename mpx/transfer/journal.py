"""What has arrived of an unfinished copy, kept on disk so that the next run continues it.

One journal for each pair of source and destination, in the user's state directory
($MPX_STATE_DIR, else $XDG_STATE_HOME/mpx, else ~/.local/state/mpx):

    KEY.journal    lines of JSON, appended to while a copy runs, and written anew once they are many
    LOCK.lock      there, and held (flock), while a copy to that destination runs

    {"mpx": 1, "source": "...", "destination": "...", "boot": "..."}       the first line
    {"file": "final name", "partial": "...", "size": n, "modified": t}      a file was begun
    {"arrived": [[start, end], ...], "of": "final name"}                    more of it has arrived
    {"lost": [[start, end], ...], "of": "final name"}                       that has not arrived after all
    {"done": "final name"}                                                  it has its final name

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
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from mpx.engine.ranges import Range, RangeSet
from mpx.errors import DestinationError, MpxError, NoSpace, UsageError
from mpx.files.partial_file import NotOurs
from mpx.files.state_folder import StateFolder
from mpx.transfer.destination_lock import DestinationLock

LONG_BYTES = 64 * 1024 * 1024  # of a journal, after which it is written anew
_VERSION = 1
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
# What a line raises that we have not written, or not to its end.
_UNREADABLE = (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError)


def copy_tag(source: str, destination: str) -> str:
    """Return the short name of this pair, as it stands in partial files and journals."""
    pair = f"{source}\0{destination}".encode("utf-8", "surrogateescape")
    return hashlib.sha256(pair).hexdigest()[:12]


@dataclass(slots=True)
class Unfinished:
    """What the journal knows of one file."""

    final: str
    partial: str
    size_bytes: int
    modified_s: float | None
    arrived: RangeSet = field(default_factory=RangeSet)


class Journal:
    """The journal of one running copy; safe for several threads."""

    def __init__(self, source: str, destination: str) -> None:
        """Take the lock and read what an earlier run left.

        Raises DestinationError if another copy to the same destination runs.
        """
        self.tag = copy_tag(source, destination)
        self._name = f"{self.tag}.journal"
        self._mutex = threading.Lock()
        self._folder = folder = StateFolder()
        self._path = folder.path / self._name
        try:
            self._lock = _take_lock(folder, destination)
        except BaseException:
            folder.close()
            raise
        try:
            self.unfinished = {file.final: file for file in read_files(folder, self._name)}
            # With `_mutex` held: files that are neither done nor given up, and what is written of them.
            self._open = {
                file.final: replace(file, arrived=file.arrived.copy()) for file in self.unfinished.values()
            }
            head = {"mpx": _VERSION, "source": source, "destination": destination, "boot": boot_id()}
            self._head = json.dumps(head) + "\n"
            self._most_bytes = LONG_BYTES
            self._fd: int | None = self._written_anew()
        except OSError as error:
            self._lock.close()
            folder.close()
            raise _refused(error, self._path) from None

    def _written_anew(self) -> int:
        """Write the journal anew, compact, with what is still unfinished; return it, open for more."""
        lines = [self._head]
        for file in self._open.values():
            lines.append(_begin_line(file.final, file.partial, file.size_bytes, file.modified_s))
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

    def begin(self, final: str, partial: str, size_bytes: int, modified_s: float | None) -> None:
        """Note that a file is begun (anew: whatever was known of it before is void)."""
        with self._mutex:
            self._open[final] = Unfinished(final, partial, size_bytes, modified_s)
            self._write(_begin_line(final, partial, size_bytes, modified_s))

    def arrived(self, final: str, ranges: list[Range]) -> None:
        """Note that more of a file has arrived; one that is done meanwhile is left out."""
        with self._mutex:
            if file := self._open.get(final):
                file.arrived.update(ranges)
                self._write(_arrived_line(final, ranges))

    def lost(self, final: str, ranges: list[Range]) -> None:
        """Note that what was said to have arrived has not, or came damaged."""
        with self._mutex:
            if file := self._open.get(final):
                for start, end in ranges:
                    file.arrived.remove(start, end)
                self._write(json.dumps({"lost": ranges, "of": final}) + "\n")

    def done(self, finals: list[str]) -> None:
        """Note that files have their final names, or were given up with their partial files removed."""
        with self._mutex:
            for final in finals:
                self._open.pop(final, None)
            self._write("".join(json.dumps({"done": final}) + "\n" for final in finals))

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
            if not self._open:
                with contextlib.suppress(OSError):
                    self._folder.unlink(self._name)
            self._lock.close()
            self._folder.close()


def _append(fd: int, text: str) -> None:
    data = text.encode("utf-8", "surrogateescape")
    while data:
        data = data[os.write(fd, data) :]


def _begin_line(final: str, partial: str, size_bytes: int, modified_s: float | None) -> str:
    line = {"file": final, "partial": partial, "size": size_bytes, "modified": modified_s}
    return json.dumps(line) + "\n"


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


def _take_lock(folder: StateFolder, destination: str) -> DestinationLock:
    name = f"{copy_tag('', destination)}.lock"
    try:
        return DestinationLock(folder, name, destination)
    except OSError as error:
        raise _refused(error, folder.path / name) from None


def boot_id() -> str:
    """Return what changes when this host restarts, empty where the kernel does not tell."""
    try:
        return _BOOT_ID.read_text().strip()
    except OSError:
        return ""


def _lines(folder: StateFolder, name: str) -> Iterator[str]:
    """Yield the lines of a journal; none where there is none. Raises NotOurs for what is no file of ours."""
    try:
        fd = folder.open(name, os.O_RDONLY)
    except NotOurs:
        raise
    except OSError:
        return
    with os.fdopen(fd, encoding="utf-8", errors="surrogateescape") as lines:
        if folder.is_own(fd):
            with contextlib.suppress(OSError):
                yield from lines


def read_files(folder: StateFolder, name: str) -> list[Unfinished]:
    """Return the unfinished files of a journal; nothing for a missing or foreign one. Raises NotOurs."""
    files: dict[str, Unfinished] = {}
    same_boot = False
    for number, line in enumerate(_lines(folder, name)):
        try:
            record = json.loads(line)
            if number == 0:
                if record["mpx"] != _VERSION:
                    return []
                same_boot = record["boot"] == boot_id()
            else:
                _apply(record, files, believe=same_boot)
        except _UNREADABLE:
            break  # cut short by a crash: the lines before it stand
    return list(files.values())


def _apply(record: dict[str, Any], files: dict[str, Unfinished], *, believe: bool) -> None:
    if "file" in record:
        final, modified_s = _text(record["file"]), record["modified"]
        files[final] = Unfinished(
            final,
            _text(record["partial"]),
            _offset(record["size"]),
            None if modified_s is None else float(modified_s),
        )
    elif "arrived" in record:
        ranges = [(_offset(start), _offset(end)) for start, end in record["arrived"]]
        if believe and record["of"] in files:
            files[record["of"]].arrived.update(ranges)
    elif "lost" in record:
        ranges = [(_offset(start), _offset(end)) for start, end in record["lost"]]
        if record["of"] in files:
            for start, end in ranges:
                files[record["of"]].arrived.remove(start, end)
    elif "done" in record:
        files.pop(record["done"], None)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _offset(value: object) -> int:
    if type(value) is not int or not 0 <= value < 1 << 63:
        raise ValueError
    return value


@dataclass(frozen=True)
class Leftover:
    """An interrupted copy: where from, where to, and its partial files."""

    source: str
    destination: str
    files: tuple[Unfinished, ...]
    forget: Callable[[], None]  # removes its journal


def leftovers() -> Iterator[Leftover]:
    """Yield the interrupted copies of this user, those that run now left out; none can start meanwhile.

    Raises UsageError where a journal is no file of ours, or the folder cannot be used.
    """
    with StateFolder() as folder:
        for name in folder.names(".journal"):
            try:
                head = json.loads(next(_lines(folder, name)))
                source, destination = _text(head["source"]), _text(head["destination"])
            except NotOurs as error:
                raise _refused(error, folder.path / name) from None
            except (StopIteration, *_UNREADABLE):
                continue
            try:
                lock = _take_lock(folder, destination)
            except DestinationError:
                continue
            with lock:
                files = tuple(read_files(folder, name))
                yield Leftover(source, destination, files, partial(folder.unlink, name))
