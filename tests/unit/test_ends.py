"""Both ends of a copy, and the sessions that it can do without."""

import contextlib
import socket
from pathlib import Path

import pytest

from mpx.errors import Interrupted, UsageError
from mpx.location import parse_location
from mpx.options import CopyOptions
from mpx.report import no_note
from mpx.transfer.ends import Ends


def test_the_password_of_one_server_is_not_sent_to_two(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MPX_PASSWORD", "pw")
    pair = [parse_location(f"ftp://me@{host}/file") for host in ("one.example", "other.example")]
    with pytest.raises(UsageError, match=r"one\.example and other\.example") as refused:
        Ends(pair[:1], pair[1], CopyOptions(), lambda: False, no_note)
    assert "pw" not in str(refused.value)
    nobody = parse_location("ftp://other.example/file")  # an anonymous login gets none
    Ends(pair[:1], nobody, CopyOptions(), lambda: False, no_note).close()


def test_nobody_waits_for_a_spare_session_once_the_copy_is_over(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:  # it accepts, and never says a word
        source = parse_location(f"ftp://127.0.0.1:{silent.getsockname()[1]}/file")
        options = CopyOptions(timeout_s=600, connect_timeout_s=600)
        ends = Ends([source], parse_location(str(tmp_path / "file")), options, lambda: False, no_note)
        answers = iter([False, False])  # while it connects, and once more
        spare = ends.open_spare(lambda: next(answers, True))
        with contextlib.closing(ends), contextlib.closing(spare), pytest.raises(Interrupted):
            spare.measure_rtt()
