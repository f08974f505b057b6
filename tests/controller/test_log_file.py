"""The log of a controller that runs for long."""

import logging
from pathlib import Path

import pytest
from mpx_controller.log_file import bounded_log
from running_controller import controller

from mpx.errors import UsageError


def test_a_log_has_a_size_at_most_and_keeps_what_is_newest(tmp_path: Path) -> None:
    file, most = tmp_path / "log", 10_000
    handler = bounded_log(file, most)
    for number in range(2000):
        handler.emit(logging.LogRecord("test", logging.INFO, "", 0, "line %05d", (number,), None))
    handler.close()
    older, newest = (tmp_path / "log.1").read_text(), file.read_text()
    assert len(older) <= most and len(newest) <= most
    assert (older + newest).endswith("line 01998\nline 01999\n")
    assert len(list(tmp_path.iterdir())) == 2


def test_where_nothing_can_be_written_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot log to"):
        bounded_log(tmp_path / "none" / "log")


def test_a_controller_logs_to_a_file(tmp_path: Path) -> None:
    log, errors = tmp_path / "log", tmp_path / "errors"
    state = tmp_path / "state.json"
    state.write_text("no state")
    with controller(state, 0, "", "-v", "--log", log, errors=errors):
        pass
    assert "cannot use the state" in log.read_text()
    assert errors.read_text() == ""
