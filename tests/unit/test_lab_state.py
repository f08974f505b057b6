"""What labs have on disk, without any lab."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from mpx_lab import state


def test_labs_that_come_and_go_at_once_are_not_in_each_others_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state, "LABS", tmp_path / "labs")

    def come_and_go(lab_id: str) -> None:
        for _ in range(300):
            with state.locked(lab_id):
                state.folder_of(lab_id).mkdir()
                state.folder_of(lab_id).rmdir()

    with ThreadPoolExecutor(4) as labs:
        list(labs.map(come_and_go, ["a", "b", "c", "c"]))
    assert not list(state.LABS.iterdir())
