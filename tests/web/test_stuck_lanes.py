"""Lanes whose server stops answering, beside others that go on: no copy waits for what it has, or can get."""

import random
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from web.lying import NAME, copied, down, exact
from web.scripted_http import Answer, Asked, Exchange, Scripted, ScriptedHttp

from mpx.endpoints.web.goodput import OVER_S, Goodput
from mpx.endpoints.web.request_cost import RequestCost
from mpx.engine.range_scheduler import stuck_s

WAITS_S = 40.0  # --timeout: far longer than a copy takes that does not wait for it
CONTENT = random.Random(3).randbytes(24_000_000)


class Once:
    """Has one request of a kind answered so, and all others as usual; from any thread."""

    def __init__(self, is_it: Callable[[Asked], bool], then: Scripted) -> None:
        self._is_it, self._then = is_it, then
        self._lock, self.was_asked = threading.Lock(), False

    def __call__(self, exchange: Exchange) -> Answer | None:
        with self._lock:
            is_first = not self.was_asked and self._is_it(exchange.asked)
            self.was_asked |= is_first
        return self._then(exchange) if is_first else exchange.usual()


def holds(exchange: Exchange) -> None:
    exchange.hold()


def holds_within(exchange: Exchange) -> None:
    exchange.say(exchange.usual().packed()[:1000])
    exchange.hold()


def trickles(exchange: Exchange) -> None:
    """A byte now and then, so that no time-out ends it."""
    for byte in exchange.usual().packed():
        exchange.say(bytes([byte]))
        if exchange.server.over.wait(0.1):
            break
    exchange.is_over = True


def is_in_the_middle(asked: Asked) -> bool:
    return asked.range is not None and asked.range[0] > len(CONTENT) // 4


def is_last(asked: Asked) -> bool:
    return asked.range is not None and asked.range[1] >= len(CONTENT)


def soon(server: ScriptedHttp, tmp_path: Path, **options: object) -> bool:
    """Download, and tell whether nothing was waited for in vain; the copy is exact."""
    began_s = time.monotonic()
    outcome = down(server, tmp_path, timeout_s=WAITS_S, retries=0, **options)
    assert outcome.code == 0, outcome
    assert exact(server, tmp_path)
    return time.monotonic() - began_s < WAITS_S


@pytest.mark.parametrize("which", [is_in_the_middle, is_last], ids=["middle", "last"])
@pytest.mark.parametrize("how", [holds, holds_within, trickles])
@pytest.mark.parametrize("streams", [2, 4])
def test_a_range_that_does_not_come_is_had_elsewhere(
    streams: int, how: Scripted, which: Callable[[Asked], bool], tmp_path: Path
) -> None:
    stuck = Once(which, how)
    with ScriptedHttp({"GET": stuck}, {NAME: CONTENT}) as server:
        assert soon(server, tmp_path, streams=streams)
        assert stuck.was_asked


def test_what_is_asked_behind_the_last_range_is_not_waited_for(tmp_path: Path) -> None:
    """All data are here: what the file is now can be asked anew."""
    ranged: list[int] = []

    def is_behind_a_range(asked: Asked) -> bool:
        return asked.connection in ranged

    def notes(exchange: Exchange) -> Answer:
        if exchange.asked.range:
            ranged.append(exchange.asked.connection)
        return exchange.usual()

    stuck = Once(is_behind_a_range, holds)
    with ScriptedHttp({"GET": notes, "HEAD": stuck}, {NAME: CONTENT}) as server:
        assert soon(server, tmp_path, streams=2)
        assert stuck.was_asked


def test_many_files_beside_a_lane_that_is_stuck(tmp_path: Path) -> None:
    files = {f"/folder/{number}": CONTENT[number : number + 2_000_000] for number in range(12)}
    stuck = Once(lambda asked: asked.path == "/folder/7", holds)
    with ScriptedHttp({"GET": stuck}, files) as server:
        began_s = time.monotonic()
        outcome = copied(
            f"{server.dav}/folder", tmp_path / "to", recursive=True, timeout_s=WAITS_S, retries=0, streams=4
        )
        assert outcome.code == 0, outcome
        assert time.monotonic() - began_s < WAITS_S
        assert stuck.was_asked
        for path, content in files.items():
            assert (tmp_path / "to" / path.rpartition("/")[2]).read_bytes() == content


def test_who_is_silent_is_taken_for_slower_and_slower() -> None:
    cost = RequestCost()
    goodput = Goodput(cost)
    answer_s = 3.0
    cost.note(answer_s, 4 << 20, 1.0)
    assert goodput.guess_after(stuck_s(answer_s) - 0.1) == goodput.guess
    assert goodput.guess_after(20.0) == pytest.approx(goodput.guess * OVER_S / 20.0)
