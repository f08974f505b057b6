"""Folders of which a server lists nothing: they are taken for empty only where nothing speaks against it."""

import json
import os
import socket
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from interop.foreign_servers import ENVIRONMENT, ProFtpd
from interop.listing_server import NO_MLST, ListingDialogue, ListingServer
from interop.scripted_server import Script
from mpx_command import Ended, mpx

LINES = {"MLSD": b"type=file;size=1; inner\r\n", "LIST": b"-rw-r--r-- 1 u g 1 Jan 01 12:00 inner\r\n"}


def cut(dialogue: ListingDialogue) -> str:
    """Say that all is sent, and reset the data connection before its first line."""
    data = dialogue.open_data()
    data.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    data.close()
    return "226 sent"


def copied(
    here: Path, verb: str, listing: Callable[[ListingDialogue], str | None] | bytes, stat: Script
) -> tuple[Ended, list[str]]:
    """Copy a folder that is listed so, beside a file; return how that ended, and what was noted."""
    one = b"type=dir; sub\r\ntype=file;size=3; one\r\n"
    if verb == "LIST":
        one = b"drwxr-xr-x 1 u g 3 Jan 01 12:00 sub\r\n-rw-r--r-- 1 u g 3 Jan 01 12:00 one\r\n"
    files = {"/d/one": b"111", "/d/sub/inner": b"i"}
    script = {**(NO_MLST if verb == "LIST" else {}), **stat}
    with ListingServer(files, {"/d": one, "/d/sub": listing}, script) as server:
        words = ("--timeout", "5s", "--retries", "3", "--report", here / "report")
        ended = mpx("copy", "-r", *words, f"{server.url}/d", here / "d")
    assert (here / "d/one").read_bytes() == b"111"
    return ended, json.loads((here / "report").read_text())["notes"]


def says(*lines: str) -> Script:
    return {"STAT": lambda *_: "\r\n".join(["213-STAT", *lines, "213 End."])}


NO_STAT: Script = {"STAT": lambda *_: "502 not implemented"}
OF_THE_SERVER: Script = {"STAT": lambda *_: "211-FTP server status:\r\n all is well\r\n211 End of status"}
SHOWS = says("drwxr-xr-x 2 0 0 4096 Nov 25 16:30 .", " -rw-r--r-- 1 0 0 1 Nov 25 16:30 inner")
SHOWS_NOTHING = says("drwxr-xr-x 2 0 0 4096 Nov 25 16:30 .", "drwxr-xr-x 2 0 0 4096 Nov 25 16:30 ..")


@pytest.mark.parametrize("stat", [NO_STAT, OF_THE_SERVER, SHOWS], ids=["no STAT", "its own", "shows"])
@pytest.mark.parametrize("verb", ["MLSD", "LIST"])
def test_a_listing_that_is_cut_once_before_its_first_line(verb: str, stat: Script, tmp_path: Path) -> None:
    answers = [cut]

    def once(dialogue: ListingDialogue) -> str | None:
        return answers.pop()(dialogue) if answers else dialogue.send_stream(LINES[verb])

    ended, notes = copied(tmp_path, verb, once, stat)
    assert ended.code == 0, ended.err
    assert (tmp_path / "d/sub/inner").read_bytes() == b"i"
    assert not any("treated as empty" in note for note in notes)


@pytest.mark.parametrize("verb", ["MLSD", "LIST"])
def test_a_folder_that_is_not_empty_and_never_listed_has_failed(verb: str, tmp_path: Path) -> None:
    ended, _ = copied(tmp_path, verb, cut, SHOWS)
    assert ended.code == 10, ended.err
    assert "/d/sub" in ended.err
    assert "not empty" in ended.err


@pytest.mark.parametrize("stat", [NO_STAT, OF_THE_SERVER], ids=["no STAT", "its own"])
@pytest.mark.parametrize("verb", ["MLSD", "LIST"])
def test_what_nobody_can_tell_is_said(verb: str, stat: Script, tmp_path: Path) -> None:
    ended, notes = copied(tmp_path, verb, cut, stat)
    assert ended.code == 0, ended.err
    assert any("/d/sub is treated as empty" in note for note in notes), notes


def test_a_folder_that_stat_shows_to_be_empty_is(tmp_path: Path) -> None:
    ended, notes = copied(tmp_path, "MLSD", cut, SHOWS_NOTHING)
    assert ended.code == 0, ended.err
    assert not any("treated as empty" in note for note in notes), notes


# --- ProFTPD that has LIST only: its answer for what it may not read is that for what is empty --------------


@pytest.fixture
def list_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ProFtpd:
    monkeypatch.setenv("MPX_PASSWORD", ENVIRONMENT["MPX_PASSWORD"])
    (tmp_path / "ftp/d/e/f").mkdir(parents=True)
    return ProFtpd(tmp_path / "ftp", "FactsAdvertise off")


@pytest.mark.parametrize("name", ["d", "d/e/f"])
def test_a_top_folder_that_cannot_be_listed_has_failed(list_only: ProFtpd, name: str, tmp_path: Path) -> None:
    with list_only as server:
        top = server.root / name
        (top / "file").write_bytes(b"1")
        top.chmod(0o711)
        os.chown(top, 0, 0)
        ended = mpx("copy", "-r", server.url + name, tmp_path / "down")
    assert ended.code == 10, ended.err
    assert f"listed /{name} without any entries" in ended.err


def test_an_empty_top_folder_is_copied(list_only: ProFtpd, tmp_path: Path) -> None:
    with list_only as server:
        ended = mpx("copy", "-r", f"{server.url}d/e/f", tmp_path / "down")
    assert ended.code == 0, ended.err
    assert os.listdir(tmp_path / "down") == []
