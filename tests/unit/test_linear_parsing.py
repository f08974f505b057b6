"""No text of a peer is read in more than linear time: a pattern that backtracks stops all threads for it.

Quadratic, what is read here would take minutes, or half of one for the many texts. What does it is ended
after a fraction of that, which is far more than any machine needs for what is linear.
"""

import subprocess
import sys

import pytest

from mpx.engine.checksum import SECTION_BYTES

LIMIT = "import resource; resource.setrlimit(resource.RLIMIT_CPU, (60, 60))\n"  # seconds of processor time
PREPARE = """
from mpx.endpoints.ftp.wire import *
from mpx.endpoints.ftp.framing import marker_bytes
from mpx.endpoints.ftp.refusals import reply_error, cannot_send, is_missing
from mpx.endpoints.ftp.facts import parse_time, entry_info
from mpx.endpoints.ftp.list_formats import parse_list_line
from mpx.endpoints.web.dates import iso_date
from mpx.endpoints.web.headers import content_length, content_range, digests, etag, retry_after
from mpx.endpoints.web.names import child_name
from mpx.endpoints.web.redirects import redirect_target
from mpx.location import parse_location
from mpx.probing.target import parse_target
from mpx.units import parse_rate
from mpx.errors import SourceError, UsageError
from mpx.rtt.methods import choose

def read(text):
    reply = Reply(550, (text, text))
    for parse in (parse_whole, parse_host_port, parse_extended_address, parse_ranges, parse_time):
        try: parse(text)
        except ValueError: pass
    try: entry_info(parse_facts(text))
    except ValueError: pass
    for begin in ("", "-rw-r--r-- ", "lrwxrwxrwx 1 u g 5 Jan 1 10:00 ", "01-01-24 10:00 "):
        try: parse_list_line(begin + text)
        except ValueError: pass
    for parse in (parse_location, parse_target, parse_rate):
        for begin in ("", "ftp://", "ftp://["):
            try: parse(begin + text)
            except UsageError: pass
    reply.reason, reply.error_class, marker_bytes(reply), marker_bytes(Reply(111, (text,)))
    is_missing(reply), cannot_send(reply, "peer", "name"), reply_error(reply, "what", SourceError)
    choose._MAIL.search(text)
    parse_features(Reply(211, ("a", text, "b")))
    retry_after(text, 0.0), iso_date(text), etag(text), etag('"' + text)
    digests(text), digests("md5=" + text)
    for parse in (content_range, lambda value: content_length([value]), lambda href: child_name(href, "/")):
        try: parse(text)
        except ValueError: pass
    for some in (text, text[:16000], "//" + text[:16000]):
        try: redirect_target(some, "http://h/")
        except ValueError: pass

"""


TEXTS = (
    "':' * N",
    "'a' * N",
    "' ' * N",
    "'|' * N",
    "'1' * N",
    "'1,' * N",
    "'(' * N",
    "'1-2,' * N",
    "'c=' * N",
    "'c=A' * N",
    "'a=' * N + ' name'",
    "'/' * N",
    "' -> ' * N",
    "'Jan 1 ' * N",
    "'1 Jan ' * N",
    "'[ ' * N",
    "'<DIR> ' * N",
    "'no space ' * N",
    "'E' * N",
    "'Size=1;' * N + ' name'",
    "'@' * N",
    "'u:' * N + '@host'",
    r"'\u0301\u0316' * N",
)
MOST_CPU_S = 10  # quadratic, each takes half a minute or more
# Each in a process of its own, forked from one that has imported all; the kernel ends what takes too long.
READ_EACH = """
import os, resource
N = 80_000
for text in TEXTS:
    if not (process := os.fork()):
        resource.setrlimit(resource.RLIMIT_CPU, (MOST_CPU_S, MOST_CPU_S))
        read(eval(text))
        os._exit(0)
    if os.waitpid(process, 0)[1]:
        print(text)
"""


def test_long_text() -> None:
    program = f"TEXTS, MOST_CPU_S = {TEXTS!r}, {MOST_CPU_S}\n{PREPARE}\n{READ_EACH}"
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("", "")


def test_a_name_of_accents_without_end() -> None:
    """A listing may have such names; their accents are sorted where letters are composed."""
    program = """
from mpx.transfer.listed_names import folded
folded("a" + "\\u0301\\u0316" * 200_000)
"""
    subprocess.run([sys.executable, "-c", LIMIT + program], check=True)


def test_a_reply_that_comes_byte_by_byte() -> None:
    program = """
from mpx.endpoints.ftp.wire import ReplyReader
reader = ReplyReader()
try:
    for _ in range(1_000_000):
        reader.feed(b"2")
except ValueError:
    raise SystemExit(0)
raise SystemExit(1)
"""
    subprocess.run([sys.executable, "-c", LIMIT + program], check=True)


@pytest.mark.parametrize(
    ("algorithm", "apart"),
    [
        ("adler32", SECTION_BYTES),
        ("xxh3", 2),
        pytest.param("adler32", 2, marks=pytest.mark.long),
        pytest.param("xxh3", SECTION_BYTES, marks=pytest.mark.long),
    ],
)
def test_many_small_blocks_that_are_not_believed(algorithm: str, apart: int) -> None:
    program = f"""
import tempfile
from mpx.engine import checksum
from mpx.engine.endpoint import FileInfo, Kind
from mpx.engine.file_transfer import MOST_PIECES, FileTransfer
info = FileInfo(Kind.FILE, {apart} * MOST_PIECES, 1.0, 0o644)
move = FileTransfer("source", "final", ".part", info, sums="{algorithm}")
pieces = [(at, at + 1) for at in range(0, {apart} * MOST_PIECES, {apart})]
for start, end in pieces:
    assert move.hold(start, end)
    move.sums.passed(start, memoryview(b"x"))
move.disbelieve(pieces)
with tempfile.TemporaryFile() as file:
    file.truncate(10_000)
    read = file.fileno(), 0, 10_000
    told = move.sums.hex(0, 10_000, file.fileno(), lambda: False)
    assert told == checksum.of_file("{algorithm}", *read)
"""
    subprocess.run([sys.executable, "-c", LIMIT + program], check=True)
