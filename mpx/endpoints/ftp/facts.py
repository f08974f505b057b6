"""What a server says of a name: its facts (RFC 3659)."""

import posixpath
import re
from collections.abc import Callable
from datetime import UTC, datetime
from urllib.parse import unquote

from mpx.endpoints.ftp.wire import Entry
from mpx.engine.endpoint import FileInfo, Kind
from mpx.engine.whole_number import read_size

_KINDS = {"file": Kind.FILE, "dir": Kind.FOLDER, "cdir": Kind.FOLDER, "pdir": Kind.FOLDER, "slink": Kind.LINK}
_SPECIAL = re.compile(r"os\.unix=(chr|blk|pipe|fifo|sock|other|dev|door|whiteout)")  # and what follows these
_LINKS = ("os.unix=slink", "os.unix=symlink")  # ProFTPD says the latter, Pure-FTPD `slink:` without a target
_MOST_LINKS = 40  # one after the other, as the kernel follows them


def kind_of(entry: Entry) -> Kind | None:
    """Return what the facts say that a name is; None where they do not, or in words that nobody knows."""
    given = entry.facts.get("type", "").lower()
    known = _KINDS.get(given)
    if known is None and given.startswith(_LINKS):
        return Kind.LINK
    return Kind.OTHER if known is None and _SPECIAL.match(given) else known


def entry_info(entry: Entry, *, follow: bool = False) -> FileInfo:
    """Turn facts (RFC 3659, with the GCT's UNIX.* facts) into what we know of a name.

    Servers describe what a link points to, with UNIX.slink beside it: a Globus server the real path
    of that, mpx serve the link as it stands. ProFTPD and Pure-FTPD name a link as such in `type`, with
    its target there or nowhere.
    """
    facts = entry.facts
    kind = kind_of(entry) or Kind.OTHER
    target = unquote(facts.get("unix.slink", ""), errors="surrogateescape")
    if kind is Kind.LINK and not target:
        target = facts["type"].partition(":")[2]
    if target and kind is not Kind.LINK:
        kind, target = (kind, "") if follow else (Kind.LINK, target)
    size_bytes = read_size(facts.get("size", ""))
    mode = facts.get("unix.mode", "")
    return FileInfo(
        kind,
        size_bytes if kind is Kind.FILE else size_bytes or 0,
        parse_time(facts.get("modify", "")),
        int(mode, 8) & 0o7777 if re.fullmatch(r"[0-7]{3,6}", mode) else None,  # some tell the type of it too
        target,
        link_resolved=target.startswith("/"),
        identity=facts.get("unique") or None,
    )


def followed(
    full: str,
    info: FileInfo,
    stat: Callable[[str], FileInfo | None],
    otherwise: Callable[[str], FileInfo | None],
) -> FileInfo | None:
    """Return what a link leads to in the end, None if nowhere; `otherwise`: where its target is not told."""
    for _ in range(_MOST_LINKS):
        if info.kind is not Kind.LINK:
            return info
        if not info.link_target:
            return otherwise(full)
        full = posixpath.normpath(posixpath.join(posixpath.dirname(full), info.link_target))
        found = stat(full)
        if found is None:
            return None
        info = found
    return None


def parse_time(text: str) -> float | None:
    """Read YYYYMMDDHHMMSS[.frac], UTC."""
    found = re.match(r"\s{0,8}(\d{14})(\.\d{1,9})?", text, re.ASCII)
    if not found:
        return None
    digits = found.group(1)
    year, month, day = int(digits[:4]), int(digits[4:6]), int(digits[6:8])
    hour, minute, second = int(digits[8:10]), int(digits[10:12]), int(digits[12:])
    try:
        whole = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
    except ValueError:
        return None
    return whole.timestamp() + float(found.group(2) or 0)
