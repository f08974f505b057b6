"""Lines of LIST: what servers write is read as it was meant, and nothing else raises but ValueError."""

import stat
from datetime import date, datetime

import hypothesis.strategies as st
import pytest
from hypothesis import given

from mpx.endpoints.ftp.list_formats import parse_list_line
from mpx.engine.endpoint import FileInfo, Kind

KINDS = {"-": Kind.FILE, "d": Kind.FOLDER, "l": Kind.LINK, "p": Kind.OTHER, "s": Kind.OTHER}
NAMES = st.text(
    st.characters(exclude_characters="/\r\n\0", exclude_categories=["Cs"]), min_size=1, max_size=40
)
WORDS = st.sampled_from(["root", "0", "65534", "ftp", "nogroup", "domain users", "J.Doe", "a-b_c"])
DATES = st.sampled_from(
    ["Nov 25 04:45", "Jan  1  2024", "25 Nov  2024", "1 Feb 10:00", "Mai  3 2019", "févr.  3 2019",
     "2024-11-25 04:45", "2024-11-25 04:45:10.000000000 +0100", "11月 25日 04:46"]
)  # fmt: skip


@given(
    kind=st.sampled_from("-dlps"),
    mode=st.integers(0, 0o7777),
    mark=st.sampled_from(["", "+", ".", "@"]),
    links=st.integers(1, 999),
    owner=st.lists(WORDS, min_size=0, max_size=2),
    size=st.integers(0, 2**63 - 1),
    width=st.integers(0, 15),
    date=DATES,
    name=NAMES,
    target=NAMES,
)
def test_what_ls_writes_is_read(kind, mode, mark, links, owner, size, width, date, name, target):
    letters = kind + stat.filemode(stat.S_IFREG | mode)[1:]
    told, size = (f"{name} -> {target}", len(target.encode())) if kind == "l" else (name, size)
    line = f"{letters}{mark} {links:3} {' '.join([*owner, f'{size:{width}}'])} {date} {told}"
    found = parse_list_line(line)
    assert found is not None
    assert found[0] == name
    info = found[1]
    assert (info.kind, info.mode, info.modified_s) == (KINDS[kind], mode, None)
    assert info.link_target == (target if kind == "l" else "")
    if kind in "-l":
        assert info.size_bytes == size


@pytest.mark.parametrize(
    ("line", "name", "info"),
    [
        ("02-05-24  09:12AM       <DIR>          aspnet client", "aspnet client", FileInfo(Kind.FOLDER)),
        ("02-05-24  09:14AM                  703  two blanks", " two blanks", FileInfo(Kind.FILE, 703)),
        ("02-05-2024  09:14PM            1234567 x", "x", FileInfo(Kind.FILE, 1234567)),
        ("2024-02-05  09:14                  703 [x].htm", "[x].htm", FileInfo(Kind.FILE, 703)),
        ("05.02.2024 09:14 1.234.567 x", "x", FileInfo(Kind.FILE, 1234567)),
        (
            r"02-05-24  09:12AM     <SYMLINKD>     to [C:\data\there]",
            "to",
            FileInfo(Kind.LINK, link_target="C:/data/there"),
        ),
        ("02-05-24  09:12AM     <JUNCTION>     to", "to", FileInfo(Kind.LINK)),
        ("crw-rw---- 1 root tty 4, 0 Jan  1  2024 tty0", "tty0", FileInfo(Kind.OTHER, 0, None, 0o660)),
        ("d [RWCEAFMS] user 512 Jan 16 18:53 login", "login", FileInfo(Kind.FOLDER)),
        ("- [R----F--] rhesus 214059 Oct 20 15:27 cx.exe", "cx.exe", FileInfo(Kind.FILE, 214059)),
        (
            "-rw-r--r-- 1 u g 5 Jan 01 12:00 Jan 5 2020 x",
            "Jan 5 2020 x",
            FileInfo(Kind.FILE, 5, None, 0o644),
        ),
        (
            "lrwxrwxrwx 1 u g 1 Jan 01 12:00 a -> b -> c",
            "a -> b",
            FileInfo(Kind.LINK, 1, None, 0o777, "c"),
        ),
        ("-rw-r--r-- 1 u g 5 Nov 25 04:45:10 2024 x", "x", FileInfo(Kind.FILE, 5, None, 0o644)),
        ("-rw-r--r-- 1 u g 5 Nov 25 04:45:10 2024", "2024", FileInfo(Kind.FILE, 5, None, 0o644)),
        ("-rw-r--r-- 1 u g 5 Nov 25 04:45:10 x", "x", FileInfo(Kind.FILE, 5, None, 0o644)),
        ("-rw-r--r-- 1 u g 5 Nov 25 04:45 2024 x", "2024 x", FileInfo(Kind.FILE, 5, None, 0o644)),
        ("-rw-r-lr-- 1 u g -1294967296 Feb 29  2024 x", "x", FileInfo(Kind.FILE, None, None, 0o2644)),
        ("-rw-r--r-- 1 u g 9999999999999999999 Feb 29  2024 x", "x", FileInfo(Kind.FILE, None, None, 0o644)),
        ("02-29-24  09:14AM 99,999,999,999,999,999,999 x", "x", FileInfo(Kind.FILE, None)),
        ("02-05-24  09:12AM    <DIR> x", "x", FileInfo(Kind.FOLDER)),
        ("-rw-r--r-- 1 u g 5 Jan 01 12:00 ends in a blank ", "ends in a blank ", None),
    ],
)
def test_other_forms(line: str, name: str, info: FileInfo | None) -> None:
    found = parse_list_line(line)
    assert found is not None
    assert found[0] == name
    assert info is None or found[1] == info


@pytest.mark.parametrize("line", ["", "   ", "total 12", "total 1.5G", "total: 8", "insgesamt 0", "合計 4"])
def test_lines_that_list_nothing(line: str) -> None:
    assert parse_list_line(line) is None


@pytest.mark.parametrize(
    "line",
    ["name", "-rw-r--r--", "-rw-r--r-- 1 u g 5 Jan 01 12:00", "-rw-r--r-- 1 u g five Jan 01 12:00 x",
     "Type=file;Size=3; x", "+i8388621.48594,m825718503,r,s280,\tx", "/folder:", "-rw-r--r-- 1 u g 5 x y z"],
)  # fmt: skip
def test_lines_in_no_known_form(line: str) -> None:
    with pytest.raises(ValueError, match="not a line of a listing"):
        parse_list_line(line)


@given(
    day=st.dates(min_value=date(1970, 1, 1), max_value=date(2069, 12, 31)),
    clock=st.times(),
    form=st.sampled_from(["%m-%d-%y  %I:%M%p", "%m-%d-%Y  %I:%M%p", "%Y-%m-%d  %H:%M", "%d.%m.%Y  %H:%M",
                          "%m/%d/%Y  %I:%M %p", "%m-%d-%y  %H:%M"]),
    kind=st.sampled_from(["", "DIR", "JUNCTION", "SYMLINK", "SYMLINKD"]),
    size=st.integers(0, 2**63 - 1),
    with_commas=st.booleans(),
    name=NAMES.filter(lambda name: not {"[", "]"} & set(name)),
    target=st.none() | st.sampled_from([r"C:\data\there", "..", "a b"]),
)  # fmt: skip
def test_what_windows_writes_is_read(day, clock, form, kind, size, with_commas, name, target):
    told = f"{name} [{target}]" if target and kind not in ("", "DIR") else name
    middle = f"<{kind}>".ljust(15) if kind else f"{size:20,}" if with_commas else f"{size:20}"
    when = datetime.combine(day, clock).strftime(form)
    found = parse_list_line(f"{when}       {middle}{told}" if kind else f"{when} {middle} {told}")
    assert found is not None
    assert found[0] == name
    info = found[1]
    assert info.kind is {"": Kind.FILE, "DIR": Kind.FOLDER}.get(kind, Kind.LINK)
    if not kind:
        assert info.size_bytes == size
    if info.kind is Kind.LINK:
        assert info.link_target == (target or "").replace("\\", "/")


@given(st.text() | st.from_regex(r"[-dl][-rwx]{9} .{0,80}"))
def test_any_line_is_read_or_refused(line: str) -> None:
    try:
        found = parse_list_line(line)
    except ValueError:
        return
    assert found is None or found[0]
