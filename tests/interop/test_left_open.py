"""Downloads in MODE S whose data connection the server leaves open: its word that all is sent ends them."""

import contextlib
from pathlib import Path

import pytest
from interop.scripted_server import Dialogue, ScriptedServer
from random_bytes import random_bytes

import mpx

SIZES = (1000, 20_000_000)  # the second one is brought in parts
IMPATIENT = {"timeout_s": 1.0, "retries": 0}


def server(opened: contextlib.ExitStack, size: int, *, says: str | None, short: int = 0) -> ScriptedServer:
    """A server of one file that sends all of it but `short` bytes."""

    def retrieve(dialogue: Dialogue, _: str) -> str | None:
        data = opened.enter_context(dialogue.open_data())
        dialogue.say("150 go")
        start, offsets[dialogue] = offsets.get(dialogue, 0), 0
        with contextlib.suppress(OSError):  # a part is cut off by the client
            data.sendall(dialogue.server.content[start : size - short])
        return says

    def restart(dialogue: Dialogue, offset: str) -> str:
        offsets[dialogue] = int(offset)
        return "350 ok"

    offsets: dict[Dialogue, int] = {}
    no_e = {"MODE": lambda _, mode: "504 no" if mode == "E" else "200 ok", "CKSM": lambda *_: "502 no"}
    return ScriptedServer({"RETR": retrieve, "REST": restart, **no_e}, content=random_bytes(size))


@pytest.mark.parametrize("size", SIZES)
def test_what_is_complete_and_said_to_be_is_whole(size: int, tmp_path: Path) -> None:
    with contextlib.ExitStack() as opened, server(opened, size, says="226 done") as there:
        mpx.copy(f"{there.url}/file", str(tmp_path / "file"), mpx.CopyOptions(**IMPATIENT))
        assert (tmp_path / "file").read_bytes() == there.content


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(("says", "short"), [(None, 0), ("226 done", 1), ("451 no", 0)])
def test_what_is_not_complete_or_not_said_to_be_is_not(
    says: str | None, short: int, size: int, tmp_path: Path
) -> None:
    with (
        contextlib.ExitStack() as opened,
        server(opened, size, says=says, short=short) as there,
        pytest.raises((mpx.TransferTimeout, mpx.ConnectionLost)),
    ):
        mpx.copy(f"{there.url}/file", str(tmp_path / "file"), mpx.CopyOptions(**IMPATIENT))
    assert not (tmp_path / "file").exists()
