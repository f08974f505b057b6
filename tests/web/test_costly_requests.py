"""Servers at which each request costs much beside its bytes: ranges grow until that is a small part."""

import random
from dataclasses import replace
from pathlib import Path

import pytest
from web.lying import NAME, down, exact
from web.scripted_http import Answer, Exchange, ScriptedHttp

from mpx.endpoints.web.fetch import FIRST_PIECE

LOOKS_UP_S = 1.0
CONTENT = random.Random(11).randbytes(24_000_000)


@pytest.mark.parametrize("ends", [False, True], ids=["kept", "ended"])
def test_ranges_grow_where_a_request_costs_much(ends: bool, tmp_path: Path) -> None:
    """Also where the server ends each connection with its answer, as those of Python do by themselves."""

    def answers(exchange: Exchange) -> Answer:
        if exchange.asked.method == "GET":
            exchange.server.over.wait(LOOKS_UP_S)
        usual = exchange.usual()
        return replace(usual.having(Connection="close"), ends=True) if ends else usual

    script = dict.fromkeys(("GET", "HEAD", "OPTIONS", "PROPFIND"), answers)
    with ScriptedHttp(script, {NAME: CONTENT}) as server:
        outcome = down(server, tmp_path, streams=4, timeout_s=60.0)
        assert outcome.code == 0, outcome
        assert exact(server, tmp_path)
        ranges = [each.range for each in server.asked("GET") if each.range]
    assert max(end - start for start, end in ranges) > 2 * FIRST_PIECE
