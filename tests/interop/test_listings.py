"""Listings as servers write them: whatever a line says, what it names is copied or named as not copied."""

import contextlib
import itertools
import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from interop.listing_server import NO_MLST, ListingDialogue, ListingServer
from mpx_command import Ended, copied, mpx
from sites import Site

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


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        (b"-rw-r--r--   1 ftp ftp   5 Jan 01 12:00 two\r\n", "two"),
        (b"type=file;size=5;modify=20260101120000;\ttwo\r\n", "two"),
        (b"type=file;size=5;modi", "type=file;size=5;modi"),
        (b"type=file;size=5; tw", "in the middle of a line"),
        (b"two\r\n", "'two'"),
        (b"type=file;size=5; a/two\r\n", "a/two"),
        (b"type=file;size=5; ../two\r\n", "../two"),
        (b"type=dir; /elsewhere/two\r\n", "/elsewhere/two"),
        (b"type=dir; ../..\r\n", "../.."),
        (b"type=file;size=5; ..\r\n", "'..'"),
        (b"type=file;size=5; t\0wo\r\n", "NUL"),
        (b"type=file;size=5; t\rwo\r\n", "carriage return"),
        (b"type=vms-thing;size=5; two\r\n", "does not say what /d/two is"),
        (b"size=5; two\r\n", "does not say what /d/two is"),
        (b"type=OS.unix=slink:a b;size=5; gone\r\n", "not clear"),
        (b"type=file;size=3 one and more\r\n", "not clear"),
    ],
)
def test_what_is_not_understood_is_named_and_has_failed(line: bytes, shown: str, tmp_path: Path) -> None:
    ended, found = copy_tree(ListingServer(FILES, {"/d": ONE + line}), tmp_path)
    assert found == FILES_HERE
    assert ended.code == 10, ended.err
    assert shown in ended.err, ended.err


FILES_HERE = {"one": b"111"}


@pytest.mark.parametrize("first", ["dir", "file"])
def test_a_name_of_a_folder_and_of_a_file(first: str, tmp_path: Path) -> None:
    """As gateways to object stores list them: which of the two comes second has failed."""
    listing = b"type=dir; x\r\n" + b"type=file;size=1; x\r\n"
    if first == "file":
        listing = b"type=file;size=1; x\r\n" + b"type=dir; x\r\n"
    inside = {"/d/x/in": b"i"} if first == "dir" else {"/d/x": b"x"}
    server = ListingServer({**FILES, **inside}, {"/d": ONE + listing})
    server.listings["/d/x"] = b"type=file;size=1; in\r\n"
    ended, found = copy_tree(server, tmp_path)
    assert found == {name.removeprefix("/d/"): content for name, content in server.files.items()}
    assert ended.code == 10, ended.err
    assert "/d/x is listed twice, once as a folder" in ended.err


def test_names_that_are_too_long_are_not_even_asked_for(tmp_path: Path) -> None:
    long, folder, fits = "é" * 128, "f" * 256, "é" * 127
    lines = "".join(f"type=file;size=1; {name}\r\n" for name in (long, fits)) + f"type=dir; {folder}\r\n"
    files = {**FILES, f"/d/{long}": b"x", f"/d/{fits}": b"y", f"/d/{folder}/in": b"z"}
    server = ListingServer(files, {"/d": ONE + lines.encode(), f"/d/{folder}": b"type=file;size=1; in\r\n"})
    ended, found = copy_tree(server, tmp_path)
    assert (ended.code, found) == (10, {**FILES_HERE, fits: b"y"}), ended.err
    assert ended.err.count("more than 255 bytes") >= 2
    assert sum(verb in ("RETR", "ERET") for verb in server.heard) == 2


def test_link_targets_that_nobody_can_write(tmp_path: Path) -> None:
    lines = b"".join(
        b"type=file;size=1;UNIX.slink=%s; link%d\r\n" % (target, i)
        for i, target in enumerate((b"a%00b", b"x" * 5000, b"one"))
    )
    with ListingServer(FILES, {"/d": ONE + lines}) as server:
        ended = mpx("copy", "-r", "--links", "keep", *FAST, f"{server.url}/d", tmp_path / "d")
    assert ended.code == 10, ended.err
    assert "2 of 4 files were not copied" in ended.err
    assert "Traceback" not in ended.err
    assert sorted(os.listdir(tmp_path / "d")) == ["link2", "one"]
    assert os.readlink(tmp_path / "d/link2") == "one"


def test_a_line_alone_in_its_folder_has_failed_too(tmp_path: Path) -> None:
    ended, found = copy_tree(ListingServer({}, {"/d": b"what is this\r\n"}), tmp_path)
    assert (ended.code, found) == (10, {}), ended.err


@pytest.mark.parametrize(
    "listing",
    [
        b"size=3; one\r\n",
        b"type=what;size=3; one\r\n",
        b" one\r\n",
        b"TYPE=FILE;SIZE=3; one\r\n",
        b"Type=file; one\r\n",
        b"Type=file;Size=-7; one\r\n",
        b"Type=file;size=3 one\r\n",
        b"type=file;size=3; one",
        b"\r\n" + ONE,
        b"type=cdir; .\r\ntype=pdir; ..\r\n" + ONE,
        b"type=dir; .\r\ntype=dir; ..\r\n" + ONE,
        b"type=cdir; /d\r\n" + ONE,
        b"type=file;size=3; /d/one\r\n",
        b"type=OS.unix=symlink;size=1; one\r\n",
        b"type=OS.unix=slink:;size=1; one\r\n",
        b"type=OS.unix=slink:a b;size=1; one\r\n",
        b"type=OS.unix=slink:/d/o;perm=r;size=1; one\r\n",
        ONE + ONE,
    ],
)
def test_what_lacks_facts_is_asked_for(listing: bytes, tmp_path: Path) -> None:
    server = ListingServer({**FILES, "/d/o": b"1"}, {"/d": listing})
    ended, found = copy_tree(server, tmp_path)
    assert ended.code == 0, ended.err
    assert found in (FILES_HERE, {"one": b"1"}), found  # the latter where the link leads to /d/o
    if listing == ONE + ONE:
        assert "listed twice" in ended.out


def test_folders_that_do_not_say_so(tmp_path: Path) -> None:
    listings = {"/d": b"modify=20260101120000; sub\r\n", "/d/sub": b"size=2; inner\r\n"}
    ended, found = copy_tree(ListingServer({"/d/sub/inner": b"22"}, listings), tmp_path)
    assert (ended.code, found) == (0, {"sub/inner": b"22"}), ended.err


def straight(dialogue: ListingDialogue) -> str:
    dialogue.close()
    return "226 nothing to send"


def straight_with_a_listener(dialogue: ListingDialogue) -> str:
    return "226 nothing to send"


def data_without_word(dialogue: ListingDialogue) -> str:
    with dialogue.open_data() as data:
        data.sendall(b"type=file;size=1; inner\r\n")
        data.shutdown(socket.SHUT_WR)
    return "226 sent"


def test_a_listing_without_an_end_behind_its_226_is_not_whole(tmp_path: Path) -> None:
    with contextlib.ExitStack() as held:

        def goes_on(dialogue: ListingDialogue) -> None:
            data = held.enter_context(dialogue.open_data())  # and it is not closed
            dialogue.say("226 sent")
            data.sendall(ONE)

        ended, _ = copy_tree(ListingServer(FILES, {"/d": goes_on}), tmp_path)
    assert ended.code != 0
    assert "no whole line" in ended.err


@pytest.mark.parametrize(
    "answer",
    [
        straight,
        straight_with_a_listener,
        lambda dialogue: "550 No files found",
        lambda dialogue: "450 No such file or directory",
        lambda dialogue: (dialogue.close(), "550 No files found.")[1],
    ],
)
@pytest.mark.parametrize("script", [{}, NO_MLST], ids=["MLSD", "LIST"])
def test_an_empty_folder_however_it_is_said(
    answer: Callable[[ListingDialogue], str], script, tmp_path: Path
) -> None:
    listing = ONE + b"type=dir; empty\r\n"
    if script:
        listing = b"-rw-r--r-- 1 u g 3 Jan 01 12:00 one\r\ndrwxr-xr-x 1 u g 3 Jan 01 12:00 empty\r\n"
    server = ListingServer(FILES, {"/d": listing, "/d/empty": answer}, script)
    ended, found = copy_tree(server, tmp_path)
    assert (ended.code, found) == (0, FILES_HERE), ended.err
    assert (tmp_path / "d/empty").is_dir()


def test_data_that_came_without_a_word_counts(tmp_path: Path) -> None:
    listing = ONE + b"type=dir; sub\r\n"
    server = ListingServer({**FILES, "/d/sub/inner": b"i"}, {"/d": listing, "/d/sub": data_without_word})
    ended, found = copy_tree(server, tmp_path)
    assert (ended.code, found) == (0, {**FILES_HERE, "sub/inner": b"i"}), ended.err


@pytest.mark.parametrize("reply", ["550 Permission denied", "451 local error", "550 zut alors"])
def test_a_folder_that_cannot_be_listed_has_failed(reply: str, tmp_path: Path) -> None:
    server = ListingServer(FILES, {"/d": ONE + b"type=dir; sub\r\n", "/d/sub": lambda dialogue: reply})
    ended, found = copy_tree(server, tmp_path)
    assert (ended.code, found) == (10, FILES_HERE)
    assert "/d/sub" in ended.err


def test_what_is_no_listing_is_left_in_the_middle_and_the_rest_goes_on(tmp_path: Path) -> None:
    """Without any retries: the session that such a listing has spoilt is no loss of a connection."""
    listings = {
        "/d": b"type=dir; bad\r\ntype=dir; good\r\n",
        "/d/bad": b"what is this\r\n" * 200_000,
        "/d/good": ONE,
    }
    with ListingServer({"/d/good/one": b"111"}, listings) as server:
        ended = mpx("copy", "-r", "--retries", "0", f"{server.url}/d", tmp_path / "d")
    assert ended.code == 10, ended.err
    assert "1001 of 1002 files were not copied" in ended.err
    assert (tmp_path / "d/good/one").read_bytes() == b"111"


def ends_badly(dialogue: ListingDialogue) -> str:
    with dialogue.open_data() as data:
        dialogue.say("150 go")
        data.sendall(ONE)
    return "451 the disk failed"


def test_a_listing_that_ends_with_an_error_is_used_and_has_failed(tmp_path: Path) -> None:
    ended, found = copy_tree(ListingServer(FILES, {"/d": ends_badly}), tmp_path)
    assert (ended.code, found) == (10, FILES_HERE)
    assert "the disk failed" in ended.err


def breaks_off(dialogue: ListingDialogue) -> str:
    with dialogue.open_data() as data:
        dialogue.say("150 go")
        data.sendall(ONE + b"type=file;size=3; in the mid")
    return "426 Connection closed; transfer aborted."


def hangs_up(dialogue: ListingDialogue) -> None:
    with dialogue.open_data() as data:
        dialogue.say("150 go")
        data.sendall(ONE)
    dialogue.control.shutdown(socket.SHUT_RDWR)


def no_data(dialogue: ListingDialogue) -> str:
    dialogue.close()
    return "425 Can't open data connection."


def not_permitted(dialogue: ListingDialogue) -> str:
    return "530 Not permitted here"


def no_room(dialogue: ListingDialogue) -> str:
    return "552 Exceeded quota of listings"


@pytest.mark.parametrize("answer", [breaks_off, hangs_up, no_data, not_permitted, no_room])
@pytest.mark.parametrize("script", [{}, NO_MLST], ids=["MLSD", "LIST"])
def test_a_folder_whose_listing_is_always_lost_has_failed(
    answer: Callable[[ListingDialogue], str | None], script, tmp_path: Path
) -> None:
    """The folders beside it are copied, those that come later too."""
    folders = ["before", "bad", "after"]
    listing = b"".join(
        f"drwxr-xr-x 1 u g 3 Jan 01 12:00 {name}\r\n".encode() if script else f"type=dir; {name}\r\n".encode()
        for name in folders
    )
    line = b"-rw-r--r-- 1 u g 3 Jan 01 12:00 one\r\n" if script else ONE
    server = ListingServer(
        {f"/d/{name}/one": b"111" for name in folders},
        {"/d": listing, **{f"/d/{name}": line for name in folders}, "/d/bad": answer},
        script,
    )
    ended, found = copy_tree(server, tmp_path)
    assert ended.code == 10, ended.err
    assert "/d/bad" in ended.err
    assert {"after/one": b"111", "before/one": b"111"}.items() <= found.items()
    assert (tmp_path / "d/bad").is_dir()


@pytest.mark.parametrize(("answer", "code"), [(breaks_off, 10), (hangs_up, 6)])
def test_where_no_listing_works_at_all_the_copy_fails(
    answer: Callable[[ListingDialogue], str | None], code: int, tmp_path: Path
) -> None:
    """A server that says why is there, so that only the folder has failed; else the server is lost."""
    ended, _ = copy_tree(ListingServer(FILES, {"/d": answer}), tmp_path)
    assert ended.code == code, ended.err


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


def test_mpx_list_names_what_it_cannot_list() -> None:
    with ListingServer(FILES, {"/d": ONE + b"what is this\r\n"}) as server:
        ended = mpx("list", f"{server.url}/d")
    assert ended.out == "one\n"
    assert ended.code == 10
    assert "what is this" in ended.err


def test_mpx_list_by_list() -> None:
    listing = b"-rw-r--r-- 1 u g 9 Jan 01 12:00 one\r\ndrwxr-xr-x 2 u g 9 Jan 01 12:00 sub\r\n"
    with ListingServer({**FILES, "/d/sub/x": b""}, {"/d": listing}, NO_MLST) as server:
        ended = mpx("list", f"{server.url}/d")
        long = mpx("list", "-l", f"{server.url}/d")
    copied(ended)
    assert sorted(ended.out.splitlines()) == ["one", "sub/"]
    assert "0644               3 2026-01-01 12:00:00Z one" in long.out
    assert "has no MLSD" in long.err


@pytest.mark.parametrize("words", [(), ("-l",)])
def test_mpx_list_in_another_locale(words: tuple[str, ...]) -> None:
    with ListingServer({"/d/naïve": b"1"}, {"/d": "type=file;size=1; naïve\r\n".encode()}) as server:
        ended = mpx(
            "list",
            *words,
            f"{server.url}/d",
            environment={"PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "LC_ALL": "C"},
        )
    copied(ended)
    assert ended.out.endswith("naïve\n")


def test_names_that_the_locale_cannot_write_are_named(tmp_path: Path) -> None:
    with ListingServer({"/d/naïve": b"1"}, {"/d": ONE + "type=file;size=1; naïve\r\n".encode()}) as server:
        server.files["/d/one"] = b"111"
        ended = mpx(
            "copy",
            "-r",
            f"{server.url}/d",
            tmp_path / "d",
            environment={"PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "LC_ALL": "C"},
        )
    assert ended.code == 10, ended.err
    assert "locale" in ended.err
    assert os.listdir(tmp_path / "d") == ["one"]


@pytest.mark.peers
def test_names_that_ftp_cannot_carry_are_missed(far: Site, here: Path) -> None:
    for name in ("good", "a\nb", "folder\r/inside"):
        far.write(f"src/{name}", b"x")
    if far.resolves_links:
        pytest.skip("a Globus server lists such names as they are, in two lines")
    ended = mpx("copy", "-r", far.url_of("src"), here / "dst")
    assert ended.code == 10, ended.err
    assert sorted(os.listdir(here / "dst")) == ["folder?", "good"]
    assert "a?b" in ended.err
    assert "folder?" in ended.err


@pytest.mark.parametrize("reply", ["213 5", "227 go (127,0,0,1,200,1)", "230 welcome", '257 "/"'])
def test_what_is_no_answer_to_a_listing(reply: str, tmp_path: Path) -> None:
    """So it is where the answers are one behind the questions."""
    ended, found = copy_tree(ListingServer(FILES, {"/d": lambda _: reply}), tmp_path)
    assert ended.code == 6, ended.err
    assert "listing" in ended.err
    assert found == {}


def test_half_a_success_is_a_refusal_to_list(tmp_path: Path) -> None:
    ended, found = copy_tree(ListingServer(FILES, {"/d": lambda _: "350 ok"}), tmp_path)
    assert ended.code == 3, ended.err
    assert "cannot list /d" in ended.err
    assert found == {}


def test_links_that_a_server_lists_without_end() -> None:
    def endless(dialogue: ListingDialogue, _: str) -> None:
        dialogue.say("150 here")
        with dialogue.open_data() as connection, contextlib.suppress(OSError):
            for start in itertools.count(step=1000):
                lines = (f"type=slink; {number}\r\n" for number in range(start, start + 1000))
                connection.sendall("".join(lines).encode())

    server = ListingServer(FILES, {"/d": ONE + b"type=cdir;x.count=999999999; .\r\n"}, {"MLSR": endless})
    with server:
        ended = mpx("list", f"{server.url}/d")
    assert ended.code == 3, ended.err
    assert "too many links" in ended.err
