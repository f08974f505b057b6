"""A copy that starts over in another way, since the first does not work, begins with sessions of its own."""

import posixpath
import random
import select
import threading
from pathlib import Path

import pytest
from interop.lying_server import Heard, LyingServer
from interop.scripted_server import Dialogue
from interop.storing_server import StoringDialogue, StoringServer

from mpx import CopyOptions, copy
from mpx.report import Progress

PATIENCE_S = 60.0
LINK = "/tree/link"
LARGE = random.Random(27).randbytes(20 * 1024 * 1024 + 11)


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


@pytest.mark.parametrize("overwrite", ["different", "always", "never"])
def test_what_was_committed_before_a_fallback_counts_as_moved(tmp_path: Path, overwrite: str) -> None:
    """The server begins long parts of a file at its first byte, which shows once the small ones are there."""
    small = {f"/d/a{i:02}": bytes([i]) * 2000 for i in range(40)}
    files = {**small, "/d/zz": LARGE}
    are_there = threading.Event()

    def watch(progress: Progress) -> None:
        if progress.files_done == len(small):
            are_there.set()

    def part(_: Heard, offset: int, length: int) -> tuple[int, int]:
        if length > 5000 and offset:
            assert are_there.wait(PATIENCE_S)
            return 0, length
        return offset, length

    with LyingServer(files, mode_e=True, part=part) as server:
        options = CopyOptions(recursive=True, rate_bps=200e6, overwrite=overwrite)
        report = copy(server.url + "/d", str(tmp_path / "d"), options, on_progress=watch)
        asked = [command for command in server.commands if command.startswith(("RETR", "ERET"))]
    assert {f"/d/{path.name}": path.read_bytes() for path in (tmp_path / "d").iterdir()} == files
    assert report.files.moved == report.files.total == len(files) and not report.skipped
    assert report.bytes.moved == report.bytes.total == sum(map(len, files.values()))
    assert sum(report.compared.values()) == report.bytes.moved
    assert all(sum(name in command for command in asked) == 1 for name in small)
