"""What a directory holds, as lines: facts (MLST, MLSD; RFC 3659), `ls -l` (LIST), bare names (NLST)."""

import logging
import os
import stat
import time
from collections.abc import Generator
from dataclasses import dataclass
from urllib.parse import quote

from mpx.endpoints.ftp.extensions import true_name
from mpx.serve.root import Root, join
from mpx.serve.times import format_time, utc

FACTS = (
    *("Type", "Modify", "Size", "Perm", "UNIX.mode", "UNIX.uid", "UNIX.gid", "Unique", "UNIX.slink"),
    true_name.FACT,
)

_SPECIAL = {stat.S_IFCHR: "OS.unix=chr", stat.S_IFBLK: "OS.unix=blk", stat.S_IFIFO: "OS.unix=pipe"}
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Item:
    """A name and what it is; a link that may be followed is described by what it leads to."""

    name: str
    found: os.stat_result
    link: str | None = None  # where it points, if it is a symbolic link


def item(root: Root, path: str, name: str) -> Item:
    """Describe one name. Raises OSError."""
    found, link = root.link_stat(path)
    return Item(name, _leads_to(root, path, found) if link is not None else found, link)


def items(root: Root, path: str, *, follow: bool = True) -> Generator[Item, None, None]:
    """Describe what a directory holds, in no order. Raises OSError if it cannot be listed.

    A name that the control channel cannot carry (CR, LF) has a line in the log.
    """
    fd = root.open_directory(path)
    try:
        with os.scandir(fd) as entries:
            for entry in entries:
                name = entry.name
                if (line := in_a_line(name)) != name:
                    _log.warning("listed as %r, since FTP cannot carry the name: %r in %r", line, name, path)
                try:
                    found = entry.stat(follow_symlinks=False)
                    link = os.readlink(name, dir_fd=fd) if stat.S_ISLNK(found.st_mode) else None
                except FileNotFoundError:
                    continue  # removed since
                if link is not None and follow:
                    found = _leads_to(root, join(path, name), found)
                yield Item(name, found, link)
    finally:
        os.close(fd)


def tree(root: Root, path: str) -> Generator[Item, None, None]:
    """Describe everything below a directory, with names relative to it; links are not followed."""
    ahead = [""]
    while ahead:
        below = ahead.pop()
        try:
            for entry in items(root, join(path, below or "."), follow=False):
                name = f"{below}/{entry.name}" if below else entry.name
                yield Item(name, entry.found, entry.link)
                if stat.S_ISDIR(entry.found.st_mode):
                    ahead.append(name)
        except OSError:
            if not below:
                raise
            _log.warning("cannot list %r", join(path, below))


def facts_line(entry: Item, wanted: tuple[str, ...], *, writable: bool) -> str:
    """Return `Type=file;Size=3; name` with the wanted facts."""
    found = entry.found
    values = {
        "Type": _type(found.st_mode),
        "Modify": format_time(found.st_mtime),
        "Size": str(found.st_size),
        "Perm": _permissions(found.st_mode, writable),
        "UNIX.mode": f"{stat.S_IMODE(found.st_mode):04o}",
        "UNIX.uid": str(found.st_uid),
        "UNIX.gid": str(found.st_gid),
        "Unique": f"{found.st_dev:x}-{found.st_ino:x}",
    }
    if entry.link is not None:
        values["UNIX.slink"] = quote(entry.link, errors="surrogateescape")
    name = in_a_line(entry.name)
    if name != entry.name:
        values[true_name.FACT] = quote(entry.name, errors="surrogateescape")
    facts = "".join(f"{fact}={values[fact]};" for fact in wanted if fact in values)
    return f"{facts} {name}"


def long_line(entry: Item) -> str:
    """Return a line as `ls -l` writes it, times in UTC, owners as numbers."""
    found = entry.found
    then = utc(found.st_mtime)
    recent = abs(time.time() - found.st_mtime) < 180 * 86400
    when = f"{_MONTHS[then.tm_mon - 1]} {then.tm_mday:2} " + (
        f"{then.tm_hour:02}:{then.tm_min:02}" if recent else f" {then.tm_year}"
    )
    arrow = f" -> {in_a_line(entry.link or '')}" if stat.S_ISLNK(found.st_mode) else ""
    owner = f"{found.st_uid:<8} {found.st_gid:<8}"
    mode = stat.filemode(found.st_mode)
    return f"{mode} {found.st_nlink:3} {owner} {found.st_size:12} {when} {in_a_line(entry.name)}{arrow}"


_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def in_a_line(name: str) -> str:
    """Return a name as it stands in a listing: with `?` in the place of CR and LF, which FTP cannot carry."""
    return name.replace("\n", "?").replace("\r", "?")


def _leads_to(root: Root, path: str, link: os.stat_result) -> os.stat_result:
    try:
        return root.stat(path)
    except OSError:
        return link  # it leads out, or nowhere: shown as the link it is


def _type(mode: int) -> str:
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "dir"
    if stat.S_ISLNK(mode):
        return "slink"
    return _SPECIAL.get(stat.S_IFMT(mode), "OS.unix=other")


def _permissions(mode: int, writable: bool) -> str:
    if stat.S_ISDIR(mode):
        return "cdeflmp" if writable else "el"
    if stat.S_ISREG(mode):
        return "adfrw" if writable else "r"
    return "df" if writable else ""
