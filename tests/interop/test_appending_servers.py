"""Servers whose STOR adds to a file that is there, as one of a lost connection is."""

from collections.abc import Callable
from pathlib import Path

import pytest
from interop.scripted_server import Dialogue
from interop.storing_server import StoringDialogue, StoringServer
from sites import make

from mpx import CopyOptions, copy
from mpx.errors import ConnectionLost, IntegrityError

Answer = Callable[[Dialogue, str], str | None]


def upload(server: StoringServer, source: Path, retries: int = 2) -> None:
    copy(str(source), server.url + "/up", CopyOptions(retries=retries, timeout_s=2.0))


def appending(cuts: int) -> Answer:
    """Add what comes to what is there, and lose the connection in the middle the first times."""

    def store(dialogue: Dialogue, name: str) -> str | None:
        assert isinstance(dialogue, StoringDialogue)
        server = dialogue.server
        old, came = bytes(server.files.get(name, b"")), dialogue.receive()
        is_cut = server.heard.count("STOR") <= cuts
        server.files[name] = old + (came[: len(came) // 2] if is_cut else came)
        if is_cut:
            dialogue.cut()
            return None
        return "226 Transfer complete."

    return store


@pytest.mark.parametrize("cuts", [1, 2])
@pytest.mark.parametrize("checksums", [False, True])
def test_a_server_that_appends_to_what_a_lost_connection_left(
    checksums: bool, cuts: int, tmp_path: Path
) -> None:
    source = make(tmp_path / "up", 100_000)
    with StoringServer({"STOR": appending(cuts)}, checksums=checksums) as server:
        upload(server, source)
        assert server.files == {"/up": source.read_bytes()}


@pytest.mark.parametrize("checksums", [False, True])
def test_where_it_does_not_delete_either_that_is_said(checksums: bool, tmp_path: Path) -> None:
    source = make(tmp_path / "up", 100_000)
    script: dict[str, Answer] = {"STOR": appending(1), "DELE": lambda *_: "550 not permitted"}
    with StoringServer(script, checksums=checksums) as server:
        with pytest.raises(IntegrityError, match="sent twice"):
            upload(server, source)
        assert "/up" not in server.files


def test_a_server_that_appends_to_what_another_run_left(tmp_path: Path) -> None:
    source = make(tmp_path / "up", 100_000)
    with StoringServer({"STOR": appending(1)}) as server:
        with pytest.raises(ConnectionLost):
            upload(server, source, retries=0)
        upload(server, source, retries=0)
        assert server.files == {"/up": source.read_bytes()}
