"""The parts of the server that need no socket: end of data, markers, settings, error replies, listings."""

import errno
import os
import stat

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpx.endpoints.ftp.extensions import true_name
from mpx.engine.ranges import RangeSet
from mpx.serve.checksum import checksum
from mpx.serve.listing import FACTS, Item, facts_line, items, long_line, tree
from mpx.serve.progress import TransferCounters
from mpx.serve.replies import DataChannelError, NoDataConnection, RefusalReply, reply_for
from mpx.serve.root import Root
from mpx.serve.settings import Settings, set_options, set_restart, set_trigger
from mpx.serve.times import format_time, parse_time

# --- markers -------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 20), st.booleans()), max_size=40))
def test_range_markers_are_what_is_new_and_together_all(writes):
    progress, told, arrived = TransferCounters(keep_ranges=True), RangeSet(), RangeSet()
    since = RangeSet()
    for start, size, mark in writes:
        progress.arrived(start, start + size)
        arrived.add(start, start + size)
        since.add(start, start + size)
        if mark:
            ranges = progress.take_ranges()
            assert RangeSet(ranges) == since
            told.update(ranges)
            since = RangeSet()
    told.update(progress.take_ranges())
    assert told == arrived
    assert progress.moved_bytes == sum(size for _, size, _ in writes)
    assert progress.take_ranges() == []


def test_one_range_marker_is_bounded():
    progress = TransferCounters(keep_ranges=True)
    for i in range(1200):
        progress.arrived(2 * i, 2 * i + 1)
    parts = [progress.take_ranges() for _ in range(3)]
    assert [len(part) for part in parts] == [500, 500, 200]
    assert [piece for part in parts for piece in part] == [(2 * i, 2 * i + 1) for i in range(1200)]


def test_ranges_are_not_kept_when_nobody_asks():
    progress = TransferCounters(keep_ranges=False)
    progress.arrived(0, 10)
    assert progress.take_ranges() == []
    assert progress.moved_bytes == 10


# --- settings ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "streams"),
    [
        ("RETR Parallelism=4,4,4;", 4),
        ("retr parallelism=7;", 7),
        ("RETR StripeLayout=Blocked;BlockSize=1048576;Parallelism=2,9,9;", 2),
        ("RETR Parallelism=0;", 1),
        ("RETR Parallelism=99999;", 256),
    ],
)
def test_parallelism(options, streams):
    settings = Settings()
    set_options(settings, options)
    assert settings.streams == streams


@pytest.mark.parametrize(
    "options",
    ["RETR Parallelism=4,4,4", "RETR Parallelism=x;", "RETR Colour=1;", "STOR Parallelism=4;", "CKSM", "X"],
)
def test_options_that_are_refused(options):
    settings = Settings()
    with pytest.raises(RefusalReply):
        set_options(settings, options)
    assert settings == Settings()


def test_other_options_and_intervals():
    settings = Settings()
    set_options(settings, "RETR Markers=2;")
    set_options(settings, "CKSM Markers=3;")
    assert set_options(settings, "MLST size;Type;nonsense;") == "MLST OPTS Type;Size;"
    set_options(settings, "UTF8 ON")
    set_trigger(settings, "PERF 5")
    set_trigger(settings, "restart 0")
    assert (settings.retrieve_marker_s, settings.checksum_marker_s) == (2, 3)
    assert (settings.performance_s, settings.restart_s) == (5, 0)
    assert settings.facts == ("Type", "Size")
    with pytest.raises(RefusalReply):
        set_trigger(settings, "PERF -1")


def test_restart_holds_once():
    settings = Settings()
    set_restart(settings, "100")
    assert settings.take_restart() == RangeSet([(0, 100)])
    assert settings.take_restart() == RangeSet()
    set_restart(settings, "0-10,20-30")
    assert settings.restart == RangeSet([(0, 10), (20, 30)])
    for wrong in ("x", "5-1", "-5", "9" * 5000):
        with pytest.raises(RefusalReply):
            set_restart(settings, wrong)


# --- error replies -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("number", "start"),
    [
        (errno.ENOENT, b"550-GlobusError: v=1 c=PATH_NOT_FOUND\r\n GridFTP-Errno: 2\r\n"),
        (errno.EACCES, b"550-GlobusError: v=1 c=PERMISSION_DENIED\r\n"),
        (errno.EEXIST, b"553-GlobusError: v=1 c=PATH_EXISTS\r\n"),
        (errno.ENOTDIR, b"550-GlobusError: v=1 c=NOT_A_DIRECTORY\r\n"),
        (errno.EISDIR, b"550-GlobusError: v=1 c=IS_A_DIRECTORY\r\n"),
        (errno.ENOSPC, b"552-GlobusError: v=1 c=NO_SPACE_LEFT\r\n"),
        (errno.EDQUOT, b"552-GlobusError: v=1 c=QUOTA_EXCEEDED\r\n"),
        (errno.EIO, b"451-GlobusError: v=1 c=INTERNAL_ERROR\r\n"),
    ],
)
def test_system_errors_as_a_stock_server_says_them(number, start):
    reply = reply_for(OSError(number, os.strerror(number)), "STOR failed")
    assert reply.startswith(start)
    assert f" GridFTP-Error-String: {os.strerror(number)}\r\n{start[:3].decode()} End.\r\n".encode() in reply


def test_other_errors():
    assert reply_for(RefusalReply(501, "No."), "") == b"501 No.\r\n"
    assert reply_for(DataChannelError("x"), "").startswith(b"426-GlobusError")
    assert reply_for(NoDataConnection("x"), "").startswith(b"425-GlobusError")
    unexpected = reply_for(RuntimeError("secret detail"), "STOR failed")
    assert unexpected.startswith(b"500-GlobusError: v=1 c=INTERNAL_ERROR\r\n")
    assert b"secret" not in unexpected


# --- times, facts, listings, checksums -----------------------------------------------------------


def test_times():
    assert format_time(1795221714) == "20261121004154"
    assert parse_time("20261121004154") == parse_time("20261121004154.987") == 1795221714
    for wrong in ("2026", "20269921004154", "x", ""):
        with pytest.raises(RefusalReply):
            parse_time(wrong)


@pytest.fixture
def root(tmp_path):
    (tmp_path / "in" / "sub" / "deep").mkdir(parents=True)
    (tmp_path / "in" / "a; b=%").write_bytes(b"12345")
    (tmp_path / "in" / "sub" / "c").write_bytes(b"")
    (tmp_path / "in" / "inner").symlink_to("sub/c")
    (tmp_path / "in" / "outer; x").symlink_to("/etc/passwd")
    os.utime(tmp_path / "in" / "a; b=%", (1795221714, 1795221714))
    (tmp_path / "in" / "a; b=%").chmod(0o640)
    root = Root(tmp_path / "in")
    yield root
    root.close()


def by_name(found):
    return {item.name: item for item in found}


def test_facts(root):
    found = by_name(items(root, "/"))
    assert set(found) == {"a; b=%", "sub", "inner", "outer; x"}
    wanted = ("Type", "Modify", "Size", "Perm", "UNIX.mode")
    line = "Type=file;Modify=20261121004154;Size=5;Perm={};UNIX.mode=0640; a; b=%"
    assert facts_line(found["a; b=%"], wanted, writable=False) == line.format("r")
    assert facts_line(found["a; b=%"], wanted, writable=True) == line.format("adfrw")
    assert facts_line(found["sub"], ("Type",), writable=False) == "Type=dir; sub"
    assert facts_line(found["inner"], ("Type", "Size"), writable=False) == "Type=file;Size=0; inner"
    outer = facts_line(found["outer; x"], ("Type", "UNIX.slink"), writable=False)
    assert outer == "Type=slink;UNIX.slink=/etc/passwd; outer; x"
    assert facts_line(found["sub"], (), writable=False) == " sub"
    assert facts_line(found["sub"], FACTS, writable=False).count(";") == len(FACTS) - 2


def test_names_that_ftp_cannot_carry_are_listed_otherwise_and_logged(root, tmp_path, caplog):
    (tmp_path / "in" / "sub" / "evil\r\n226 Done").mkdir()
    (tmp_path / "in" / "sub" / "evil\r\n226 Done" / "x").write_bytes(b"")
    (evil,) = (item for item in items(root, "/sub") if item.name not in ("c", "deep"))
    line = "Type=dir;X.mpx-name=evil%0D%0A226%20Done; evil??226 Done"
    assert facts_line(evil, ("Type", true_name.FACT), writable=False) == line
    assert facts_line(evil, ("Type",), writable=False) == "Type=dir; evil??226 Done"
    assert long_line(evil).endswith(" evil??226 Done")
    within = by_name(tree(root, "/sub"))["evil\r\n226 Done/x"]
    assert "\n" not in facts_line(within, FACTS, writable=False)
    assert "FTP cannot carry" in caplog.text


def test_tree_goes_down_but_not_through_links(root, tmp_path):
    (tmp_path / "in" / "sub" / "loop").symlink_to("..")
    found = by_name(tree(root, "/"))
    assert set(found) == {"a; b=%", "sub", "inner", "outer; x", "sub/c", "sub/deep", "sub/loop"}
    assert facts_line(found["sub/loop"], ("Type",), writable=False) == "Type=slink; sub/loop"


def test_long_lines():
    fields = [0] * 10
    fields[0], fields[3], fields[6], fields[8] = stat.S_IFREG | 0o644, 1, 12345, 1_000_000_000
    line = long_line(Item("n m", os.stat_result(fields)))
    assert line == "-rw-r--r--   1 0        0               12345 Sep  9  2001 n m"
    fields[0] = stat.S_IFLNK | 0o777
    assert long_line(Item("l", os.stat_result(fields), "to")).endswith(" l -> to")


@pytest.mark.parametrize(
    ("algorithm", "offset", "length", "expected"),
    [
        ("MD5", 0, -1, "900150983cd24fb0d6963f7d28e17f72"),
        ("ADLER32", 0, 3, "024d0127"),
        ("ADLER32", 3, -1, "00000001"),
        ("ADLER32", 100, 5, "00000001"),
        ("SHA1", 0, 999, "a9993e364706816aba3e25717850c26c9cd0d89d"),
        ("SHA256", 1, 1, "3e23e8160039594a33894f6564e1b1348bbd7a0088d42c4acb73eeaed59c009d"),
    ],
)
def test_checksums_of_abc(tmp_path, algorithm, offset, length, expected):
    (tmp_path / "abc").write_bytes(b"abc")
    with (tmp_path / "abc").open("rb") as file:
        assert checksum(file.fileno(), algorithm, offset, length, lambda _: None) == expected
