"""Uploads whose session is lost while they get their names: what has one is shown to be the new file."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from interop.scripted_server import Dialogue
from interop.storing_server import FEATURES, StoringDialogue, StoringServer
from sites import make

from mpx import CopyOptions, copy
from mpx.errors import IntegrityError

Answer = Callable[[Dialogue, str], str | None]
OLD, NEW = b"o" * 1000, b"n" * 1000
SENT_S = 1_577_934_245.0  # 2020-01-02 03:04:05, when a storing server says that its files were modified


def source_in(folder: Path, modified_s: float = 1e9) -> Path:
    source = make(folder / "x", 0)
    source.write_bytes(NEW)
    os.utime(source, (modified_s, modified_s))
    return source


def losing(act: Callable[[StoringDialogue, str], object], times: int = 1) -> Answer:
    """Have a server `act` on the first requests for the final name, and be gone before it answers."""
    asked: list[str] = []

    def rename(dialogue: Dialogue, name: str) -> str:
        assert isinstance(dialogue, StoringDialogue)
        if name != "/x" or dialogue.asked is None or len(asked) >= times:
            return dialogue._rnto(name)
        asked.append(name)
        act(dialogue, name)
        dialogue.cut()
        return "250 ok"

    return rename


def sweep(dialogue: StoringDialogue, _: str) -> None:
    """Lose the partial file."""
    assert dialogue.asked is not None
    del dialogue.server.files[dialogue.asked]


def elsewhere(dialogue: StoringDialogue, _: str) -> None:
    """Leave the partial file under another name."""
    dialogue._rnto("/elsewhere")


@pytest.mark.parametrize("features", [FEATURES, ("SIZE", "MDTM"), ("MLST size*;",), ()])
@pytest.mark.parametrize("act", [sweep, elsewhere])
def test_an_old_file_of_the_same_size_is_not_the_new_one(
    act: Callable[[StoringDialogue, str], object], features: tuple[str, ...], tmp_path: Path
) -> None:
    source = source_in(tmp_path)
    with StoringServer({"RNTO": losing(act)}, files={"/x": OLD}, features=features) as server:
        copy(str(source), server.url + "/x", CopyOptions(retries=2))
        assert server.files["/x"] == NEW
        assert server.heard.count("STOR") == 2


def test_a_partial_file_that_is_gone_is_sent_again(tmp_path: Path) -> None:
    source = source_in(tmp_path)
    with StoringServer({"RNTO": losing(sweep)}) as server:
        copy(str(source), server.url + "/x", CopyOptions(retries=2))
        assert server.files == {"/x": NEW}


def test_what_is_never_shown_is_an_error(tmp_path: Path) -> None:
    source = source_in(tmp_path)
    with StoringServer({"RNTO": losing(sweep, 2)}, files={"/x": OLD}) as server:
        with pytest.raises(IntegrityError, match="cannot confirm that /x is the new file"):
            copy(str(source), server.url + "/x", CopyOptions(retries=3))
        assert server.files == {"/x": OLD}


@pytest.mark.parametrize("old", [{}, {"/x": OLD}, {"/x": b"shorter"}])
def test_a_name_that_was_given_before_the_session_was_lost_is_enough(
    old: dict[str, bytes], tmp_path: Path
) -> None:
    source = source_in(tmp_path)
    with StoringServer({"RNTO": losing(StoringDialogue._rnto)}, files=old) as server:
        copy(str(source), server.url + "/x", CopyOptions(retries=2))
        assert server.files == {"/x": NEW}
        assert server.heard.count("STOR") == 1


def test_where_nothing_tells_the_two_apart_it_is_sent_again(tmp_path: Path) -> None:
    source = source_in(tmp_path, SENT_S)
    with StoringServer({"RNTO": losing(StoringDialogue._rnto)}, files={"/x": OLD}) as server:
        copy(str(source), server.url + "/x", CopyOptions(retries=2, overwrite="always"))
        assert server.files == {"/x": NEW}
        assert server.heard.count("STOR") == 2
