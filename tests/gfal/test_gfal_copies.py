"""Copies to and from servers by gfal2: whole trees, compared, and what becomes of what is not there."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from interop.trees import names
from mpx_command import copied, refused
from sites import Site, make
from web.web_command import mpx_there

import mpx as api

Via = Callable[..., api.Report]
SIZES = (0, 1, 3_000_001)


def same(first: Path, second: Path) -> bool:
    found = names(first)
    files = [name for name in found if not name.endswith("/")]
    return found == names(second) and all(
        (first / name).read_bytes() == (second / name).read_bytes() for name in files
    )


def test_a_tree_there_and_back(here: Path, server: Site, via: Via) -> None:
    for size in SIZES:
        make(here / f"tree/inner/{size}", size)
    (here / "tree/empty").mkdir()
    sent = via(here / "tree", server.url_of("up"), recursive=True)
    assert (sent.status, sent.files.moved) == ("done", len(SIZES))
    assert sent.checksum["result"] == "verified"
    assert via(here / "tree", server.url_of("up"), recursive=True).files.moved == 0
    brought = via(server.url_of("up"), here / "down", recursive=True)
    assert (brought.files.moved, brought.checksum["result"]) == (len(SIZES), "verified")
    assert same(here / "tree", here / "down") and same(here / "tree", server.folder / "up")
    assert any("tunable=False" in note for note in brought.notes)


def test_names_with_all_kinds_of_letters(here: Path, open_server: Callable[..., object], via: Via) -> None:
    """Not of XRootD by HTTP, see the next test."""
    awkward = ["with blanks, it's", "50%20off", "café a#b", "semi;colon *[x] a+b&c"]
    for kind in ("nginx", "apache", "grid", "root"):
        with open_server(kind) as site:  # type: ignore[attr-defined]
            folder = here / kind
            for name in awkward:
                make(folder / "up" / name / name, len(name))
            via(folder / "up", site.url_of("up"), recursive=True)
            via(site.url_of("up"), folder / "down", recursive=True)
            assert same(folder / "up", folder / "down") and same(folder / "up", site.folder / "up"), kind


def test_a_server_that_renames_to_another_name(
    here: Path, open_server: Callable[..., object], via: Via
) -> None:
    """XRootD takes what is encoded in the new name for the name itself."""
    content = make(here / "with blanks", 1001).read_bytes()
    with open_server("xrootd") as site:  # type: ignore[attr-defined]
        with pytest.raises(api.MpxError, match="--in-place") as caught:
            via(here / "with blanks", site.url_of(""))
        assert caught.value.exit_code == 4
        assert list(site.folder.iterdir()) == []
        report = via(here / "with blanks", site.url_of(""), in_place=True)
        assert (site.folder / "with blanks").read_bytes() == content
        assert any(note.startswith("not atomic") for note in report.notes)


def test_bytes_of_names_that_are_no_utf_8(here: Path, nginx: Site, via: Via) -> None:
    name = os.fsdecode(b"bad \xff")
    make(here / name, 11)
    via(here / name, nginx.url_of("good"))
    via(nginx.url_of("good"), here / f"{name}2")
    assert (here / f"{name}2").read_bytes() == (here / name).read_bytes()


@pytest.mark.parametrize("kind", ["grid", "root"])
def test_a_name_that_is_no_utf_8_in_a_folder(
    here: Path, open_server: Callable[..., object], via: Via, kind: str
) -> None:
    """The binding cannot tell it, and ends the process where gfal2 tells of it."""
    with open_server(kind) as site:  # type: ignore[attr-defined]
        for name in ("one", os.fsdecode(b"bad \xff"), "caf\u00e9"):
            site.write(f"tree/{name}", os.fsencode(name))
        site.hand_over()
        report = via(site.url_of("tree"), here / "tree", recursive=True, retries=0)
        assert report.files.moved == 3
        assert same(here / "tree", site.folder / "tree")


def test_names_that_gfal2_cuts_off(nginx: Site) -> None:
    """They are not taken for others: 60 letters that are encoded by six bytes each, in a listing."""
    nginx.write("\u00e9" * 60)
    refused(mpx_there("list", "--via", "gfal2", nginx.url), 3, "cannot list", "cuts off the name %C3%A9")


def test_a_blank_at_the_end_of_a_name_leaves_no_file_out(here: Path, server: Site) -> None:
    """GridFTP servers list it, and gfal2 cuts it off: then two files have one name."""
    server.write("tree/x", b"one")
    server.write("tree/x ", b"other")
    server.hand_over()
    ended = mpx_there("copy", "-r", "--via", "gfal2", server.url_of("tree"), here / "tree")
    if ended.code:
        assert "twice" in ended.err or "blank" in ended.err
    else:
        assert (here / "tree/x ").read_bytes() == b"other"


def test_a_folder_is_replaced_by_no_file(here: Path, server: Site, via: Via) -> None:
    """As some web servers would, with all that is in it."""
    make(here / "file", 10)
    server.write("folder/inside", b"some")
    with pytest.raises(api.MpxError) as caught:
        via(here / "file", server.url_of(""), more={"targets": ["folder"]}, retries=0)
    assert caught.value.exit_code == 4
    assert (server.folder / "folder/inside").read_bytes() == b"some"


def test_what_is_not_there(here: Path, server: Site) -> None:
    refused(mpx_there("copy", "--via", "gfal2", server.url_of("no"), here / "no"), 3, "no does not exist")
    refused(mpx_there("list", "--via", "gfal2", server.url_of("no")), 3, "no does not exist")
    assert list(here.iterdir()) == []


def test_a_destination_that_is_refused(here: Path, server: Site, via: Via) -> None:
    make(here / "file", 10)
    server.write("taken", b"a file")
    with pytest.raises(api.MpxError) as caught:
        via(here / "file", server.url_of("taken/below"), retries=0)
    assert caught.value.exit_code == 4
    assert (server.folder / "taken").read_bytes() == b"a file"


def test_a_listing(server: Site) -> None:
    server.write("folder/one", b"12345")
    server.write("folder/in ner/two")
    ended = mpx_there("list", "-l", "--via", "gfal2", server.url_of("folder"))
    copied(ended)
    folder, file = ended.out.splitlines()
    assert folder.startswith("folder") and folder.endswith(" in ner/")
    assert file.split()[:3] == ["file", "----", "5"] and file.endswith(" one")


def test_a_rehearsal_and_what_is_there(here: Path, server: Site, via: Via) -> None:
    make(here / "tree/file", 7)
    assert via(here / "tree", server.url_of("up"), recursive=True, dry_run=True).dry_run
    assert list(server.folder.iterdir()) == []
    server.write("up/file", b"another")
    kept = via(here / "tree", server.url_of("up"), recursive=True, overwrite="never")
    assert (kept.files.skipped, (server.folder / "up/file").read_bytes()) == (1, b"another")
    via(here / "tree", server.url_of("up"), recursive=True, overwrite="always")
    assert (server.folder / "up/file").read_bytes() == (here / "tree/file").read_bytes()


def test_sources_from_a_list(here: Path, server: Site) -> None:
    for name in ("a", "b"):
        server.write(name, name.encode())
    (here / "list").write_text(f"{server.url_of('a')}\n{server.url_of('b')}\tother\n")
    ended = mpx_there("copy", "-q", "--via", "gfal2", "--from-file", here / "list", f"{here}/to/")
    copied(ended)
    assert ((here / "to/a").read_bytes(), (here / "to/other").read_bytes()) == (b"a", b"b")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--continue",), "--continue is not possible here: gfal2 moves the data"),
        (("--rate", "1Mbit/s"), "--rate is not possible here: gfal2 moves the data"),
        (("--checksum", "none"), "always compared"),
        (("--policy", "scavenger"), "--policy scavenger is not possible here"),
        (("--controller", "http://127.0.0.1:1"), "--controller is not possible here"),
    ],
)
def test_options_that_mean_nothing(here: Path, nginx: Site, words: tuple[str, ...], said: str) -> None:
    make(here / "file", 7)
    refused(mpx_there("copy", "--via", "gfal2", *words, here / "file", nginx.url), 2, said)


def test_places_that_gfal2_is_not_asked_for(here: Path) -> None:
    make(here / "file", 7)
    refused(mpx_there("copy", "--via", "gfal2", here / "file", "ssh://host/name"), 2, "not asked for ssh://")
    refused(mpx_there("copy", "s3://bucket/key", "srm://host/name"), 2, "not asked for s3://")
    refused(mpx_there("copy", "--via", "gfal2", here / "file", here / "to"), 2, "it is for servers")
