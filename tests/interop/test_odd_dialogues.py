"""Servers that say other than RFC 959 has it, or at another time, and mean well; other clients go on."""

import socket
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from interop.scripted_server import Dialogue, Script, ScriptedServer
from interop.storing_server import FEATURES, StoringDialogue, StoringServer
from sites import make

import mpx
from mpx.errors import (
    AuthenticationError,
    ConnectionLost,
    DestinationError,
    MpxError,
    SourceError,
)

Answer = Callable[[Dialogue, str], str | None]
QUICK = mpx.CopyOptions(retries=2, timeout_s=5, connect_timeout_s=5)
MODE_E = (*FEATURES, "ERET", "PARALLEL")
LONG = bytes(range(256)) * 160_000  # in several parts


def no_mode_e(_: Dialogue, mode: str) -> str:
    return "504 no" if mode == "E" else "200 ok"


def fetch(script: Script, near: Path, content: bytes = b"x" * 300_000, host: str = "127.0.0.1") -> list[str]:
    """Copy the file of a server without MODE E; return the verbs that it has heard."""
    with ScriptedServer({"MODE": no_mode_e, **script}, content, host) as server:
        mpx.copy(f"{server.url}/file", str(near), QUICK)
        assert near.read_bytes() == content
        return server.heard


def first_times(count: int, answer: Answer, usual: Answer) -> Answer:
    """Answer so the first times, and then as usual."""
    left = [answer] * count

    def say(dialogue: Dialogue, argument: str) -> str | None:
        return (left.pop() if left else usual)(dialogue, argument)

    return say


# --- logging in ----------------------------------------------------------------------------------------


class Telnet(StoringDialogue):
    """Negotiates options of Telnet before every reply, and says that it is alive."""

    def say(self, text: str) -> None:
        self.control.sendall(b"\xff\xfb\x01\xff\xfd\x18\xff\xf1")
        super().say(text)


@pytest.mark.parametrize("mode_e", [False, True])
def test_telnet_before_replies(mode_e: bool, tmp_path: Path) -> None:
    content = make(tmp_path / "up", 300_000).read_bytes()
    server = StoringServer(files={"/down": content}, mode_e=mode_e, checksums=True)
    server.dialogue = Telnet
    with server:
        mpx.copy(str(tmp_path / "up"), f"{server.url}/up", QUICK)
        mpx.copy(f"{server.url}/down", str(tmp_path / "down"), QUICK)
        assert (tmp_path / "down").read_bytes() == server.files["/up"] == content


@pytest.mark.parametrize(
    "script",
    [
        {"banner": lambda *_: "230 you are in", "USER": lambda *_: "503 you are in"},
        {"USER": lambda *_: "331 password?", "PASS": lambda *_: "202 needless"},
        {"TYPE": lambda *_: "200 ok\r\n"},  # an empty line follows
    ],
)
def test_whoever_is_let_in_goes_on(script: Script, tmp_path: Path) -> None:
    fetch(script, tmp_path / "file")


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ({"USER": lambda *_: "530 Non-anonymous sessions must use encryption."}, "FTP in the clear only"),
        ({"USER": lambda *_: "503 Use AUTH first."}, "FTP in the clear only"),
        ({"USER": lambda *_: "550 SSL/TLS required on the control channel"}, "FTP in the clear only"),
        ({"USER": lambda *_: "421 Sorry, cleartext sessions are not accepted"}, "FTP in the clear only"),
        ({"USER": lambda *_: "332 Need account for login"}, "an account"),
        ({"USER": lambda *_: "331 who?", "PASS": lambda *_: "332 Need account"}, "an account"),
        ({"USER": lambda *_: "331 who?", "PASS": lambda *_: "331 once more"}, "once more"),
        ({"USER": lambda *_: "331 who?", "PASS": lambda *_: "530 too many failed logins"}, "MPX_PASSWORD"),
    ],
)
def test_why_nobody_is_let_in(script: Script, words: str, tmp_path: Path) -> None:
    with pytest.raises(AuthenticationError, match=words):
        fetch(script, tmp_path / "file")


def test_a_server_that_is_full_is_asked_again(tmp_path: Path) -> None:
    full = "530 Sorry, the maximum number of clients (5) are already connected"
    fetch({"USER": first_times(3, lambda *_: full, Dialogue._user)}, tmp_path / "file")


@pytest.mark.parametrize("said", ["522 SSL/TLS required on the data channel", "521 PROT P: no connection"])
def test_data_that_go_encrypted_only(said: str, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="FTP in the clear only"):
        fetch({"RETR": lambda *_: said}, tmp_path / "file")


# --- replies to transfers --------------------------------------------------------------------------------


def without_beginning(dialogue: Dialogue, _: str) -> str:
    with dialogue.open_data() as data:
        data.sendall(dialogue.server.content)
    return "226 done"


def nothing_to_send(dialogue: Dialogue, _: str) -> str:
    dialogue.close()
    return "226 nothing to send"


def test_data_need_no_preliminary_reply(tmp_path: Path) -> None:
    fetch({"RETR": without_beginning}, tmp_path / "file")
    fetch({"RETR": without_beginning}, tmp_path / "empty", b"")


@pytest.mark.parametrize("answer", [nothing_to_send, lambda *_: "226 nothing to send"])
def test_an_empty_file_needs_no_connection(answer: Answer, tmp_path: Path) -> None:
    fetch({"RETR": answer}, tmp_path / "file", b"")


@pytest.mark.parametrize("answer", [nothing_to_send, lambda *_: "226 nothing to send"])
def test_only_an_empty_file_does(answer: Answer, tmp_path: Path) -> None:
    with pytest.raises(MpxError, match="ended after 0 bytes"):
        fetch({"RETR": answer}, tmp_path / "file")
    assert list(tmp_path.iterdir()) == []


def cut_twice(dialogue: Dialogue, argument: str) -> str | None:
    assert isinstance(dialogue, StoringDialogue)
    said = dialogue._retr(argument)
    return "426 you closed it\r\n226 closed" if said is not None and said.startswith("426") else said


NO_SIZES: Script = {
    "FEAT": lambda *_: "211-f\r\n REST STREAM\r\n211 end",
    "SIZE": lambda *_: "502 no",
    "MLST": lambda *_: "502 no",
    "MDTM": lambda *_: "213 20240101000000",
}


def test_a_file_of_unknown_size_is_not_empty_because_nothing_comes(tmp_path: Path) -> None:
    def refused(dialogue: Dialogue, _: str) -> str:
        dialogue.close()
        return "226 done"

    def silent(dialogue: Dialogue, _: str) -> None:
        dialogue.say("226 done")
        with dialogue.open_data() as data:
            data.recv(1)  # until the client gives it up

    def reset(dialogue: Dialogue, _: str) -> str:
        with dialogue.open_data() as data:
            data.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        return "226 done"

    options = mpx.CopyOptions(retries=0, timeout_s=1, connect_timeout_s=5)
    for retrieve in (refused, silent, *[reset] * 8):
        script: Script = {"MODE": no_mode_e, "RETR": retrieve, **NO_SIZES}
        with ScriptedServer(script, b"x" * 1000) as server, pytest.raises(MpxError) as told:
            mpx.copy(f"{server.url}/file", str(tmp_path / "file"), options)
        assert told.value.exit_code in (6, 7)
        assert not (tmp_path / "file").exists()


def test_2xx_before_and_after_the_data(tmp_path: Path) -> None:
    """Each of many files in one session has its own answers."""

    def twice(dialogue: Dialogue, _: str) -> str:
        dialogue.say("250 here it comes")
        with dialogue.open_data() as data:
            data.sendall(dialogue.server.content)
        return "226 done"

    with ScriptedServer({"MODE": no_mode_e, "RETR": twice}, b"x" * 5000) as server:
        report = mpx.copy([f"{server.url}/file"] * 12, tmp_path, QUICK, targets=list("abcdefghijkl"))
    assert [file.read_bytes() for file in tmp_path.iterdir()] == [b"x" * 5000] * 12
    assert [note for note in report.notes if "trying again" in note] == []


def test_a_cut_may_be_answered_twice(tmp_path: Path) -> None:
    script: Script = {"RETR": cut_twice, "MODE": no_mode_e}
    with StoringServer(script, files={"/file": LONG}) as server:
        mpx.copy(f"{server.url}/file", str(tmp_path / "file"), mpx.CopyOptions(retries=0, timeout_s=20))
    assert (tmp_path / "file").read_bytes() == LONG


def stored_but_half(dialogue: Dialogue, argument: str) -> str:
    assert isinstance(dialogue, StoringDialogue)
    dialogue._stor(argument)
    return "350 and then?"


def test_half_a_success_is_none(tmp_path: Path) -> None:
    source = make(tmp_path / "x", 1000)
    with StoringServer({"STOR": stored_but_half}) as server:
        with pytest.raises(DestinationError, match="and then"):
            mpx.copy(str(source), f"{server.url}/x", QUICK)
        assert "/x" not in server.files


# --- ports for data --------------------------------------------------------------------------------------


def closed(dialogue: Dialogue, _: str) -> str:
    port = dialogue.listen()
    dialogue.close()
    return f"229 go (|||{port}|)"


def hang_up(dialogue: Dialogue, _: str) -> None:
    dialogue.control.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize(
    "extended", [closed, hang_up, lambda *_: "229 go (|||1|)", lambda *_: "229 go (|||0|)"]
)
def test_pasv_where_epsv_leads_nowhere(extended: Answer, tmp_path: Path) -> None:
    heard = fetch({"EPSV": extended}, tmp_path / "file")
    sessions = heard.count("USER") - (extended is hang_up)  # mostly one; a busy machine may have a second one
    assert 1 <= heard.count("EPSV") <= sessions


def test_pasv_where_epsv_is_never_answered(tmp_path: Path) -> None:
    with ScriptedServer({"MODE": no_mode_e, "EPSV": lambda *_: None}) as server:
        options = mpx.CopyOptions(retries=1, timeout_s=2, recursive=True)
        mpx.copy(f"{server.url}/folder", str(tmp_path / "folder"), options)
        assert (tmp_path / "folder/file").read_bytes() == server.content


def test_neither_way_leads_anywhere(tmp_path: Path) -> None:
    with pytest.raises(ConnectionLost, match=r"cannot connect|closed the connection"):
        fetch({"EPSV": closed, "PASV": hang_up}, tmp_path / "file")


@pytest.mark.parametrize("verb", ["PORT", "OPTS"])
def test_mode_s_where_mode_e_is_not_to_be_had(verb: str, tmp_path: Path) -> None:
    with ScriptedServer({verb: lambda *_: "500 Illegal command"}) as server:
        report = mpx.copy(f"{server.url}/file", str(tmp_path / "file"), QUICK)
        assert (tmp_path / "file").read_bytes() == server.content
        assert verb != "PORT" or any("Illegal command" in note for note in report.notes), report.notes


@pytest.mark.parametrize("code", [500, 501, 504, 550, 451])
@pytest.mark.parametrize(
    "streams", [{"streams": 4, "max_sessions": 1}, {"initial_streams": 16, "max_sessions": 2}]
)
def test_one_connection_for_each_session_where_more_are_refused(
    streams: dict[str, int], code: int, tmp_path: Path
) -> None:
    def options(_: Dialogue, text: str) -> str:
        several.append("Parallelism=1," not in text)
        return f"{code} no" if several[-1] else "200 ok"

    several: list[bool] = []
    with StoringServer({"OPTS": options}, files={"/down": LONG}, mode_e=True, features=MODE_E) as server:
        report = mpx.copy(f"{server.url}/down", str(tmp_path / "down"), mpx.CopyOptions(retries=0, **streams))
    assert (tmp_path / "down").read_bytes() == LONG
    assert several[0]
    assert any("one connection for each session" in note for note in report.notes), report.notes


# --- facts -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "said", ["250 type=file;size={}; /file", "250-type=file;size={}; /file\r\n250 end", "250 it is there"]
)
def test_facts_in_one_line(said: str, tmp_path: Path) -> None:
    content = b"y" * 1000
    fetch({"MLST": lambda *_: said.format(len(content))}, tmp_path / "file", content)
