"""Small files that are stored together: one that is refused harms no other, and none waits for an answer."""

import itertools
import threading
from pathlib import Path

import pytest
from interop.control_relay import ControlRelay
from interop.stock_server import StockServer
from random_bytes import random_bytes

import mpx
from mpx.files.partial_names import partial_name
from mpx.transfer.journal import copy_tag

pytestmark = pytest.mark.peers


@pytest.mark.parametrize("checksum", ["none", "adler32"])
def test_one_refused_file_of_a_batch(tmp_path: Path, checksum: str) -> None:
    tree, root = tmp_path / "tree", tmp_path / "served"
    tree.mkdir()
    root.mkdir()
    contents = {f"file{i:02}": random_bytes(10_000 + i) for i in range(60)}
    for name, content in contents.items():
        (tree / name).write_bytes(content)
    with StockServer(root) as server:
        target = f"{server.url}tree"
        there = root / "tree"
        in_the_way = Path(partial_name(str(there / "file20"), copy_tag(str(tree), target)))
        in_the_way.mkdir(parents=True)  # where the file would grow
        there.chmod(0o777)
        with pytest.raises(mpx.PartialFailure) as failed:
            mpx.copy(str(tree), target, mpx.CopyOptions(recursive=True, checksum=checksum))
    report = failed.value.report
    assert report is not None
    assert (report.files.moved, report.files.failed) == (59, 1)
    del contents["file20"]
    assert {name: (there / name).read_bytes() for name in contents} == contents
    assert not (there / "file20").exists()
    assert not any("damaged" in note for note in report.notes)


def test_files_are_sent_behind_others_before_these_are_answered(tmp_path: Path) -> None:
    """Else nothing is sent for a round trip at the end of each batch."""
    (tmp_path / "served").mkdir()
    (tmp_path / "tree").mkdir()
    contents = {f"file{i:03}": random_bytes(100 + i) for i in range(400)}
    for name, content in contents.items():
        (tmp_path / "tree" / name).write_bytes(content)
    asked, answered = itertools.count(1), itertools.count(1)
    is_listed, more_came = threading.Event(), threading.Condition()
    latest, in_time = [0], []

    def asks(line: bytes) -> bytes:
        if line.startswith(b"STOR"):
            is_listed.wait(60)
            with more_came:
                latest[0] = next(asked)
                more_came.notify_all()
        return line

    def answers(line: bytes) -> bytes:
        is_answer = line.startswith(b"226")
        number = next(answered) if is_answer else 0
        if is_answer and number <= len(contents) - 70 and latest[0] >= 64 and all(in_time):
            with more_came:
                in_time.append(more_came.wait_for(lambda: latest[0] >= number + 32, 20))
        return line

    def look(progress: mpx.Progress) -> None:
        if progress.is_listed:
            is_listed.set()

    with (
        StockServer(tmp_path / "served") as server,
        ControlRelay(server.port, to_server=asks, to_client=answers) as relay,
    ):
        target = f"ftp://127.0.0.1:{relay.port}{tmp_path}/served/tree"
        options = mpx.CopyOptions(recursive=True, max_sessions=1)
        mpx.copy(str(tmp_path / "tree"), target, options, on_progress=look)
    assert in_time
    assert all(in_time)
    stored = tmp_path / "served" / "tree"
    assert {file.name: file.read_bytes() for file in stored.iterdir()} == contents
