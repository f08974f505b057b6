"""Shared by all tests: finding the real GridFTP programs, and waiting for a condition."""

import time
from collections.abc import Callable

import pytest
from install_peers import find_peer


@pytest.fixture
def peer() -> Callable[[str], str]:
    return find_peer


@pytest.fixture
def eventually() -> Callable[..., None]:
    """`eventually(condition)` returns when the condition holds, and fails when it does not in 30 s."""

    def wait(condition: Callable[[], object], within_s: float = 30) -> None:
        deadline_s = time.monotonic() + within_s
        while not condition():
            assert time.monotonic() < deadline_s, "the condition did not come true"
            time.sleep(0.005)

    return wait
