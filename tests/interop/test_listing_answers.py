"""How servers answer MLSD and LIST: empty folders, refusals, listings cut off, answers to something else."""

import contextlib
import itertools
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from interop.listed_tree import FAST, FILES, FILES_HERE, ONE, copy_tree
from interop.listing_server import NO_MLST, ListingDialogue, ListingServer
from mpx_command import mpx, refused


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


COUNTED = b"type=cdir;x.count=%d; .\r\ntype=pdir; ..\r\n"  # as a Globus server counts, with these two


def all_of_it(lines: bytes) -> Callable[[ListingDialogue, str], str | None]:
    return lambda dialogue, _: dialogue.send_stream(lines)


def test_entries_that_a_server_counts_and_does_not_list_have_failed(tmp_path: Path) -> None:
    """A Globus server leaves out what it can tell nothing of, as files on a disk that does not answer."""
    mlsr = COUNTED % 5 + ONE + b"type=slink;unix.slink=nowhere; link\r\n"
    server = ListingServer(FILES, {"/d": COUNTED % 5 + ONE}, {"MLSR": all_of_it(mlsr)})
    ended, found = copy_tree(server, tmp_path)
    assert ended.code == 10, ended.err
    assert "counts 1 more in /d" in ended.err
    assert found == FILES_HERE


def test_links_to_nowhere_that_are_counted_and_not_listed_are_all_there_is(tmp_path: Path) -> None:
    links = [b"type=slink;unix.slink=nowhere; link%d\r\n" % number for number in range(500)]
    mlsr = COUNTED % 503 + ONE + b"".join(links)
    server = ListingServer(FILES, {"/d": COUNTED % 503 + ONE}, {"MLSR": all_of_it(mlsr)})
    ended, found = copy_tree(server, tmp_path)
    assert ended.code == 0, ended.err
    assert found == FILES_HERE


def test_a_count_that_is_made_up_ends_soon(tmp_path: Path) -> None:
    def endless(dialogue: ListingDialogue, _: str) -> None:
        dialogue.say("150 here")
        with dialogue.open_data() as connection, contextlib.suppress(OSError):
            while True:
                connection.sendall(b"type=file;size=1; same\r\n" * 1000)

    server = ListingServer(FILES, {"/d": COUNTED % 999_999_999 + ONE}, {"MLSR": endless})
    ended, found = copy_tree(server, tmp_path)
    assert ended.code == 10, ended.err
    assert "more in /d than it lists" in ended.err
    assert found == FILES_HERE


def test_a_folder_that_may_be_listed_and_not_entered_has_failed(tmp_path: Path) -> None:
    """Servers list the names of what they cannot describe as nothing at all, and say that all went well."""
    listing = ONE + b"type=dir; closed\r\ntype=dir; empty\r\n"

    def enter(dialogue: ListingDialogue, name: str) -> str | None:
        return "550 Permission denied" if name.endswith("closed") else dialogue.answer("CWD", name)

    server = ListingServer(FILES, {"/d": listing, "/d/closed": b"", "/d/empty": b""}, {"CWD": enter})
    ended, found = copy_tree(server, tmp_path)
    assert ended.code == 10, ended.err
    assert "/d/closed" in ended.err and "/d/empty" not in ended.err
    assert found == FILES_HERE


def test_links_are_not_known_in_a_folder_that_cannot_be_listed(tmp_path: Path) -> None:
    with ListingServer(FILES, {"/d": lambda _: "550 Permission denied"}) as server:
        ended = mpx("copy", "--links", "keep", *FAST, f"{server.url}/d/one", tmp_path / "one")
        refused(ended, 2, "--links keep is not possible here", "/d/one is a link", "Permission denied")
        assert mpx("copy", *FAST, f"{server.url}/d/one", tmp_path / "one").code == 0
