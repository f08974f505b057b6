"""Parts whose answer does not come, beside others that are stored: others store them, and nobody waits."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from s3.lying_s3 import IN_PARTS, KEY, up
from s3.scripted_s3 import Asked, FallSilent, ScriptedS3

from mpx.endpoints.s3 import part_scheduler

WAITS_S = 40.0  # --timeout: far longer than a copy takes that does not wait for it


@pytest.fixture(autouse=True)
def is_late_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(part_scheduler, "STUCK_PART_S", 0.2)


class SilentOnce:
    """Says nothing to one part, whose bytes it has; it was stored, or it was not."""

    def __init__(self, which: Callable[[Asked], bool], server: ScriptedS3, *, is_stored: bool) -> None:
        self._which, self._server, self._is_stored = which, server, is_stored
        self.silent: list[Asked] = []

    def __call__(self, asked: Asked) -> None:
        if asked.what == "part" and not self.silent and self._which(asked):
            self.silent.append(asked)
            if self._is_stored:
                self._server._answer(asked)
            raise FallSilent


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("is_stored", [True, False], ids=["stored", "lost"])
@pytest.mark.parametrize("number", [2, 3])
def test_a_part_that_is_not_answered_is_stored_by_another(
    number: int, is_stored: bool, server: ScriptedS3, tmp_path: Path
) -> None:
    silent = SilentOnce(lambda asked: asked.query["partNumber"] == str(number), server, is_stored=is_stored)
    server.instead = silent
    began_s = time.monotonic()
    outcome = up(server, tmp_path, IN_PARTS, timeout_s=WAITS_S, retries=0, streams=4)
    assert outcome.code == 0, outcome
    assert time.monotonic() - began_s < WAITS_S
    assert silent.silent
    assert server.objects[KEY] == IN_PARTS
    sent = [asked.query["partNumber"] for asked in server.asked if asked.what == "part"]
    assert sent.count(str(number)) == 2
