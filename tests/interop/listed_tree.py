"""A tree of one folder, copied from a server whose listings a test writes."""

from pathlib import Path

from interop.listing_server import ListingServer
from mpx_command import Ended, mpx

FAST = ("--timeout", "5s", "--retries", "1")
ONE = b"type=file;size=3;modify=20260101120000; one\r\n"
FILES = {"/d/one": b"111"}


def copy_tree(server: ListingServer, here: Path) -> tuple[Ended, dict[str, bytes]]:
    """Copy /d; return how it ended, and what arrived."""
    with server:
        ended = mpx("copy", "-r", *FAST, f"{server.url}/d", here / "d")
    found = {
        str(path.relative_to(here / "d")): path.read_bytes()
        for path in (here / "d").rglob("*")
        if path.is_file()
    }
    assert "Traceback" not in ended.err
    assert not any(".part" in name for name in found), found
    return ended, found


FILES_HERE = {"one": b"111"}
