"""Shared by all tests: finding the real GridFTP programs, and waiting for a condition."""

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

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


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """A folder that other accounts can reach, as a server started by root serves as `nobody`.

    The parents of pytest's own are closed to others again by every pytest that starts meanwhile.
    """
    folder = Path(tempfile.mkdtemp(prefix="mpx-test-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)
