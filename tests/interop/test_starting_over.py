"""A copy that starts over in another way, since the first does not work, begins with sessions of its own."""

import posixpath
import select
import threading
from pathlib import Path

from interop.scripted_server import Dialogue
from interop.storing_server import StoringDialogue, StoringServer

from mpx import CopyOptions, copy

PATIENCE_S = 60.0
LINK = "/tree/link"


def list_folder(dialogue: Dialogue, folder: str) -> str | None:
    """List one of the files as a symbolic link."""
    assert isinstance(dialogue, StoringDialogue)
    facts = {name: dialogue.facts(name) for name in dialogue.children(folder)} | {LINK: "type=OS.unix=slink;"}
    return dialogue.send_lines([f"{told} {posixpath.basename(name)}\r\n" for name, told in facts.items()])


def test_an_answer_that_comes_late_is_none_to_what_is_asked_then(tmp_path: Path) -> None:
    """The server cannot connect to us, which shows while it is asked about a link.

    It answers that when it is asked something else, or when nobody is there any more.
    """
    is_asked = threading.Event()

    def describe(dialogue: Dialogue, name: str) -> str:
        assert isinstance(dialogue, StoringDialogue)
        if name == LINK and not is_asked.is_set():
            is_asked.set()
            select.select([dialogue.control], [], [], PATIENCE_S)
        return dialogue._mlst(name)

    def retrieve(dialogue: Dialogue, name: str) -> str | None:
        assert isinstance(dialogue, StoringDialogue)
        assert is_asked.wait(PATIENCE_S)
        return "425 cannot connect" if dialogue.blocks else dialogue._retr(name)

    files = {f"/tree/{i}": bytes([i]) * 1000 for i in range(20)} | {LINK: b"what it leads to"}
    script = {"MLSD": list_folder, "MLST": describe, "ERET": retrieve, "RETR": retrieve}
    with StoringServer(script, files=files, mode_e=True) as server:
        options = CopyOptions(recursive=True, links="follow", retries=0)
        report = copy(server.url + "/tree", str(tmp_path / "tree"), options)
    assert {f"/tree/{path.name}": path.read_bytes() for path in (tmp_path / "tree").iterdir()} == files
    assert report.files.moved == len(files)
