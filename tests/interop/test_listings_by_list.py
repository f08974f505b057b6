"""Trees of servers without MLSD: the forms of LIST, and the option that shows hidden files."""

from pathlib import Path

import pytest
from interop.listed_tree import FAST, FILES, FILES_HERE, copy_tree
from interop.listing_server import NO_MLST, ListingDialogue, ListingServer
from mpx_command import copied, mpx

UNIX = (
    b"total 5\r\n"
    b"drwxr-xr-x    3 0        0            4096 Nov 25 04:46 .\r\n"
    b"drwxr-xr-x    3 0        0            4096 Nov 25 04:46 ..\r\n"
    b"-rw-r-----    1 0        domain users    3 Jan  1  2024  leading\r\n"
    b"drwx------    2 0        0            4096 Nov 25 04:46 sub dir\r\n"
    b"lrwxrwxrwx    1 0        0               7 Nov 25 04:46 link -> sub dir\r\n"
)
DOS = (
    b"11-25-26  04:46AM                    3  leading\r\n"
    b"11-25-26  04:46AM       <DIR>          sub dir\r\n"
    b"11-25-26  04:46AM       <SYMLINKD>     link [sub dir]\r\n"
)


@pytest.mark.parametrize("listing", [UNIX, DOS], ids=["Unix", "DOS"])
def test_trees_by_list(listing: bytes, tmp_path: Path) -> None:
    inner = (
        b"-rw-r--r-- 1 u 4 2026-11-25 04:46 .hidden" if listing is UNIX else b"11-25-26  04:46AM 4 .hidden"
    )
    server = ListingServer(
        {"/d/ leading": b"333", "/d/sub dir/.hidden": b"4444", "/d/link/.hidden": b"4444"},
        {"/d": listing, "/d/sub dir": inner + b"\r\n", "/d/link": inner + b"\r\n"},
        NO_MLST,
    )
    ended, found = copy_tree(server, tmp_path)
    assert ended.code == 0, ended.err
    assert found == {" leading": b"333", "sub dir/.hidden": b"4444", "link/.hidden": b"4444"}
    assert (tmp_path / "d/ leading").stat().st_mtime == 1767268800  # as MDTM has it
    assert "has no MLSD" in ended.out + mpx_notes(tmp_path, server)


def mpx_notes(here: Path, server: ListingServer) -> str:
    """What a further run, which has nothing to do, says with all its notes."""
    again = ListingServer(server.files, server.listings, NO_MLST)
    with again:
        ended = mpx("copy", "-v", "-r", *FAST, f"{again.url}/d", here / "d")
    assert "nothing to copy" in ended.out, ended.out
    return ended.out + ended.err


def test_mlsd_that_is_promised_and_refused(tmp_path: Path) -> None:
    server = ListingServer(
        FILES,
        {"/d": b"-rw-r--r-- 1 u g 3 Jan 01 12:00 one\r\n"},
        {"MLSD": lambda *_: "502 not here"},
    )
    ended, found = copy_tree(server, tmp_path)
    assert (ended.code, found) == (0, FILES_HERE), ended.err


@pytest.mark.parametrize("reply", ["550 -a: not found", None])
def test_a_server_that_takes_the_option_for_a_name(reply: str | None, tmp_path: Path) -> None:
    def listing(dialogue: ListingDialogue, argument: str) -> str | None:
        if argument.startswith("-") and reply:
            return reply
        dialogue.server.listings["/d"] = b"" if argument else b"-rw-r--r-- 1 u g 3 Jan 01 12:00 one\r\n"
        return dialogue._listing("/d")

    server = ListingServer(FILES, {"/d": b""}, {**NO_MLST, "LIST": listing})
    ended, found = copy_tree(server, tmp_path)
    assert (ended.code, found) == (0, FILES_HERE), ended.err


LONG = b"-rw-r--r-- 1 u g 3 Jan 01 12:00 "


@pytest.mark.parametrize("names", [("-a",), ("-a", "one"), ("one", "-a"), ("x -a",)])
@pytest.mark.parametrize("takes", ["option", "name", "nothing"])
def test_a_file_of_the_name_of_the_option(takes: str, names: tuple[str, ...], tmp_path: Path) -> None:
    """Where -a is taken for a name, the file of that name is not all there is."""

    def listing(dialogue: ListingDialogue, argument: str) -> str | None:
        shown = names if not argument or takes == "option" else [each for each in names if each == argument]
        if argument and takes == "nothing":
            return "501 no options"
        dialogue.server.listings["/d"] = b"".join(LONG + name.encode() + b"\r\n" for name in shown)
        return dialogue._listing("/d")

    files = {f"/d/{name}": b"111" for name in names}
    server = ListingServer(files, {"/d": b""}, {**NO_MLST, "LIST": listing})
    ended, found = copy_tree(server, tmp_path)
    assert (ended.code, found) == (0, dict.fromkeys(names, b"111")), ended.err
    if takes == "nothing":
        assert "names with a leading dot may be missing" in ended.out


def test_lines_of_list_in_no_known_form(tmp_path: Path) -> None:
    server = ListingServer(FILES, {"/d": b"FILE.TXT;1   3/4   25-NOV-2026\r\n"}, NO_MLST)
    ended, found = copy_tree(server, tmp_path)
    assert (ended.code, found) == (10, {})
    assert "FILE.TXT;1" in ended.err


def test_a_name_and_a_size_are_no_sum_but_in_the_first_line(tmp_path: Path) -> None:
    listing = b"\r\ntotal 12\r\n-rw-r--r-- 1 u g 3 Jan 01 12:00 one\r\nreadme 1234\r\n"
    ended, found = copy_tree(ListingServer(FILES, {"/d": listing}, NO_MLST), tmp_path)
    assert (ended.code, found) == (10, FILES_HERE), ended.err
    assert "readme 1234" in ended.err
    assert "total" not in ended.err


def test_mpx_list_by_list() -> None:
    listing = b"-rw-r--r-- 1 u g 9 Jan 01 12:00 one\r\ndrwxr-xr-x 2 u g 9 Jan 01 12:00 sub\r\n"
    with ListingServer({**FILES, "/d/sub/x": b""}, {"/d": listing}, NO_MLST) as server:
        ended = mpx("list", f"{server.url}/d")
        long = mpx("list", "-l", f"{server.url}/d")
    copied(ended)
    assert sorted(ended.out.splitlines()) == ["one", "sub/"]
    assert "0644               3 2026-01-01 12:00:00Z one" in long.out
    assert "has no MLSD" in long.err
