"""What a journal tells of an earlier run, up to where a crash cut it off; the lines: see journal.py."""

import contextlib
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mpx.engine.ranges import RangeSet
from mpx.files.partial_file import NotOurs
from mpx.files.state_folder import StateFolder

VERSION = 1
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
# What a line raises that we have not written, or not to its end.
UNREADABLE = (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError)


@dataclass(slots=True)
class Unfinished:
    """What the journal knows of one file."""

    final: str
    partial: str
    size_bytes: int
    modified_s: float | None
    arrived: RangeSet = field(default_factory=RangeSet)
    tag: str = ""  # of the source, see FileInfo


@dataclass(slots=True)
class Contents:
    """What a journal holds: the unfinished files by their final names, and how many have these."""

    files: dict[str, Unfinished] = field(default_factory=dict)
    finished_files: int = 0
    finished_bytes: int = 0
    was_restarted: bool = False  # this host, since: what arrived is not believed, and is left out

    def done(self, final: str, *, is_there: bool) -> None:
        """A file is not unfinished any more: it has its final name, or else was given up and removed."""
        file = self.files.pop(final, None)
        if file and is_there:
            self.finished_files += 1
            self.finished_bytes += file.size_bytes


def boot_id() -> str:
    """Return what changes when this host restarts, empty where the kernel does not tell."""
    try:
        return _BOOT_ID.read_text().strip()
    except OSError:
        return ""


def lines_of(folder: StateFolder, name: str) -> Iterator[str]:
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


def read_journal(folder: StateFolder, name: str) -> Contents:
    """Return what a journal holds; nothing for a missing or foreign one. Raises NotOurs."""
    contents = Contents()
    for number, line in enumerate(lines_of(folder, name)):
        try:
            record = json.loads(line)
            if number == 0:
                if record["mpx"] != VERSION:
                    return Contents()
                contents.was_restarted = record["boot"] != boot_id()
            else:
                _apply(record, contents)
        except UNREADABLE:
            break  # cut short by a crash: the lines before it stand
    return contents


def _apply(record: dict[str, Any], contents: Contents) -> None:
    files = contents.files
    if "file" in record:
        final, modified_s = text_of(record["file"]), record["modified"]
        files[final] = Unfinished(
            final,
            text_of(record["partial"]),
            _number(record["size"]),
            None if modified_s is None else float(modified_s),
            tag=text_of(record.get("tag", "")),
        )
    elif "arrived" in record:
        ranges = [(_number(start), _number(end)) for start, end in record["arrived"]]
        if not contents.was_restarted and record["of"] in files:
            files[record["of"]].arrived.update(ranges)
    elif "lost" in record:
        ranges = [(_number(start), _number(end)) for start, end in record["lost"]]
        if record["of"] in files:
            for start, end in ranges:
                files[record["of"]].arrived.remove(start, end)
    elif "done" in record:
        contents.done(record["done"], is_there=not record.get("given_up"))
    elif "finished" in record:
        count, size_bytes = record["finished"]
        contents.finished_files, contents.finished_bytes = _number(count), _number(size_bytes)


def text_of(value: object) -> str:
    """Return a text of a record; raises TypeError for anything else."""
    if not isinstance(value, str):
        raise TypeError
    return value


def _number(value: object) -> int:
    if type(value) is not int or not 0 <= value < 1 << 63:
        raise ValueError
    return value
