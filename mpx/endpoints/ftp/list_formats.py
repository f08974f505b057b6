"""Reads lines of LIST, for servers without MLSD: as `ls -l` of Unix writes them, and as IIS and DOS do.

RFC 959 leaves the form of LIST open; these two are what servers of today write. Times are not read: they
stand there to the minute or the day, in a time zone that nobody tells. Linear in the length of the line.
"""

import re
from itertools import islice

from mpx.engine.endpoint import FileInfo, Kind
from mpx.engine.whole_number import read_size

_KINDS = {"-": Kind.FILE, "d": Kind.FOLDER, "l": Kind.LINK, **dict.fromkeys("bcpsD", Kind.OTHER)}
_PERMISSIONS = re.compile(r"[-dlbcpsD][-r][-w][-xsS][-r][-w][-xsSlL][-r][-w][-xtT]")
_NETWARE = re.compile(r"[-d]")  # permissions stand in brackets, behind the next blank
_WORD = re.compile(r"[^ ]+")
_MOST_WORDS = 12  # before the name, in any form
_MONTH = re.compile(r"[^\W\d_]{3,9}\.?|[0-9]{1,2}月")  # also in the words of other countries
_DAY = re.compile(r"(?:0?[1-9]|[12][0-9]|3[01])[.日]?")
_CLOCK_OR_YEAR = re.compile(r"[0-9]{1,2}:[0-9]{2}(?P<seconds>:[0-9]{2})?|[0-9]{4}年?")
_YEAR = re.compile(r"[0-9]{4}")  # behind a clock with seconds, as BSD has it
_ISO_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_ISO_CLOCK = re.compile(r"[0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,9})?)?")
_SIZE = re.compile(r"-?[0-9]{1,19}")  # negative: 2 GiB and more, at a server that counts in 32 bits
_DOS = re.compile(
    r"[0-9]{1,4}[-/.][0-9]{1,2}[-/.][0-9]{2,4} {1,4}[0-9]{1,2}:[0-9]{2}(?: ?[AaPp][Mm])? {1,40}"
    r"(?:<(?P<kind>[A-Z]{3,10})>(?P<gap> {1,10})|(?P<size>[0-9][0-9,.]{0,25}) )(?P<name>.+)"
)
_DOS_KIND_COLUMNS = 15  # that `<DIR>` and the blanks behind it take
_DOS_LINK = re.compile(r"(?P<name>[^\[]+) \[(?P<target>[^\]]*)\]")
_TOTAL = re.compile(r"[^\W\d_]{2,20}:? [0-9.,]{1,19}[kKMGT]?")  # `total 12`, in whatever language
_ARROW = b" -> "


def parse_list_line(line: str) -> tuple[str, FileInfo] | None:
    """Return the name and what the line says of it, without a time; None for a line that lists nothing.

    Raises ValueError for a line in no known form.
    """
    if not line.strip() or _TOTAL.fullmatch(line.strip()):
        return None
    found = _DOS.fullmatch(line)
    return _dos(found) if found else _unix(line)


def _unix(line: str) -> tuple[str, FileInfo]:
    words = list(islice(_WORD.finditer(line), _MOST_WORDS))
    texts = [word.group() for word in words]
    first = _PERMISSIONS.match(texts[0]) if texts else None
    if first is None and not (len(texts) > 1 and _NETWARE.fullmatch(texts[0]) and texts[1].startswith("[")):
        raise _unknown(line)
    for i in range(2, len(texts) - 1):
        length = _date_length(texts[i:])
        if not length or i + length > len(texts) or not _SIZE.fullmatch(texts[i - 1]):
            continue
        name = line[words[i + length - 1].end() + 1 :]
        if not name:
            break
        kind = _KINDS[texts[0][0]]
        size = read_size(texts[i - 1]) if kind in (Kind.FILE, Kind.LINK) else 0
        mode = _mode(first.group()) if first else None
        if kind is not Kind.LINK:
            return name, FileInfo(kind, size, None, mode)
        name, target = _link(name, size or 0)
        return name, FileInfo(kind, size or 0, None, mode, target)
    raise _unknown(line)


def _date_length(words: list[str]) -> int:
    """Return how many words the date takes that these begin with, 0 if they begin with none."""
    if len(words) >= 2 and _ISO_DATE.fullmatch(words[0]) and _ISO_CLOCK.fullmatch(words[1]):
        return 3 if len(words) > 2 and re.fullmatch(r"[+-][0-9]{4}", words[2]) else 2
    clock = _CLOCK_OR_YEAR.fullmatch(words[2]) if len(words) > 2 else None
    if clock is None:
        return 0
    has_year = clock["seconds"] and len(words) > 4 and _YEAR.fullmatch(words[3])
    for month, day in (words[:2], words[1::-1]):
        if _MONTH.fullmatch(month) and _DAY.fullmatch(day):
            return 4 if has_year else 3
    return 0


def _link(text: str, size: int) -> tuple[str, str]:
    """Split `name -> target`: where the target is as long as the size says, else at the first arrow."""
    raw = text.encode("utf-8", "surrogateescape")
    at = len(raw) - size - len(_ARROW)
    if at <= 0 or raw[at : at + len(_ARROW)] != _ARROW:
        at = raw.find(_ARROW)
    if at < 0:
        return text, ""
    name, target = raw[:at], raw[at + len(_ARROW) :]
    return name.decode("utf-8", "surrogateescape"), target.decode("utf-8", "surrogateescape")


def _mode(permissions: str) -> int:
    mode = 0
    for i, char in enumerate(permissions[1:10]):
        if char not in "-STlL":
            mode |= 0o400 >> i
        if char in "sStTlL":
            mode |= (0o4000, 0o2000, 0o1000)[i // 3]
    return mode


def _dos(found: re.Match[str]) -> tuple[str, FileInfo]:
    kind, name = found["kind"], found["name"]
    if kind is None:
        return name, FileInfo(Kind.FILE, read_size(re.sub(r"[,.]", "", found["size"])))
    name = " " * (len(found["gap"]) - (_DOS_KIND_COLUMNS - len(f"<{kind}>"))) + name  # a name may begin so
    if kind == "DIR":
        return name, FileInfo(Kind.FOLDER)
    link = _DOS_LINK.fullmatch(name)  # <JUNCTION>, <SYMLINK>, <SYMLINKD>
    if link is None:
        return name, FileInfo(Kind.LINK)
    return link["name"], FileInfo(Kind.LINK, link_target=link["target"].replace("\\", "/"))


def _unknown(line: str) -> ValueError:
    return ValueError(f"not a line of a listing: {line[:80]!r}")
