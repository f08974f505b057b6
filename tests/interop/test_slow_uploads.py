"""Uploads in MODE S to a server that reads slowly: it is waited for as long as it reads at all."""

import socket
import time
from pathlib import Path

import pytest
from interop.scripted_server import Dialogue
from interop.storing_server import StoringDialogue, StoringServer
from sites import make

import mpx

READ_BYTES, EVERY_S = 25_000, 0.1
TIMEOUT_S = 3.0
SIZE = 3_000_000  # what the kernel holds of it, and what it does not, both take longer than the time-out


def small_port(dialogue: Dialogue, _: str) -> str:
    """Offer a port at which the kernel takes little ahead of whoever reads."""
    port = dialogue.listen()
    assert dialogue._listener is not None
    dialogue._listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, READ_BYTES)
    return f"229 go (|||{port}|)"


def store_slowly(dialogue: Dialogue, name: str) -> str:
    assert isinstance(dialogue, StoringDialogue)
    content = bytearray()
    with dialogue.open_data() as data:
        dialogue.say("150 go")
        while came := data.recv(READ_BYTES):
            content += came
            time.sleep(EVERY_S)
    dialogue.server.files[name] = bytes(content)
    return "226 done"


def never_reads(dialogue: Dialogue, _: str) -> None:
    with dialogue.open_data():
        dialogue.say("150 go")
        dialogue.control.recv(1)


def test_a_server_that_reads_slowly_is_waited_for(tmp_path: Path) -> None:
    source = make(tmp_path / "up", SIZE)
    with StoringServer({"EPSV": small_port, "STOR": store_slowly}, mode_e=False) as server:
        mpx.copy(str(source), f"{server.url}/up", mpx.CopyOptions(timeout_s=TIMEOUT_S, retries=0))
        assert server.files["/up"] == source.read_bytes()
        assert server.heard.count("STOR") == 1


@pytest.mark.parametrize("size", [300_000, 8_000_000])
def test_one_that_reads_nothing_is_not(size: int, tmp_path: Path) -> None:
    source = make(tmp_path / "up", size)
    with StoringServer({"EPSV": small_port, "STOR": never_reads}, mode_e=False) as server:
        with pytest.raises(mpx.TransferTimeout):
            mpx.copy(str(source), f"{server.url}/up", mpx.CopyOptions(timeout_s=1.0, retries=0))
        assert list(server.files) == []


def test_one_that_refuses_and_stays_is_believed(tmp_path: Path) -> None:
    """It says why it reads no more, and leaves the data connection open."""

    def full(dialogue: Dialogue, _: str) -> None:
        with dialogue.open_data():
            dialogue.say("150 go")
            dialogue.say("552 the disk is full")
            dialogue.control.recv(1)

    source = make(tmp_path / "up", 8_000_000)
    with StoringServer({"EPSV": small_port, "STOR": full}, mode_e=False) as server:
        with pytest.raises(mpx.NoSpace, match="the disk is full"):
            mpx.copy(str(source), f"{server.url}/up", mpx.CopyOptions(timeout_s=1.0, retries=0))
        assert list(server.files) == []
