"""What outlives a restart is read as it was written, and nothing else is."""

import asyncio
import contextlib
import json
import stat
from pathlib import Path

import pytest
from graphs import THESIS_A
from hypothesis import given
from hypothesis import strategies as st
from mpx_controller.config import checked_config
from mpx_controller.controller import Controller
from mpx_controller.errors import Refused
from mpx_controller.graph import Port
from mpx_controller.network.hosts import Host
from mpx_controller.path_sets.path_set import PathSet, SetPath, StreamKey
from mpx_controller.state_file import read_state, state_text, write_whole
from mpx_controller.steering import Ends

ENDS = Ends("10.0.0.1", "fd00::2", Port(1, 5), Port(6, 5))
PATHS = tuple(SetPath((link,), 1e8, 0.02, 3, number) for number, link in enumerate(THESIS_A.links[:4]))
KEYS = st.builds(StreamKey, st.integers(1, 65535), st.sampled_from(("source", "sink")))
SETS = st.builds(
    PathSet,
    st.integers(1, 2**31),
    st.text(min_size=1),
    st.just(ENDS),
    st.just(PATHS),
    st.floats(0, 1e12),
    st.floats(100, 200),
    st.dictionaries(KEYS, st.integers(0, 3), max_size=5),
    st.none() | st.tuples(st.text(), st.text()),
)
HOSTS = [Host("02:00:00:00:00:01", Port(1, 5), ("10.0.0.1",)), Host("02:00:00:00:00:02", Port(6, 5))]


@given(st.lists(SETS, max_size=3), st.integers(0, 2**31))
def test_it_is_read_as_it_was_written(sets: list[PathSet], last: int) -> None:
    found, number, hosts, _ = read_state(state_text(sets, last, HOSTS, 1000.0), 1000.0)
    assert (number, hosts) == (last, HOSTS)
    for had, was in zip(found, sets, strict=True):
        assert had.expires_s == pytest.approx(was.expires_s)
        assert (had.number, had.owner, had.ends, had.paths, had.placed, had.hardware) == (
            was.number,
            was.owner,
            was.ends,
            was.paths,
            was.placed,
            was.hardware,
        )


def test_a_file_that_tells_no_hardware_addresses_is_read() -> None:
    told = json.loads(state_text([PathSet(1, "me", ENDS, PATHS, 4e8, 60.0)], 1, HOSTS, 0.0))
    del told["path_sets"][0]["hardware"]
    ((had,), *_) = read_state(json.dumps(told), 0.0)
    assert (had.number, had.ends, had.hardware) == (1, ENDS, None)


def test_leases_go_on_with_what_is_left_of_them() -> None:
    made = PathSet(1, "me", ENDS, PATHS, 4e8, 1060.0)
    ((had,), *_) = read_state(state_text([made], 1, [], 1050.0), 7.0)
    assert had.expires_s == pytest.approx(17.0)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"version": 9}', '{"version": 1, "last": 0, "hosts": 3}'])
def test_what_is_no_state_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        read_state(text, 0.0)


@given(st.data())
def test_what_is_damaged_is_refused_or_read(data: st.DataObject) -> None:
    told = json.loads(state_text([PathSet(1, "me", ENDS, PATHS, 4e8, 60.0)], 1, HOSTS, 0.0))
    where = data.draw(st.sampled_from([*told, *(("path_sets", 0, key) for key in told["path_sets"][0])]))
    hurt = data.draw(st.none() | st.integers() | st.text() | st.lists(st.integers()))
    if isinstance(where, tuple):
        told["path_sets"][0][where[2]] = hurt
    else:
        told[where] = hurt
    with contextlib.suppress(ValueError):
        read_state(json.dumps(told), 0.0)


@pytest.mark.parametrize("placed", [[1, "source", 9], [1, "source", -1], [0, "source", 0], [1, "left", 0]])
def test_streams_that_cannot_be_are_refused(placed: list[object]) -> None:
    told = json.loads(state_text([PathSet(1, "me", ENDS, PATHS, 4e8, 60.0)], 1, HOSTS, 0.0))
    told["path_sets"][0]["placed"] = [placed]
    with pytest.raises(ValueError, match="path set 1 has streams"):
        read_state(json.dumps(told), 0.0)


def test_a_file_is_replaced_at_once_and_is_its_owner_s(tmp_path: Path) -> None:
    file = tmp_path / "state.json"
    for text in ("one", "another"):
        write_whole(file, text)
        assert file.read_text() == text and stat.S_IMODE(file.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [file]


def test_a_state_that_cannot_be_saved_is_one_line(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        made = Controller(checked_config({"state": tmp_path / "none" / "state.json"}, "a test"), bytes(32))
        for _ in range(3):
            with contextlib.suppress(Refused):
                made.renew(1, None)
            made.close()

    asyncio.run(run())
    assert [each.startswith("cannot save the state") for each in caplog.messages] == [True]
