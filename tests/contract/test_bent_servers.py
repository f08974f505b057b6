"""Whatever a server says, the result is the right bytes or an error, soon, and in little memory.

MPX_FOREIGN is how many servers are bent for each direction; `make foreign` tries thousands.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from contract.bent import RESUMED_BYTES, Case, cases
from contract.bent_checks import (
    FILES,
    check_download,
    check_list,
    check_tree,
    check_tree_up,
    check_upload,
    folder_of,
    is_right,
)
from hypothesis import Phase, event, given, note, settings
from interop.mpx_process import measured

from mpx.endpoints.ftp.mode_s import worker
from mpx.engine import file_transfer, retry

EXAMPLES = int(os.environ.get("MPX_FOREIGN", "25"))
MOST_KIB = 100_000

phases = (Phase.explicit, Phase.reuse, Phase.generate)  # cases are small; to make them smaller takes minutes
several = settings(max_examples=EXAMPLES, derandomize="MPX_FOREIGN" not in os.environ, phases=phases)
few = settings(several, max_examples=max(EXAMPLES // 8, 3))


@pytest.fixture(autouse=True)
def in_haste(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait less between attempts, and have parts of small files, which are resumed too."""
    monkeypatch.setattr(file_transfer, "SMALL_FILE_BYTES", RESUMED_BYTES)
    monkeypatch.setattr(retry, "FIRST_WAIT_S", 0.01)
    monkeypatch.setattr(worker, "FIRST_PIECE", 256 * 1024)
    monkeypatch.setattr(worker, "WORTH_CONNECTING", 256 * 1024)


@pytest.fixture
def folders() -> Iterator[Iterator[Path]]:
    """A new empty folder for each copy."""
    top = Path(tempfile.mkdtemp(prefix="mpx-bent-"))

    def each() -> Iterator[Path]:
        while True:
            yield Path(tempfile.mkdtemp(dir=top))

    yield each()
    shutil.rmtree(top)


@several
@given(case=cases("down"))
def test_a_download(folders: Iterator[Path], case: Case) -> None:
    event(type(check_download(next(folders), case)).__name__)


@several
@given(case=cases("tree"))
def test_a_tree(folders: Iterator[Path], case: Case) -> None:
    event(type(check_tree(next(folders), case)).__name__)


@several
@given(case=cases("up"))
def test_an_upload(folders: Iterator[Path], case: Case) -> None:
    event(type(check_upload(next(folders), case)).__name__)


@several
@given(case=cases("tree up"))
def test_a_tree_to_a_server(folders: Iterator[Path], case: Case) -> None:
    event(type(check_tree_up(next(folders), case)).__name__)


@several
@given(case=cases("list"))
def test_a_list(case: Case) -> None:
    event(type(check_list(case)).__name__)


@few
@given(case=cases("tree"))
def test_the_command_needs_little_memory(folders: Iterator[Path], case: Case) -> None:
    """As a process of its own, whose exit code is right too."""
    folder = next(folders)
    with case.server(FILES) as server:
        words = ("copy", "-r", *case.words, f"{server.url}/d", folder / "d")
        code, said, kib = measured(*words)
    note(f"{code}, {said}")
    assert code in (0, *range(2, 11)), said
    assert "Traceback" not in said
    assert "unexpected" not in said
    assert kib < MOST_KIB
    got = folder_of(folder)
    assert all(is_right(case, server, got[name], FILES.get(f"/{name}", b"no such file")) for name in got)
    if code == 0 and not case.bends_any("line", "listing"):
        assert {f"/{name}" for name in got} == set(FILES)
