"""Uploads in parts that were stopped, and go on at servers in trouble, or that have lost what was stored."""

import itertools
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from web.keeping import Keeping, is_probe, left_over
from web.lying import LARGE, NAME, up
from web.scripted_http import Answer, Exchange, Script, ScriptedHttp

import mpx
from mpx.errors import Interrupted

ASKED = frozenset({"resume"})  # by hand
OTHER = {"/folder/other": b""}


def stopped(server: ScriptedHttp, tmp_path: Path) -> tuple[str, str]:
    """Begin a copy that is stopped half way; return its source and destination."""
    (tmp_path / "src").write_bytes(LARGE)
    cancel = threading.Event()

    def stop(progress: mpx.Progress) -> None:
        if progress.bytes_done > len(LARGE) // 2:
            cancel.set()

    ends = str(tmp_path / "src"), f"{server.dav}{NAME}"
    with pytest.raises(Interrupted):
        mpx.copy(*ends, mpx.CopyOptions(rate_bps=40e6), on_progress=stop, cancel=cancel)
    return ends


@pytest.mark.parametrize("how", [503, 500, None])
@pytest.mark.parametrize("of_probe", [True, False], ids=["probe", "read back"])
def test_trouble_that_passes_costs_nothing_that_was_stored(
    of_probe: bool, how: int | None, tmp_path: Path
) -> None:
    """A server that is busy, or restarted, as a copy that was stopped asks whether it can go on."""
    keeping, trouble, times = Keeping(), threading.Event(), itertools.count(1)
    lasts = 1 if of_probe or how is None else 60  # requests: all samples of one attempt

    def bend(exchange: Exchange, usual: Callable[[Exchange], Answer | None]) -> Answer | None:
        if is_probe(exchange) != of_probe or not trouble.is_set():
            return usual(exchange)
        if next(times) == lasts:
            trouble.clear()
        exchange.body()
        return exchange.reset() if how is None else Answer(how)

    script: Script = {
        "PUT": lambda exchange: bend(exchange, keeping.put) if of_probe else keeping.put(exchange),
        "GET": lambda exchange: exchange.usual() if of_probe else bend(exchange, Exchange.usual),
    }
    with ScriptedHttp(script, OTHER) as server:
        ends = stopped(server, tmp_path)
        trouble.set()
        report = mpx.copy(*ends)
        assert not trouble.is_set()
        assert report.bytes.resumed > 0
        assert server.files[NAME] == LARGE


def test_a_copy_that_was_stopped_goes_on(tmp_path: Path) -> None:
    with ScriptedHttp(Keeping().script(), OTHER) as server:
        ends = stopped(server, tmp_path)
        assert len(left_over(server)) == 1
        report = mpx.copy(*ends)
        assert report.bytes.resumed > 0
        assert report.bytes.resumed + report.bytes.moved == len(LARGE)
        assert server.files[NAME] == LARGE
        assert left_over(server) == []


@pytest.mark.parametrize("is_gone", [True, False])
def test_what_was_lost_of_a_copy_that_was_stopped_is_sent_again(is_gone: bool, tmp_path: Path) -> None:
    with ScriptedHttp(Keeping().script(), OTHER) as server:
        ends = stopped(server, tmp_path)
        (name,) = left_over(server)
        if is_gone:
            del server.files[name]
        else:
            server.files[name] = server.files[name][:1000]
        assert mpx.copy(*ends).status == "done"
        assert server.files[NAME] == LARGE


def test_continue_is_refused_where_no_parts_are_stored(tmp_path: Path) -> None:
    (tmp_path / "src").write_bytes(b"small")
    with ScriptedHttp({}, OTHER) as server:
        outcome = up(server, tmp_path / "src", explicit=ASKED)
        assert (outcome.code, "--continue is not possible here" in outcome.text) == (2, True)
    with ScriptedHttp(Keeping().script(), OTHER) as server:
        assert up(server, tmp_path / "src", explicit=ASKED).code == 0
