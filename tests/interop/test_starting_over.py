"""A copy that goes on in another way, since the first one does not work, begins it with sessions of its own."""

import select
import threading
from pathlib import Path

import pytest
from interop.scripted_server import Dialogue
from interop.storing_server import FEATURES, StoringDialogue, StoringServer

from mpx import CopyOptions, copy

PATIENCE_S = 60.0


@pytest.mark.parametrize("late", ["200 ok", "550 no", "226 done"])
def test_an_answer_that_comes_late_is_none_to_what_is_asked_then(late: str, tmp_path: Path) -> None:
    """The session that has listed is asked for the round-trip time when the server refuses checksums.

    It answers when it is asked something else, or nobody is there any more.
    """
    listing: list[Dialogue] = []
    is_asked = threading.Event()

    def list_folder(dialogue: Dialogue, folder: str) -> str | None:
        assert isinstance(dialogue, StoringDialogue)
        listing.append(dialogue)
        return dialogue._mlsd(folder)

    def say_late(dialogue: Dialogue, _: str) -> str:
        if dialogue not in listing or is_asked.is_set():
            return "200 ok"
        is_asked.set()
        select.select([dialogue.control], [], [], PATIENCE_S)
        return late

    def refuse(*_: object) -> str:
        assert is_asked.wait(PATIENCE_S)
        return "550 not now"

    files = {f"/tree/{i}": bytes([i]) * 300_000 for i in range(3)}
    script = {"MLSD": list_folder, "NOOP": say_late, "CKSM": refuse}
    features = (*FEATURES, "CKSM ADLER32:10;")
    with StoringServer(script, files=files, features=features, mode_e=True) as server:
        report = copy(server.url + "/tree", str(tmp_path / "tree"), CopyOptions(recursive=True, retries=0))
        assert server.heard.count("MLSD") == 2
    assert {f"/tree/{path.name}": path.read_bytes() for path in (tmp_path / "tree").iterdir()} == files
    assert report.files.moved == len(files)
