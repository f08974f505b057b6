"""What labs have on disk, without any lab."""

import fcntl
import os
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


def test_a_copy_of_a_killed_process_that_is_about_to_become_a_program_holds_a_lab_for_a_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state, "LABS", tmp_path)
    copy = os.open(tmp_path / "a.lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(copy, fcntl.LOCK_EX)
    monkeypatch.setattr(state.time, "sleep", lambda _: os.close(copy))
    with state.locked("a", wait=False):
        assert (tmp_path / "a.lock").exists()


def test_who_builds_a_lab_keeps_others_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "LABS", tmp_path)
    monkeypatch.setattr(state, "PATIENCE_S", 0.05)
    with (
        state.locked("a"),
        pytest.raises(state.LabError, match="by another process"),
        state.locked("a", wait=False),
    ):
        pass
    assert not list(tmp_path.iterdir())
