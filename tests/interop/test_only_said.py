"""Uploads to servers that say that they renamed a file, and did not, or lost its bytes."""

from collections.abc import Callable
from pathlib import Path

import pytest
from interop.scripted_server import Dialogue
from interop.storing_server import FEATURES, StoringDialogue, StoringServer
from sites import make

from mpx import CopyOptions, copy
from mpx.errors import IntegrityError, MpxError, NotRenamed, PartialFailure

Answer = Callable[[Dialogue, str], str | None]


def storing(dialogue: Dialogue) -> StoringDialogue:
    assert isinstance(dialogue, StoringDialogue)
    return dialogue


def only_said(*_: object) -> str:
    return "250 renamed"


@pytest.mark.parametrize("is_there", [False, True])
@pytest.mark.parametrize("features", [FEATURES, ("MLST size*;",), ("SIZE",), ()])
def test_a_name_that_was_never_given(features: tuple[str, ...], is_there: bool, tmp_path: Path) -> None:
    source = make(tmp_path / "up", 1000)
    script: dict[str, Answer] = {"RNTO": only_said}
    with StoringServer(script, files={"/up": b"old"} if is_there else {}, features=features) as server:
        with pytest.raises(NotRenamed, match="did not"):
            copy(str(source), server.url + "/up")
        assert server.files.get("/up") == (b"old" if is_there else None)


def test_a_second_rename_that_is_only_said(tmp_path: Path) -> None:
    source, refused = make(tmp_path / "up", 1000), iter(["550 Permission denied", "250 ok"])

    def rename(dialogue: Dialogue, name: str) -> str:
        is_of_new = name == "/up" and "-old" not in (storing(dialogue).asked or "")
        return next(refused) if is_of_new else storing(dialogue)._rnto(name)

    with StoringServer({"RNTO": rename}, files={"/up": b"old"}) as server:
        with pytest.raises(NotRenamed):
            copy(str(source), server.url + "/up")
        assert server.files["/up"] == b"old"


def leaving(content: bytes) -> Answer:
    """Rename a file, and leave so much of it."""

    def rename(dialogue: Dialogue, name: str) -> str:
        reply = storing(dialogue)._rnto(name)
        storing(dialogue).server.files[name] = content
        return reply

    return rename


@pytest.mark.parametrize("features", [FEATURES, ("MLST size*;",), ("MLST type*;", "SIZE"), ("SIZE",)])
@pytest.mark.parametrize("left", [b"", b"x" * 999])
def test_what_lost_its_bytes_with_its_new_name_is_told(
    left: bytes, features: tuple[str, ...], tmp_path: Path
) -> None:
    for i in range(3):
        make(tmp_path / f"tree/{i}", 1000)
    with StoringServer({"RNTO": leaving(left)}, features=features, checksums=True) as server:
        with pytest.raises(MpxError, match=f"{len(left)} instead of 1000 bytes") as caught:
            copy(str(tmp_path / "tree/0"), server.url + "/0")
        assert caught.value.exit_code == 8
        with pytest.raises(PartialFailure):
            copy(str(tmp_path / "tree"), server.url + "/tree", CopyOptions(recursive=True))


def test_an_old_file_comes_back_when_the_new_one_lost_its_bytes(tmp_path: Path) -> None:
    refused = iter(["553 file exists"])

    def rename(dialogue: Dialogue, name: str) -> str:
        is_of_new = name == "/up" and "-old" not in (storing(dialogue).asked or "")
        return (
            next(refused, None) or leaving(b"")(dialogue, name)
            if is_of_new
            else storing(dialogue)._rnto(name)
        )

    with StoringServer({"RNTO": rename}, files={"/up": b"old"}) as server:
        with pytest.raises(IntegrityError, match="0 instead of 1000 bytes"):
            copy(str(make(tmp_path / "up", 1000)), server.url + "/up")
        assert server.files["/up"] == b"old"
