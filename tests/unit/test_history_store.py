"""What is kept of copies between two runs, and what becomes of a damaged file."""

import contextlib
import sqlite3
import stat
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from random_bytes import random_bytes

from mpx.commands.history import history_command
from mpx.endpoints.ftp.known_servers import KnownServers, Login
from mpx.errors import UsageError
from mpx.history import store
from mpx.history.outcome import Outcome, Route

ROUTE = Route("192.0.2.7", "192.0.2.1", 2811, True, "fair")
FOUND = Outcome(1_800_000_000.0, 0.060, 24, 180e6, 65536.0)
VALUES = st.none() | st.integers(-(2**62), 2**62) | st.floats(allow_nan=False) | st.text() | st.binary()


@pytest.fixture
def file(private_home: Path) -> Path:
    return private_home / "state" / store.NAME


def test_outcomes_are_found_again_the_latest_last() -> None:
    store.record(ROUTE, FOUND)
    store.record(ROUTE, replace(FOUND, streams=30, window_bytes=None))
    store.record(replace(ROUTE, is_upload=False), FOUND)
    assert store.outcomes(ROUTE) == [FOUND, replace(FOUND, streams=30, window_bytes=None)]
    assert store.outcomes(replace(ROUTE, policy="fast")) == []
    assert len(store.everything()) == 3


def test_the_file_is_for_this_account_alone(file: Path) -> None:
    store.record(ROUTE, FOUND)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_there_are_never_many(monkeypatch: pytest.MonkeyPatch) -> None:
    for i in range(store.KEPT + 3):
        store.record(ROUTE, replace(FOUND, streams=i + 1))
    assert [each.streams for each in store.outcomes(ROUTE)] == list(range(4, store.KEPT + 4))
    monkeypatch.setattr(store, "_OLDEST", store._OLDEST.replace(f"OFFSET {store.MOST}", "OFFSET 10"))
    for port in range(5):
        store.record(replace(ROUTE, port=port), FOUND)
    assert len(store.everything()) == 10
    assert store.outcomes(replace(ROUTE, port=4)) == [FOUND]


def test_forgetting(file: Path) -> None:
    store.record(ROUTE, FOUND)
    KnownServers().saw(("192.0.2.1", 2811), Login.STEPS)
    shown = CliRunner().invoke(history_command)
    assert shown.exit_code == 0
    path, server = shown.output.splitlines()
    assert path.endswith(
        "192.0.2.7 -> 192.0.2.1 (port 2811, fair): 24 streams, 180 Mbit/s, RTT 60 ms, windows of 64 KiB"
    )
    assert server.endswith("server 192.0.2.1 2811: takes a login one command after the other")
    assert CliRunner().invoke(history_command, ["--forget"]).output == "forgotten: 2 entries\n"
    assert not file.exists()
    assert CliRunner().invoke(history_command).output == "nothing is remembered\n"


def test_nothing_is_made_where_nothing_was_kept(file: Path) -> None:
    assert store.outcomes(ROUTE) == []
    assert store.everything() == []
    assert not file.exists()


@pytest.mark.parametrize("what", ["a folder", "a link", "damage", "no table", "no state folder", "locked"])
def test_what_cannot_be_used_is_an_error(what: str, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For `mpx history`; a copy goes on without."""
    file.parent.mkdir(mode=0o700)
    with contextlib.ExitStack() as stack:
        if what == "a folder":
            file.mkdir()
        elif what == "a link":
            file.symlink_to(file.parent / "elsewhere")
        elif what == "damage":
            file.write_bytes(random_bytes(5000))
        elif what == "no table":
            sqlite3.connect(file).close()
        elif what == "locked":
            store.record(ROUTE, FOUND)
            held = stack.enter_context(contextlib.closing(sqlite3.connect(file)))
            held.execute("BEGIN EXCLUSIVE")
        else:
            monkeypatch.setenv("MPX_STATE_DIR", "/proc/mpx")
        for used in (lambda: store.outcomes(ROUTE), store.everything):
            with pytest.raises(UsageError, match="MPX_STATE_DIR"):
                used()
        if what != "no table":
            with pytest.raises(UsageError, match="MPX_STATE_DIR"):
                store.record(ROUTE, FOUND)
        shown = CliRunner().invoke(history_command)
        assert isinstance(shown.exception, UsageError)
    assert not (file.parent / "elsewhere").exists()


def test_a_python_without_sqlite_is_an_error_too(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of this kind: a copy goes on without."""
    store.record(ROUTE, FOUND)
    monkeypatch.setitem(sys.modules, "sqlite3", None)
    for used in (lambda: store.outcomes(ROUTE), store.everything, lambda: store.record(ROUTE, FOUND)):
        with pytest.raises(UsageError, match=r"history\.sqlite: .*sqlite3"):
            used()
    assert CliRunner().invoke(history_command, ["--forget"]).exit_code == 0
    assert not file.exists()


def test_forgetting_removes_a_damaged_file(file: Path) -> None:
    file.parent.mkdir(mode=0o700)
    file.write_bytes(random_bytes(5000))
    assert CliRunner().invoke(history_command, ["--forget"]).output == "forgotten: 0 entries\n"
    store.record(ROUTE, FOUND)
    assert store.outcomes(ROUTE) == [FOUND]


@given(st.tuples(*[VALUES] * 10))
def test_rows_of_others_are_left_out(row: tuple[Any, ...]) -> None:
    store.record(ROUTE, FOUND)
    with store.state_database(store.NAME, create=True, waits_s=1) as database:
        assert database is not None
        database.execute("DELETE FROM outcomes")
        database.execute(f"INSERT INTO outcomes VALUES ({', '.join('?' * 10)})", row)
    for _, outcome in store.everything():
        assert 1 <= outcome.streams <= 10_000
        assert outcome.rtt_s > 0 and outcome.goodput_bps > 0
    assert CliRunner().invoke(history_command).exit_code == 0
