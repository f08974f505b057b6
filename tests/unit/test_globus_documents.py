"""What the service tells of files and tasks, read: nonsense is not believed, no text breaks the reading."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpx.endpoints.globus.described import info_of, time_of
from mpx.endpoints.globus.task_state import state_of, wait_s
from mpx.endpoints.globus.task_watch import TaskWatch
from mpx.engine.endpoint import Kind
from mpx.errors import (
    AuthenticationError,
    ConnectionLost,
    DestinationError,
    IntegrityError,
    MpxError,
    NoSpace,
    TransferTimeout,
)

FILE = {"type": "file", "size": 4, "last_modified": "2023-12-18 16:52:50+00:00", "permissions": "0644"}
VALUES = st.none() | st.booleans() | st.integers() | st.text(max_size=9) | st.lists(st.integers(), max_size=2)


def task(**more: Any) -> dict[str, Any]:
    return {"task_id": "t", "status": "ACTIVE", **more}


def test_a_file() -> None:
    info = info_of(FILE, follow=True)
    assert info and (info.kind, info.size_bytes, info.modified_s) == (Kind.FILE, 4, 1702918370.0)


def test_a_link_is_one_unless_it_is_followed() -> None:
    link = {**FILE, "link_target": "there"}
    followed, found = info_of(link, follow=True), info_of(link, follow=False)
    assert followed and followed.kind is Kind.FILE
    assert found and (found.kind, found.link_target) == (Kind.LINK, "there")
    assert info_of({"type": "invalid_symlink", "link_target": "x"}, follow=True) is None


@pytest.mark.parametrize("told", [{}, {"type": 1}, {"type": "file"}, {"type": "file", "size": -1}])
def test_what_describes_nothing(told: dict[str, Any]) -> None:
    with pytest.raises(ConnectionLost):
        info_of(told, follow=True)


@given(st.dictionaries(st.sampled_from([*FILE, "link_target"]), VALUES))
def test_whatever_is_told_of_a_file(told: dict[str, Any]) -> None:
    try:
        info = info_of(told, follow=False)
    except ConnectionLost:
        return
    assert info and info.size_bytes is not None and info.size_bytes >= 0


@given(st.text())
def test_whatever_is_told_as_a_time(text: str) -> None:
    found = time_of(text)
    assert found is None or isinstance(found, float)


FIELDS = ("status", "label", "files_transferred", "bytes_transferred", "faults", "is_paused", "fatal_error")


@given(
    st.dictionaries(
        st.sampled_from([*FIELDS, "nice_status", "subtasks_expired", "deadline", "task_id", "request_time"]),
        VALUES,
    )
)
def test_whatever_is_told_of_a_task(told: dict[str, Any]) -> None:
    try:
        state = state_of(task(**told), "t")
    except ConnectionLost:
        return
    assert state.summary() and state.why and isinstance(state.error(), MpxError)
    assert min(state.progress) >= 0


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("QUOTA_EXCEEDED", NoSpace),
        ("PERMISSION_DENIED", DestinationError),
        ("VERIFY_CHECKSUM", IntegrityError),
        ("CREDENTIALS_EXPIRED", AuthenticationError),
        ("EXPIRED", TransferTimeout),
        ("CONNECT_FAILED", ConnectionLost),
    ],
)
def test_what_ended_a_task(code: str, kind: type[MpxError]) -> None:
    ended = state_of(task(status="FAILED", fatal_error={"code": code, "description": "why"}), "t")
    assert isinstance(ended.error(), kind) and "why" in str(ended.error())


def test_a_slow_service_is_asked_less_often() -> None:
    waits = [wait_s(elapsed) for elapsed in (0, 1, 10, 100, 1e6)]
    assert waits == sorted(waits) and waits[0] <= 0.5 and waits[-1] == 15.0


def test_when_it_is_in_vain_to_wait() -> None:
    denied = state_of(task(nice_status="PERMISSION_DENIED", nice_status_details="no"), "t")
    slow = state_of(task(nice_status="CONNECT_FAILED"), "t")
    for state, is_in_vain in (
        (denied, True),
        (slow, False),
        (state_of(task(nice_status="Queued"), "t"), False),
    ):
        watch = TaskWatch(10.0)
        watch.observe(100.0, state)
        assert watch.why_in_vain(109.0, state) is None
        assert (watch.why_in_vain(111.0, state) is not None) == is_in_vain


def test_progress_and_pauses_are_no_vain_wait() -> None:
    watch = TaskWatch(10.0)
    for second in range(0, 100, 5):
        state = state_of(task(nice_status="PERMISSION_DENIED", bytes_transferred=second), "t")
        watch.observe(100.0 + second, state)
        assert watch.why_in_vain(100.0 + second, state) is None
    paused = state_of(task(nice_status="PERMISSION_DENIED", bytes_transferred=95, is_paused=True), "t")
    assert watch.observe(300.0, paused) and watch.why_in_vain(300.0, paused) is None
    goes_on = state_of(task(nice_status="PERMISSION_DENIED", bytes_transferred=95), "t")
    assert watch.observe(301.0, goes_on) == ["Globus task t goes on"]
    assert watch.why_in_vain(305.0, goes_on) is None
    assert watch.why_in_vain(312.0, goes_on) is not None
