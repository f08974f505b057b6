"""An upload in MODE E is whole only when the server shows it: lost blocks, markers that are not true."""

import socket
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from interop.scripted_server import Dialogue
from interop.storing_server import StoringDialogue, StoringServer
from interop.upload_proof import (
    cutting,
    keeping,
    longer,
    losing,
    short,
    silent,
    stores,
    upload,
)
from sites import make

from mpx import CopyOptions, copy
from mpx.errors import (
    ConnectionLost,
    IntegrityError,
)


@pytest.mark.parametrize("size_bytes", [1000, 5_000_000])
@pytest.mark.parametrize("change", [short, longer])
def test_blocks_that_were_lost(
    change: Callable[[bytes, int], bytes], size_bytes: int, tmp_path: Path
) -> None:
    source = make(tmp_path / "up", size_bytes)
    with StoringServer({"STOR": keeping(change)}, mode_e=True) as server:
        with pytest.raises(IntegrityError, match="although it was sent twice"):
            upload(server, source, streams=1)
        assert server.files == {}
        assert stores(server) == 2


@pytest.mark.parametrize("size_bytes", [1000, 5_000_000])
@pytest.mark.parametrize("store", [cutting, silent])
def test_blocks_that_are_all_there_are_not_sent_again(
    store: Callable[[Dialogue, str], None], size_bytes: int, tmp_path: Path
) -> None:
    source = make(tmp_path / "up", size_bytes)
    with StoringServer({"STOR": store}, mode_e=True, checksums=True) as server:
        upload(server, source, streams=1)
        assert server.files == {"/up": source.read_bytes()}
        assert stores(server) == 1


def claiming(dialogue: Dialogue, name: str) -> None:
    """Take everything, claim to have it, lose it, and be gone."""
    assert isinstance(dialogue, StoringDialogue)
    dialogue.say(f"111 Range Marker 0-{len(dialogue.receive())}")
    dialogue.cut()


@pytest.mark.parametrize("size_bytes", [1000, 5_000_000])
@pytest.mark.parametrize("store", [losing, claiming])
def test_blocks_that_are_lost_every_time(
    store: Callable[[Dialogue, str], None], size_bytes: int, tmp_path: Path
) -> None:
    """What a marker claims counts as progress once."""
    source = make(tmp_path / "up", size_bytes)
    with StoringServer({"STOR": store}, mode_e=True, checksums=True) as server:
        with pytest.raises(ConnectionLost):
            upload(server, source, streams=1)
        assert 3 <= stores(server) <= 5  # and once more with small blocks, of which more may count


class Losing(StoringDialogue):
    """Loses what it said that it had, and the session, once."""

    def took(self, start: int, end: int, connections: Sequence[socket.socket]) -> None:
        self.say(f"111 Range Marker {start}-{end}")
        if end >= 1 << 20 and not self.server.folders & {"/lost"}:
            self.server.folders.add("/lost")
            self.server.files.clear()
            self.cut()
            raise ConnectionError("it has crashed")


def test_what_a_marker_said_of_a_small_file_is_not_believed_once_the_session_is_lost(tmp_path: Path) -> None:
    content = make(tmp_path / "file", 3 << 20).read_bytes()
    with StoringServer(mode_e=True) as server:
        server.dialogue = Losing
        copy(str(tmp_path / "file"), f"{server.url}/up", CopyOptions(checksum="none"))
        assert server.files == {"/up": content}
        assert "/lost" in server.folders
