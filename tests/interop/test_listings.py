"""Listings as servers write them: whatever a line says, what it names is copied or named as not copied."""

import os
from pathlib import Path

import pytest
from interop.listed_tree import FAST, FILES, FILES_HERE, ONE, copy_tree
from interop.listing_server import ListingServer
from mpx_command import copied, mpx
from sites import opened


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
        (b"type=OS.unix=slink:a b;size=5; gone\r\n", "ambiguous"),
        (b"type=file;size=3 one and more\r\n", "ambiguous"),
    ],
)
def test_what_is_not_understood_is_named_and_has_failed(line: bytes, shown: str, tmp_path: Path) -> None:
    ended, found = copy_tree(ListingServer(FILES, {"/d": ONE + line}), tmp_path)
    assert found == FILES_HERE
    assert ended.code == 10, ended.err
    assert shown in ended.err, ended.err


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


def test_mpx_list_names_what_it_cannot_list() -> None:
    with ListingServer(FILES, {"/d": ONE + b"what is this\r\n"}) as server:
        ended = mpx("list", f"{server.url}/d")
    assert ended.out == "one\n"
    assert ended.code == 10
    assert "what is this" in ended.err


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


@pytest.mark.parametrize("kind", ["mpx serve", "mpx serve with a token"])
@pytest.mark.parametrize("links", ["follow", "keep"])
def test_what_mpx_serve_cannot_name_is_told_by_its_name(
    kind: str, links: str, here: Path, tmp_path: Path
) -> None:
    with opened(kind, tmp_path) as far:
        for name in ("a\nb", "a?b", "c\r", "folder\n/inside", "sub/caf\udce9\n", "sub/good"):
            far.write(name, name.encode("utf-8", "surrogateescape"))
        (far.folder / "link\n").symlink_to("a?b")
        ended = mpx("copy", "-r", "--links", links, far.url, here / "down")
    assert ended.code == 10, ended.err
    for name in (r"/a\x0ab", r"/c\x0d", r"/folder\x0a", r"/link\x0a", r"/sub/caf\xe9\x0a"):
        assert ended.err.count(f"the name '{name}' contains a") == 1, ended.err
    assert "5 of 7 files were not copied" in ended.err
    assert len(ended.err.splitlines()) == 6, ended.err
    found = {str(path.relative_to(here / "down")) for path in (here / "down").rglob("*")}
    assert found == {"a?b", "sub", "sub/good"}
    assert (here / "down/a?b").read_bytes() == b"a?b"
    assert (here / "down/sub/good").read_bytes() == b"sub/good"
