"""Listings that a server ends with an error: what was listed is copied, and the folder counts as failed."""

from pathlib import Path

import pytest
from interop.storing_server import StoringDialogue, StoringServer

from mpx import CopyOptions, copy
from mpx.errors import PartialFailure

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
