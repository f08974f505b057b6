"""A server that is busy for a while is waited for, and the live view says so."""

import threading
from pathlib import Path

import pytest
from web.lying import NAME
from web.scripted_http import Answer, Exchange, ScriptedHttp

import mpx
from mpx.commands.progress import line_of
from mpx.report import Progress


@pytest.mark.parametrize("depth", ["0", "1"], ids=["first question", "listing"])
def test_a_server_that_is_busy_before_data_move(depth: str, tmp_path: Path) -> None:
    """It is until that is shown."""
    is_told = threading.Event()

    def answer(exchange: Exchange) -> Answer:
        is_asked = exchange.asked.headers.get("depth") == depth
        return Answer(503) if is_asked and not is_told.is_set() else exchange.usual()

    def shown(progress: Progress) -> None:
        if "the server is busy" in line_of(progress):
            is_told.set()

    with ScriptedHttp({"PROPFIND": answer}, {NAME: b"data"}) as server:
        options = mpx.CopyOptions(recursive=True, retries=10)
        mpx.copy(f"{server.dav}/folder", str(tmp_path / "to"), options, on_progress=shown)
    assert is_told.is_set()
    assert (tmp_path / "to" / NAME.rpartition("/")[2]).read_bytes() == b"data"
