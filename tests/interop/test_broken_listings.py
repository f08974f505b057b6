"""Listings that a server ends with an error: what was listed is copied, and the folder counts as failed."""

import contextlib
import threading
from pathlib import Path

import pytest
from interop.storing_server import StoringDialogue, StoringServer

from mpx import CopyOptions, copy
from mpx.errors import PartialFailure
from mpx.location import parse_location
from mpx.transfer.registry import open_endpoint

FILES = {"/tree/a": b"a" * 1000, "/tree/bad/b": b"b" * 2000, "/tree/bad/c/d": b"d" * 10, "/tree/last/e": b"e"}
FOLDERS = {"/", "/tree", "/tree/bad", "/tree/bad/c", "/tree/last"}


def found(top: Path) -> dict[str, bytes]:
    return {f"/tree/{each.relative_to(top)}": each.read_bytes() for each in top.rglob("*") if each.is_file()}


@pytest.mark.parametrize("times", [1, 1000])
@pytest.mark.parametrize("lines", ["all", "none"])
def test_a_listing_that_ends_with_426(tmp_path: Path, lines: str, times: int) -> None:
    """The folder is listed again, in case it was an accident."""
    ended = 0

    def listing(dialogue: StoringDialogue, argument: str) -> str:
        nonlocal ended
        if argument != "/tree/bad" or ended >= times:
            return dialogue._mlsd(argument)
        ended += 1
        if lines == "all":
            dialogue._mlsd(argument)
        else:
            with dialogue.open_data():
                dialogue.say("150 go")
        return "426 Connection closed; transfer aborted."

    with StoringServer({"MLSD": listing}) as server:
        server.files |= FILES
        server.folders |= FOLDERS
        options = CopyOptions(recursive=True)
        if times == 1:
            copy(f"{server.url}/tree", str(tmp_path / "near"), options)
        else:
            with pytest.raises(PartialFailure, match=r"1 of .* files were not copied.*cannot list /tree/bad"):
                copy(f"{server.url}/tree", str(tmp_path / "near"), options)
    is_whole = times == 1 or lines == "all"
    expected = {name: data for name, data in FILES.items() if is_whole or "/bad/" not in name}
    assert found(tmp_path / "near") == expected
    assert ended == min(times, 3)


def test_a_listing_that_nobody_reads_is_read_ahead(tmp_path: Path) -> None:
    """The server is not kept waiting, and what it listed comes when it is asked for."""
    names = [f"file number {i} of a long listing" for i in range(150_000)]
    is_sent = threading.Event()

    def listing(dialogue: StoringDialogue, argument: str) -> str:
        with dialogue.open_data() as data:
            dialogue.say("150 go")
            data.sendall("".join(f"type=file;size=1; {name}\r\n" for name in names).encode())
        is_sent.set()
        return "226 done"

    with StoringServer({"MLSD": listing}) as server:
        end = open_endpoint(parse_location(f"{server.url}/"), CopyOptions(), lambda: False, writing=False)
        with contextlib.closing(end):
            entries = end.entries("/")
            first = next(entries)
            end.pause()
            assert is_sent.wait(30)
            listed = [name for name, _ in (first, *entries)]
            assert listed == names
            assert end.stat("/") is not None
