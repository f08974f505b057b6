"""Servers that lead to several others at once: a worker keeps few connections, and mixes up no answers."""

import itertools
from contextlib import ExitStack
from pathlib import Path

import pytest
from web.lying import copied
from web.scripted_http import Answer, Exchange, ScriptedHttp

FEW, LARGE_BYTES = 4, 6_000_000


@pytest.mark.parametrize("streams", [1, 3])
@pytest.mark.parametrize(("count", "size_bytes"), [(60, 200_000), (FEW, LARGE_BYTES)], ids=["small", "large"])
def test_each_file_is_led_to_one_of_four(count: int, size_bytes: int, streams: int, tmp_path: Path) -> None:
    """All files have the same size, so that only the order of answers tells which is which."""
    files = {f"/folder/{n}": bytes([n]) * size_bytes for n in range(count)}
    with ExitStack() as opened:
        mirrors = [opened.enter_context(ScriptedHttp({}, files)) for _ in range(4)]

        def lead(exchange: Exchange) -> Answer:
            path = exchange.asked.path
            return Answer(307, {"Location": f"{mirrors[int(path.rpartition('/')[2]) % 4].origin}{path}"})

        server = opened.enter_context(ScriptedHttp({"GET": lead}, files))
        to = tmp_path / "to"
        outcome = copied(f"{server.dav}/folder", to, recursive=True, streams=streams, retries=0)
        assert outcome.code == 0, outcome
        assert {path.name: path.read_bytes()[:1] for path in to.iterdir()} == {
            str(n): bytes([n]) for n in range(count)
        }
        assert all((to / str(n)).read_bytes() == files[f"/folder/{n}"] for n in range(count))


@pytest.mark.parametrize("streams", [1, 3])
def test_parts_are_led_to_one_of_four(streams: int, tmp_path: Path) -> None:
    """Each answer leads on to another one than the last."""
    files = {f"/folder/{n}": bytes([n]) * LARGE_BYTES for n in range(FEW)}
    numbers = itertools.count()
    with ExitStack() as opened:
        mirrors = [opened.enter_context(ScriptedHttp({}, files)) for _ in range(4)]

        def lead(exchange: Exchange) -> Answer:
            return Answer(307, {"Location": f"{mirrors[next(numbers) % 4].origin}{exchange.asked.path}"})

        server = opened.enter_context(ScriptedHttp({"GET": lead}, files))
        to = tmp_path / "to"
        outcome = copied(f"{server.dav}/folder", to, recursive=True, streams=streams, retries=0)
        assert outcome.code == 0, outcome
        assert all((to / str(n)).read_bytes() == files[f"/folder/{n}"] for n in range(FEW))
