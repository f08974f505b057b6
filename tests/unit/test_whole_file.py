"""Files appear whole or not at all."""

import os
import threading
from pathlib import Path

import pytest

from mpx.errors import UsageError
from mpx.whole_file import check_writable, whole


def test_what_was_there_is_replaced_at_the_end(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("old")
    with whole(str(file)) as aside:
        aside.write_text("new")
        assert file.read_text() == "old"
    assert file.read_text() == "new"
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_what_is_not_finished_leaves_nothing(tmp_path: Path, error: type[BaseException]) -> None:
    with pytest.raises(error), whole(str(tmp_path / "file")) as aside:
        aside.write_text("half")
        raise error
    assert os.listdir(tmp_path) == []


def test_what_is_no_file_is_written_to(tmp_path: Path) -> None:
    fifo, read = tmp_path / "fifo", []
    os.mkfifo(fifo)
    reading = threading.Thread(target=lambda: read.append(fifo.read_text()))
    reading.start()
    check_writable(str(fifo))
    with whole(str(fifo)) as aside:
        aside.write_text("through")
    reading.join()
    assert (read, os.listdir(tmp_path)) == (["through"], ["fifo"])


def test_what_cannot_be_written_is_known_before(tmp_path: Path) -> None:
    check_writable(str(tmp_path / "file"))
    assert os.listdir(tmp_path) == []
    for wrong in (tmp_path, tmp_path / "none" / "file"):
        with pytest.raises(UsageError, match=f"cannot write {wrong}"):
            check_writable(str(wrong))
        with pytest.raises(UsageError, match="cannot write"), whole(str(wrong)) as aside:
            aside.write_text("x")
