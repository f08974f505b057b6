"""A file whose transfer always breaks: it has failed, alone; the others are copied."""

import posixpath
import select
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from interop.storing_server import FEATURES, StoringDialogue, StoringServer

from mpx import CopyOptions, copy
from mpx.engine.file_queue import FileQueue
from mpx.errors import ConnectionLost, MpxError, PartialFailure
from mpx.transfer.commit import Committer

NAMES = ["a", "bad", "c", "d/e", "d/f"]
FILES = {f"/tree/{name}": name.encode() * 1000 for name in NAMES}
OPTIONS = CopyOptions(recursive=True, retries=1, timeout_s=10)


def gone(dialogue: StoringDialogue) -> None:
    dialogue.cut()


def cut_off(dialogue: StoringDialogue) -> str:
    with dialogue.open_data():
        dialogue.say("150 go")
    return "426 the data connection was lost"


Broken = Callable[[StoringDialogue], str | None]
breaks = pytest.mark.parametrize("broken", [gone, cut_off])
LONG_ENOUGH = 14  # sessions in a row without anything new: each of two files is tried thrice
modes = pytest.mark.parametrize("mode_e", [True, False], ids=["MODE E", "MODE S"])


def server_for(broken: Broken, words: tuple[str, ...], *, mode_e: bool) -> StoringServer:
    """Return a server at which a transfer of what has one of these words in its name breaks."""

    def breaking(dialogue: StoringDialogue, argument: str) -> str | None:
        if any(word in posixpath.basename(argument) for word in words):
            return broken(dialogue)
        return dialogue.answer(dialogue.verb, argument)

    verbs = ("RETR", "ERET", "STOR", "ESTO")
    return StoringServer(dict.fromkeys(verbs, breaking), mode_e=mode_e)


@pytest.fixture(autouse=True)
def in_haste(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mpx.engine.retry.FIRST_WAIT_S", 0.01)


def busy(_: StoringDialogue) -> str:
    return "450 busy, try again"


@modes
@pytest.mark.parametrize("answer", [busy, gone])
@pytest.mark.parametrize("verb", ["CKSM", "RNTO"])
def test_an_upload_that_cannot_be_finished(verb: str, answer: Broken, mode_e: bool, tmp_path: Path) -> None:
    def finishing(dialogue: StoringDialogue, argument: str) -> str | None:
        return answer(dialogue) if "bad" in argument else dialogue.answer(verb, argument)

    for name, content in FILES.items():
        (tmp_path / name[1:]).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name[1:]).write_bytes(content)
    with StoringServer({verb: finishing}, mode_e=mode_e, checksums=True) as server:
        with pytest.raises(PartialFailure, match="1 of 5 files were not copied"):
            copy(str(tmp_path / "tree"), f"{server.url}/tree", OPTIONS)
        assert {name for name in server.files if "bad" not in name} == FILES.keys() - {"/tree/bad"}
        assert "/tree/bad" not in server.files


@modes
def test_a_file_that_fails_before_the_next_is_listed(
    mode_e: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That no other is known yet does not make it the only one."""
    first: list[str] = []
    has_failed, put, failed = threading.Event(), FileQueue.put, Committer.failed

    def put_slowly(queue: FileQueue, *arguments: Any) -> None:
        assert not queue.listed_files or has_failed.wait(30)
        put(queue, *arguments)

    def fail(committer: Committer, *arguments: Any) -> None:
        failed(committer, *arguments)
        has_failed.set()

    def summing(dialogue: StoringDialogue, argument: str) -> str | None:
        first.append(argument)
        if argument != first[0]:
            return dialogue.answer("CKSM", argument)
        gone(dialogue)
        return None

    monkeypatch.setattr(FileQueue, "put", put_slowly)
    monkeypatch.setattr(Committer, "failed", fail)
    write(tmp_path)
    with StoringServer({"CKSM": summing}, mode_e=mode_e, checksums=True) as server:
        with pytest.raises(PartialFailure, match="1 of 5 files were not copied"):
            copy(str(tmp_path / "tree"), f"{server.url}/tree", OPTIONS)
        assert len(server.files) == 4


@modes
def test_a_download_that_cannot_be_verified(mode_e: bool, tmp_path: Path) -> None:
    def summing(dialogue: StoringDialogue, argument: str) -> str:
        return busy(dialogue) if "bad" in argument else dialogue._cksm(argument)

    server = StoringServer({"CKSM": summing}, files=FILES, mode_e=mode_e, checksums=True)
    with server, pytest.raises(PartialFailure, match="1 of 5 files were not copied"):
        copy(f"{server.url}/tree", str(tmp_path / "tree"), OPTIONS)
    assert sorted(path.name for path in (tmp_path / "tree").rglob("*") if path.is_file()) == [
        "a",
        "c",
        "e",
        "f",
    ]


@modes
@breaks
def test_a_download(broken: Broken, mode_e: bool, tmp_path: Path) -> None:
    with server_for(broken, ("bad",), mode_e=mode_e) as server:
        server.files |= FILES
        server.folders |= {"/tree", "/tree/d"}
        with pytest.raises(PartialFailure, match="1 of 5 files were not copied"):
            copy(f"{server.url}/tree", str(tmp_path / "tree"), OPTIONS)
    found = {each for each in (tmp_path / "tree").rglob("*") if each.is_file() and each.suffix != ".part"}
    assert {f"/{each.relative_to(tmp_path)}": each.read_bytes() for each in found} == {
        name: content for name, content in FILES.items() if name != "/tree/bad"
    }


@modes
@breaks
def test_an_upload(broken: Broken, mode_e: bool, tmp_path: Path) -> None:
    write(tmp_path)
    with server_for(broken, ("bad",), mode_e=mode_e) as server:
        with pytest.raises(PartialFailure, match="1 of 5 files were not copied"):
            copy(str(tmp_path / "tree"), f"{server.url}/tree", OPTIONS)
        assert server.files == {name: content for name, content in FILES.items() if name != "/tree/bad"}


@modes
def test_where_every_file_breaks_the_copy_ends(mode_e: bool, tmp_path: Path) -> None:
    """Not file after file, which takes minutes for each."""
    many = [f"{i}" for i in range(200)]
    with server_for(gone, ("",), mode_e=mode_e) as server:
        server.files |= {f"/tree/{name}": b"123" for name in many}
        server.folders |= {"/tree"}
        with pytest.raises(ConnectionLost) as told:
            copy(f"{server.url}/tree", str(tmp_path / "tree"), OPTIONS)
    assert server.heard.count("USER") < 60
    assert isinstance(told.value, MpxError)


def write(here: Path) -> None:
    for name, content in FILES.items():
        file = here / name.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)


def test_sessions_that_are_lost_in_turns_with_and_without_a_proof(tmp_path: Path) -> None:
    """Ends of files are proven again and again, and nothing new comes: that is no reason to go on."""
    sessions: list[StoringDialogue] = []  # that retrieve
    sent: set[str] = set()
    latest = 0  # session that was sent anything new

    def retrieve(dialogue: StoringDialogue, argument: str) -> str | None:
        nonlocal latest
        if dialogue not in sessions:
            sessions.append(dialogue)
        _, start, size, _ = argument.split(" ", 3)
        number = sessions.index(dialogue)
        if number - latest < LONG_ENOUGH:
            is_missing = 300_000 in range(int(start), int(start) + int(size))
            if is_missing and number % 2 == 0:
                select.select([dialogue.control], [], [], 0.5)  # more may be queued now, behind the proofs
            if is_missing or number % 2:
                gone(dialogue)
                return None
            if argument not in sent:
                latest = number
        sent.add(argument)
        return dialogue.answer(dialogue.verb, argument)

    files = {f"/tree/{name}": bytes(700_001) for name in "ab"}
    features = (*FEATURES, "ERET")
    with (
        StoringServer({"ERET": retrieve}, files=files, features=features, mode_e=True) as server,
        pytest.raises(MpxError),
    ):
        copy(f"{server.url}/tree", str(tmp_path / "tree"), replace(OPTIONS, retries=2, streams=1))


def test_an_upload_whose_name_ends_the_session(tmp_path: Path) -> None:
    """What is asked before a batch goes out is due to one of its names, and seldom to the first."""

    def enter(dialogue: StoringDialogue, argument: str) -> str | None:
        if "\udcff" in argument:
            gone(dialogue)
            return None
        return dialogue.answer(dialogue.verb, argument)

    files = {f"/tree/{number}": b"0" * 1000 for number in range(40)}
    for name in [*files, "/tree/z\udcff"]:
        (tmp_path / "tree").mkdir(exist_ok=True)
        (tmp_path / name[1:]).write_bytes(b"0" * 1000)
    with StoringServer({"CWD": enter}, mode_e=True) as server:
        with pytest.raises(PartialFailure, match="1 of 41 files were not copied"):
            copy(str(tmp_path / "tree"), f"{server.url}/tree", replace(OPTIONS, streams=1))
        assert server.files == files
