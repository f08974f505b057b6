"""What is kept of servers between two runs: who may be sent a login before the greeting."""

import fcntl
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpx.endpoints.ftp import known_servers
from mpx.endpoints.ftp.known_servers import AGAIN_S, MOST, REFUSED_S, TAKEN_S, KnownServers, Login

SERVER = ("192.0.2.1", 2811)
NOW_S = 1_800_000_000.0


def at(now_s: float) -> KnownServers:
    """Return what a run at that time knows."""
    return KnownServers(lambda: now_s)


@pytest.fixture
def file(private_home: Path) -> Path:
    return private_home / "state" / "servers.json"


def test_nobody_is_known_at_first() -> None:
    assert not at(NOW_S).takes_early(SERVER)


def test_what_was_seen_counts_in_later_runs_for_a_time() -> None:
    at(NOW_S).saw(SERVER, Login.EARLY)
    assert at(NOW_S + TAKEN_S - 1).takes_early(SERVER)
    assert not at(NOW_S + TAKEN_S).takes_early(SERVER)
    assert not at(NOW_S - 1).takes_early(SERVER)  # by a clock that was set back
    assert not at(NOW_S).takes_early((SERVER[0], SERVER[1] + 1))


def test_a_refusal_outweighs_for_a_day_what_was_seen() -> None:
    at(NOW_S).saw(SERVER, Login.EARLY)
    run = at(NOW_S + 1)
    run.saw(SERVER, Login.LATE)
    run.saw(SERVER, Login.EARLY)
    assert not run.takes_early(SERVER)
    at(NOW_S + REFUSED_S).saw(SERVER, Login.EARLY)
    assert not at(NOW_S + REFUSED_S).takes_early(SERVER)
    at(NOW_S + 1 + REFUSED_S).saw(SERVER, Login.EARLY)
    assert at(NOW_S + 1 + REFUSED_S).takes_early(SERVER)


def test_the_file_is_written_once_a_day(file: Path) -> None:
    at(NOW_S).saw(SERVER, Login.EARLY)
    file.unlink()
    run = at(NOW_S)
    run.saw(SERVER, Login.EARLY)
    file.unlink()
    run.saw(SERVER, Login.EARLY)
    assert not file.exists()
    later = KnownServers(iter([NOW_S + 2, NOW_S + 2 + AGAIN_S]).__next__)
    later.saw(SERVER, Login.EARLY)
    later.saw(SERVER, Login.EARLY)
    assert json.loads(file.read_text()) == {"192.0.2.1 2811": [NOW_S + 2 + AGAIN_S, Login.EARLY.value]}


def test_the_servers_seen_last_are_kept(monkeypatch: pytest.MonkeyPatch, file: Path) -> None:
    monkeypatch.setattr(known_servers, "MOST", 3)
    for port in range(5):
        at(NOW_S - port).saw(("192.0.2.1", port), Login.EARLY)
    assert json.loads(file.read_text()).keys() == {f"192.0.2.1 {port}" for port in range(3)}
    assert MOST == 1000


def test_two_runs_keep_what_both_saw() -> None:
    first, second = at(NOW_S), at(NOW_S)
    other = (SERVER[0], 21)
    assert not first.takes_early(SERVER) and not second.takes_early(SERVER)
    first.saw(SERVER, Login.EARLY)
    second.saw(other, Login.EARLY)
    assert at(NOW_S).takes_early(SERVER) and at(NOW_S).takes_early(other)


def test_while_others_write_nothing_is_waited_for(file: Path) -> None:
    at(NOW_S).saw(("192.0.2.1", 1), Login.EARLY)
    before = file.read_bytes()
    with file.open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        run = at(NOW_S)
        run.saw(SERVER, Login.EARLY)
    assert run.takes_early(SERVER)
    assert file.read_bytes() == before


@pytest.mark.parametrize("what", ["a folder", "a link", "no state folder"])
def test_where_nothing_can_be_kept_the_run_goes_on(
    what: str, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file.parent.mkdir()
    if what == "a folder":
        file.mkdir()
    elif what == "a link":
        file.symlink_to(file.parent / "elsewhere")
    else:
        monkeypatch.setenv("MPX_STATE_DIR", "/proc/mpx")
    run = at(NOW_S)
    run.saw(SERVER, Login.EARLY)
    assert run.takes_early(SERVER)
    assert not at(NOW_S).takes_early(SERVER)


@given(
    st.one_of(
        st.binary(),
        st.recursive(
            st.none()
            | st.floats()
            | st.integers()
            | st.text()
            | st.sampled_from([each.value for each in Login]),
            lambda of: st.lists(of) | st.dictionaries(st.sampled_from(["192.0.2.1 2811", "x"]), of),
        ).map(lambda value: json.dumps(value).encode()),
        st.just(b"[" * 100_000),
        st.just(b'{"192.0.2.1 2811": [1' + b"0" * 400 + b', "takes one command at a time"]}'),
    )
)
def test_a_damaged_file_is_as_good_as_none(data: bytes) -> None:
    known = known_servers._read(data)
    assert all(isinstance(how, Login) for _, how in known.values())
