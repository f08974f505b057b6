"""An upload is whole only when the server shows it; one that cannot be ended well ends with an error."""

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from interop.foreign_servers import PyFtpdLib
from interop.scripted_server import Dialogue
from interop.storing_server import FEATURES, StoringDialogue, StoringServer
from interop.upload_proof import (
    Answer,
    cutting,
    empty,
    keeping,
    longer,
    losing,
    options,
    short,
    silent,
    stores,
    upload,
)
from sites import make

from mpx import copy
from mpx.errors import (
    ConnectionLost,
    IntegrityError,
    MpxError,
    NoSpace,
    PartialFailure,
    TransferTimeout,
)


@pytest.mark.parametrize("change", [short, empty, longer])
@pytest.mark.parametrize("features", [FEATURES, ("MLST size*;",), ("SIZE",)])
def test_what_lost_its_end_or_grew_gets_no_name(
    change: Callable[[bytes, int], bytes], features: tuple[str, ...], tmp_path: Path
) -> None:
    source = make(tmp_path / "up", 100_000)
    script: dict[str, Answer] = {"STOR": keeping(change)}
    if "SIZE" not in features:
        script["SIZE"] = lambda *_: "502 not implemented"
    if features == ("SIZE",):
        script["MLST"] = lambda *_: "502 not implemented"
    with StoringServer(script, features=features) as server:
        server.files["/up"] = b"the old one"
        with pytest.raises(IntegrityError, match="although it was sent twice") as caught:
            upload(server, source)
        assert caught.value.exit_code == 8
        assert server.files["/up"] == b"the old one"
        assert stores(server) == 2


@pytest.mark.parametrize("change", [short, empty, longer])
def test_what_arrives_at_the_second_try_is_whole(
    change: Callable[[bytes, int], bytes], tmp_path: Path
) -> None:
    source = make(tmp_path / "up", 100_000)
    with StoringServer({"STOR": keeping(lambda data, n: change(data, n) if n == 0 else data)}) as server:
        report = upload(server, source)
        assert server.files == {"/up": source.read_bytes()}
        assert report.checksum["result"] == "unverified"
        assert any("sent again" in note for note in report.notes)


def test_an_empty_file_that_grew_is_no_empty_file(tmp_path: Path) -> None:
    source = make(tmp_path / "up", 0)
    with StoringServer({"STOR": keeping(longer)}) as server, pytest.raises(IntegrityError):
        upload(server, source)


def test_without_retries_it_is_not_sent_again(tmp_path: Path) -> None:
    source = make(tmp_path / "up", 1000)
    with StoringServer({"STOR": keeping(short)}) as server:
        with pytest.raises(IntegrityError):
            upload(server, source, retries=0)
        assert stores(server) == 1


def test_of_many_files_only_what_is_short_fails(tmp_path: Path) -> None:
    for i in range(300):
        make(tmp_path / f"tree/{i}", 10 + i)
    cut = os.urandom(500)
    (tmp_path / "tree/cut").write_bytes(cut)
    script = {"STOR": keeping(lambda data, _: data[:-1] if data == cut else data)}
    with StoringServer(script) as server:
        with pytest.raises(PartialFailure, match="1 of 301 files"):
            copy(str(tmp_path / "tree"), server.url + "/tree", options(recursive=True))
        for i in range(300):
            assert server.files[f"/tree/{i}"] == (tmp_path / f"tree/{i}").read_bytes()
        assert "/tree/cut" not in server.files


def test_a_checksum_decides_over_a_size_that_lies(tmp_path: Path) -> None:
    """A server may count the bytes of a text as it would send them."""
    source = make(tmp_path / "up", 1000)
    script: dict[str, Answer] = {"SIZE": lambda *_: "213 999"}
    with StoringServer(script, checksums=True) as server:
        report = upload(server, source)
        assert server.files == {"/up": source.read_bytes()}
        assert report.checksum["result"] == "verified"


@pytest.mark.parametrize("answer", ["550 SIZE not allowed in ASCII mode", "502 no", "213 many", "213 -1"])
def test_where_no_size_is_told_the_report_says_so(answer: str, tmp_path: Path) -> None:
    source = make(tmp_path / "up", 1000)
    script: dict[str, Answer] = {"SIZE": lambda *_: answer}
    with StoringServer(script, features=()) as server:
        report = upload(server, source)
        assert server.files == {"/up": source.read_bytes()}
        assert report.checksum["result"] == "unverified"
        assert any("does not tell the size" in note for note in report.notes)


def test_where_nobody_may_look_at_what_is_stored_the_report_says_so(tmp_path: Path) -> None:
    source = make(tmp_path / "up", 1000)

    def hidden(verb: str) -> Answer:
        def answer(dialogue: Dialogue, name: str) -> str:
            assert isinstance(dialogue, StoringDialogue)
            known: Callable[[str], str] = getattr(dialogue, verb)
            return "550 Permission denied" if ".part" in name else known(name)

        return answer

    script = {"SIZE": hidden("_size"), "MLST": hidden("_mlst"), "MDTM": hidden("_mdtm")}
    with StoringServer(script) as server:
        report = upload(server, source)
        assert server.files == {"/up": source.read_bytes()}
        assert any("does not tell the size" in note for note in report.notes)


def test_verified_files_cost_no_further_question_where_the_server_is_known(tmp_path: Path) -> None:
    source, asked = make(tmp_path / "up", 1000), []

    def size(dialogue: Dialogue, name: str) -> str:
        assert isinstance(dialogue, StoringDialogue)
        asked.append(name)
        return dialogue._size(name)

    with StoringServer({"SIZE": size}, features=(*FEATURES, "DSI"), checksums=True) as server:
        upload(server, source)
        assert not [name for name in asked if ".part" in name]


@pytest.mark.parametrize("mode_e", [False, True], ids=["S", "E"])
def test_a_checksum_does_not_prove_that_nothing_follows(mode_e: bool, tmp_path: Path) -> None:
    source = make(tmp_path / "up", 1000)
    with StoringServer({"STOR": keeping(longer)}, checksums=True, mode_e=mode_e) as server:
        with pytest.raises(IntegrityError, match="1001 of 1000 bytes"):
            upload(server, source, streams=1)
        assert server.files == {}
        assert stores(server) == 2


@pytest.mark.parametrize("times", [1, 1000])
def test_a_partial_file_that_is_gone(times: int, tmp_path: Path) -> None:
    """It is sent once more, and is no file whose size the server does not tell."""
    source = make(tmp_path / "up", 1000)

    def vanishing(dialogue: Dialogue, name: str) -> str:
        assert isinstance(dialogue, StoringDialogue)
        content = dialogue.receive()
        if dialogue.server.heard.count("STOR") > times:
            dialogue.server.files[name] = content
        return "226 Transfer complete."

    with StoringServer({"STOR": vanishing}) as server:
        if times > 1:
            with pytest.raises(IntegrityError, match="is not at the destination although it was sent twice"):
                upload(server, source)
            assert server.files == {}
        else:
            report = upload(server, source)
            assert server.files == {"/up": source.read_bytes()}
            assert not any("does not tell the size" in note for note in report.notes)


@pytest.mark.parametrize("store", [cutting, silent])
@pytest.mark.parametrize("checksums", [False, True])
def test_what_is_there_whole_is_not_sent_again(
    store: Callable[[Dialogue, str], None], checksums: bool, tmp_path: Path
) -> None:
    source = make(tmp_path / "up", 100_000)
    with StoringServer({"STOR": store}, checksums=checksums) as server:
        upload(server, source)
        assert server.files == {"/up": source.read_bytes()}
        assert stores(server) == 1


@pytest.mark.parametrize("retries", [0, 2])
def test_what_is_lost_every_time_is_sent_as_often_as_allowed(retries: int, tmp_path: Path) -> None:
    source = make(tmp_path / "up", 100_000)
    with StoringServer({"STOR": losing}) as server:
        with pytest.raises(ConnectionLost) as caught:
            upload(server, source, retries=retries)
        assert caught.value.exit_code == 6
        assert stores(server) == retries + 1
        assert server.files == {}


def test_what_cannot_be_shown_to_be_there_is_sent_as_often_as_allowed(tmp_path: Path) -> None:
    source = make(tmp_path / "up", 100_000)
    with StoringServer({"STOR": silent, "SIZE": lambda *_: "502 no"}, features=()) as server:
        with pytest.raises(TransferTimeout) as caught:
            upload(server, source, timeout_s=0.5)
        assert caught.value.exit_code == 7
        assert stores(server) == 3


def test_one_file_that_never_arrives_keeps_no_other_from_it(tmp_path: Path) -> None:
    for i in range(20):
        make(tmp_path / f"tree/{i}", 100 + i)

    def store(dialogue: Dialogue, name: str) -> str | None:
        assert isinstance(dialogue, StoringDialogue)
        return losing(dialogue, name) if "/.7.mpx" in name else dialogue._stor(name)

    with StoringServer({"STOR": store}) as server:
        with pytest.raises(PartialFailure, match="1 of 20 files"):
            copy(str(tmp_path / "tree"), server.url + "/tree", options(recursive=True))
        assert stores(server) <= 20 + 3
        assert len([name for name in server.files if ".part" not in name]) == 19


def test_a_checksum_that_never_matches_ends_the_copy(tmp_path: Path) -> None:
    source = make(tmp_path / "up", 1000)
    with StoringServer({"CKSM": lambda *_: "213 deadbeef"}, checksums=True) as server:
        with pytest.raises(IntegrityError):
            upload(server, source)
        assert stores(server) == 2
        assert server.files == {}


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        ("452 Insufficient storage", NoSpace),
        ("552 Exceeded", NoSpace),
        ("451 No space left on device", NoSpace),
        ("426 Failure writing: disk full", NoSpace),
        ("550 Disk quota exceeded", NoSpace),
        ("426 Transfer aborted", ConnectionLost),
    ],
)
@pytest.mark.parametrize("early", [False, True])
def test_a_full_disk_ends_the_copy(answer: str, error: type[MpxError], early: bool, tmp_path: Path) -> None:
    """The server says so when it has taken everything, or closes the data connection and says so then."""
    source = make(tmp_path / "up", 8_000_000)

    def store(dialogue: Dialogue, name: str) -> str:
        assert isinstance(dialogue, StoringDialogue)
        if early:
            with dialogue.open_data() as data:
                dialogue.say("150 go")
                data.recv(1000)
        else:
            dialogue.receive()
        return answer

    with StoringServer({"STOR": store}) as server:
        with pytest.raises(error):
            upload(server, source)
        assert stores(server) == (1 if error is NoSpace else 3)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A folder with room for 4 MiB."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a small disk")
    folder = tmp_path / "small"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m,mode=777", "mpx-test", folder], check=True)
    yield folder
    subprocess.run(["umount", "--lazy", folder], check=True)


@pytest.mark.peers
def test_a_real_server_with_a_full_disk(tmp_path: Path, with_password: None, small_disk: Path) -> None:
    source = make(tmp_path / "up", 6_000_000)
    with PyFtpdLib(small_disk) as server:
        # It says "426 None; transfer aborted.", or nothing at all where closing its file fails once more.
        with pytest.raises((ConnectionLost, NoSpace)):
            copy(str(source), server.url + "up", options())
        assert not (small_disk / "up").exists()
