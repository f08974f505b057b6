"""A second copy of the same files sends nothing, whatever a server makes of modification times."""

import os
from pathlib import Path

import pytest
from interop.scripted_server import Dialogue
from interop.storing_server import StoringDialogue, StoringServer
from random_bytes import random_bytes
from sites import make

from mpx import CopyOptions, copy
from mpx.report import Report

TREE = CopyOptions(recursive=True)


def tree(tmp_path: Path) -> Path:
    for i in range(5):
        os.utime(make(tmp_path / f"tree/{i}", 100 + i), (0, 1_577_836_800 + i))
    return tmp_path / "tree"


def moved(report: Report) -> int:
    return report.files.moved


# --- servers that set none -------------------------------------------------------------------------------

KEEPS_NONE = ("MLST type*;size*;modify*;", "SIZE", "MDTM")


def counted(features: tuple[str, ...], tmp_path: Path) -> StoringServer:
    """A server that gives every file the next second as its time."""
    clock = iter(range(10, 100))

    def store(dialogue: Dialogue, name: str) -> str:
        assert isinstance(dialogue, StoringDialogue)
        dialogue.server.times[name] = f"202401010101{next(clock)}"
        return dialogue._stor(name)

    return StoringServer({"STOR": store}, features=features)


@pytest.mark.parametrize("features", [KEEPS_NONE, ("MDTM", "SIZE"), ("SIZE",)])
def test_what_was_sent_is_known(features: tuple[str, ...], tmp_path: Path) -> None:
    source = tree(tmp_path)
    with counted(features, tmp_path) as server:
        first = copy(str(source), server.url + "/tree", TREE)
        assert moved(first) == 5
        assert any("modification times are not kept" in note for note in first.notes)
        assert moved(copy(str(source), server.url + "/tree", TREE)) == 0


def test_what_has_changed_on_either_side_is_sent(tmp_path: Path) -> None:
    source = tree(tmp_path)
    with counted(KEEPS_NONE, tmp_path) as server:
        copy(str(source), server.url + "/tree", TREE)
        (source / "1").write_bytes(random_bytes(101))  # as many bytes, and another time
        server.times["/tree/2"] = "20250101010101"
        server.files["/tree/3"] = b"cut"
        assert moved(copy(str(source), server.url + "/tree", TREE)) == 3
        assert {name: server.files[f"/tree/{name}"] for name in "01234"} == {
            name: (source / name).read_bytes() for name in "01234"
        }


def test_another_server_is_not_the_same(tmp_path: Path) -> None:
    source = tree(tmp_path)
    for _ in range(2):
        with counted(KEEPS_NONE, tmp_path) as server:
            assert moved(copy(str(source), server.url + "/tree", TREE)) == 5


def test_always_is_always(tmp_path: Path) -> None:
    source = tree(tmp_path)
    with counted(KEEPS_NONE, tmp_path) as server:
        copy(str(source), server.url + "/tree", TREE)
        always = CopyOptions(recursive=True, overwrite="always")
        assert moved(copy(str(source), server.url + "/tree", always)) == 5
