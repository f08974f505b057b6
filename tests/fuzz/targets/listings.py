"""Lines of a listing: MLSD, and LIST as `ls -l` of several servers and IIS write it."""

from contextlib import suppress

from mpx.endpoints.ftp.facts import entry_info, kind_of
from mpx.endpoints.ftp.list_formats import parse_list_line
from mpx.endpoints.ftp.wire import parse_facts
from mpx.engine.endpoint import FileInfo, Kind
from mpx.transfer.listed_names import ListedNames, folded

SEEDS = [
    b"Type=file;Modify=20240102030405;Size=7;Perm=r;UNIX.mode=0644;UNIX.uid=0;Unique=801-5;"
    b"UNIX.slink=%2fa%20b; name with blanks",
    b"Type=cdir;Modify=20240102030405;Perm=el;X.count=3; .",
    b"modify=20240102030405;perm=adfr;size=12;type=OS.unix=slink:/a b;unique=801U5;UNIX.mode=0777; link",
    b"type=dir;sizd=4096; caf\xc3\xa9\xff\xff",
    b"total 12",
    b"-rw-r--r--    1 1000     1000            7 Jan 02 03:04 name with  blanks",
    b"drwxr-sr-t   2 ftp  ftp   4096 Jan  2  2024 folder",
    b"lrwxrwxrwx 1 u g 5 Jan 1 10:00 link -> there",
    b"-rw-rw-r--+ 1 u domain users 7 1 Jan 10:00 name",
    b"-rw-r--r-- 1 u g 7 2024-01-02 03:04:05.123456789 +0100 name",
    b"brw-rw---- 1 root disk 8, 0 Jan 1 10:00 sda",
    b"-r--r--r-- 1 u g 7 1\xe6\x9c\x88 2\xe6\x97\xa5 2024\xe5\xb9\xb4 name",
    b"d [R----F--] supervisor            512       Jan 16 18:53    login",
    b"01-02-24  03:04AM       <DIR>          folder",
    b"01-02-24  03:04AM            1,234,567 name",
    b"01/02/2024  03:04 PM    <SYMLINKD>     link [C:\\there]",
]
ALLOWED = ()
_MODE_BITS = 0o7777


def parse(data: bytes) -> None:
    """Read each line as both kinds, and note its name as one of a folder."""
    seen = ListedNames()
    for raw in data.split(b"\n"):
        line = raw.removesuffix(b"\r").decode("utf-8", "surrogateescape")
        with suppress(ValueError):
            entry = parse_facts(line)
            kind_of(entry)
            _check(entry_info(entry))
            _check(entry_info(entry, follow=True))
            seen.add(entry.name)
        with suppress(ValueError):
            found = parse_list_line(line)
            if found is not None:
                name, info = found
                assert name
                assert folded(name) == folded(folded(name))
                _check(info)


def _check(info: FileInfo) -> None:
    assert info.size_bytes is None or 0 <= info.size_bytes < 1 << 63, info
    assert info.mode is None or 0 <= info.mode <= _MODE_BITS, info
    assert info.kind is Kind.LINK or not info.link_target, info
