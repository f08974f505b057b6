"""Tasks that do not go as they should: what users are told, the exit code, and what becomes of files."""

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from globus.conftest import Collections
from globus.fake_globus import Answer, error
from globus.fake_task import FakeTask
from mpx_command import Ended, mpx, refused
from sites import make

DENIED = "Error (open)\nMessage: Permission denied"


def copy_x(collections: Collections, *words: object) -> Ended:
    make(collections.one / "x", 100_000)
    return mpx("copy", *words, f"{collections.one_url}x", f"{collections.other_url}x")


def notes_of(path: Path) -> str:
    found: list[str] = json.loads(path.read_text())["notes"]
    return "\n".join(map(str, found))


def is_there(collections: Collections) -> bool:
    return (collections.other / "x").read_bytes() == (collections.one / "x").read_bytes()


def failing(code: str, text: str) -> Callable[[FakeTask], None]:
    return lambda task: task.fail(code, text)


@pytest.mark.parametrize(
    ("code", "exit_code"),
    [
        ("QUOTA_EXCEEDED", 9),
        ("PERMISSION_DENIED", 4),
        ("VERIFY_CHECKSUM", 8),
        ("CREDENTIALS_EXPIRED", 5),
        ("ENDPOINT_ERROR", 6),
        ("EXPIRED", 7),
        ("CANCELED", 1),
    ],
)
def test_what_ends_a_task(collections: Collections, code: str, exit_code: int) -> None:
    collections.fake.script = failing(code, "so it is")
    refused(copy_x(collections), exit_code, "Globus task", "so it is")


def test_a_deadline_that_passed(collections: Collections) -> None:
    def script(task: FakeTask) -> None:
        task.expired = 1
        task.fail("GENERIC", "gave up")

    collections.fake.script = script
    refused(copy_x(collections), 7, "its deadline has passed (2026-12-01")


def test_faults_are_told(collections: Collections, tmp_path: Path) -> None:
    def script(task: FakeTask) -> None:
        for i in range(3):
            task.fault("CONNECT_FAILED", f"Error (connect)\nServer: dtn{i}")
        task.move()

    collections.fake.script = script
    ended = copy_x(collections, "--report", tmp_path / "r")
    assert ended.code == 0 and is_there(collections), ended.err
    notes = notes_of(tmp_path / "r")
    assert "CONNECT_FAILED: error: Error (connect) Server: dtn2" in notes and "3 faults" in notes


@pytest.mark.parametrize("state", ["paused", "inactive"])
def test_a_pause_is_told_and_waited_for(collections: Collections, tmp_path: Path, state: str) -> None:
    looked = threading.Event()

    def script(task: FakeTask) -> None:
        if state == "paused":
            task.is_paused, task.nice = True, ("PAUSED_BY_ADMIN", "maintenance of the disks")
        else:
            task.status, task.nice = "INACTIVE", ("CREDENTIALS_EXPIRED", "log in again")
        assert looked.wait(60)
        task.is_paused, task.status, task.nice = False, "ACTIVE", ("OK", "")
        task.move()

    def look(_: Any) -> None:
        looked.set()

    collections.fake.script = script
    # The second look is told that it is not let in for now, so that it is after the first has been answered.
    collections.fake.lie("GET /v0.10/task/", lambda _: None)
    collections.fake.lie("GET /v0.10/task/", lambda _: None)
    collections.fake.lie("GET /v0.10/task/", look)
    ended = copy_x(collections, "--report", tmp_path / "r")
    assert ended.code == 0 and is_there(collections), ended.err
    notes = notes_of(tmp_path / "r")
    word = "maintenance of the disks" if state == "paused" else "mpx globus login"
    assert word in notes and "goes on" in notes, notes


@pytest.mark.parametrize("can_be_cancelled", [True, False])
def test_one_that_is_suspended_for_long(collections: Collections, can_be_cancelled: bool) -> None:
    def script(task: FakeTask) -> None:
        task.status, task.nice = "INACTIVE", ("CREDENTIALS_EXPIRED", "log in again")

    collections.fake.script = script
    if not can_be_cancelled:
        collections.fake.lie("/cancel", error(403, "PermissionDenied"), times=9)
    ended = copy_x(collections, "--timeout", "1s")
    refused(ended, 5, "log in again", "mpx globus login")
    assert ("could not be cancelled, and goes on" in ended.out) != can_be_cancelled
    (task,) = collections.fake.tasks.values()
    assert task.cancelled.is_set() == can_be_cancelled


@pytest.mark.parametrize("moves_others", [True, False])
def test_a_file_that_is_refused_for_good_keeps_no_others(
    collections: Collections, moves_others: bool
) -> None:
    """The service would try for a day; fewer files at once show which one it is."""
    for i in range(6):
        make(collections.one / f"run7/{i}", 10)

    def script(task: FakeTask) -> None:
        has_it = any(item["destination_path"].endswith("/3") for item in task.items)
        if has_it:
            task.fault("PERMISSION_DENIED", DENIED)
        for item in task.items if moves_others or not has_it else ():
            if not item["destination_path"].endswith("/3"):
                task.move_one(item)
        if not task.events:
            task.end()

    collections.fake.script = script
    ended = mpx("copy", "-r", "--timeout", "1s", f"{collections.one_url}run7", f"{collections.other_url}run7")
    assert ended.code == 10 and "not copied" in ended.err and "Permission denied" in ended.err, ended.err
    assert sorted(path.name for path in (collections.other / "run7").iterdir()) == ["0", "1", "2", "4", "5"]


def test_files_that_are_all_refused_end_the_copy(collections: Collections) -> None:
    for i in range(30):
        make(collections.one / f"run7/{i}", 10)
    collections.fake.script = failing("PERMISSION_DENIED", "no")
    ended = mpx("copy", "-r", f"{collections.one_url}run7", f"{collections.other_url}run7")
    assert ended.code == 4, ended.err
    assert len(collections.fake.tasks) < 20


def test_what_has_another_size_is_copied_again(collections: Collections) -> None:
    lied: list[FakeTask] = []

    def script(task: FakeTask) -> None:
        task.move_one(task.items[0])
        if not lied:
            (collections.other / "x").write_bytes(b"short")
        lied.append(task)
        task.end()

    collections.fake.script = script
    ended = copy_x(collections)
    assert ended.code == 0 and is_there(collections) and len(lied) == 2, ended.err


@pytest.mark.parametrize("becomes", [b"short", None])
def test_what_has_another_size_each_time(collections: Collections, becomes: bytes | None) -> None:
    def script(task: FakeTask) -> None:
        if becomes is not None:
            (collections.other / "x").write_bytes(becomes)
        task.end()

    collections.fake.script = script
    refused(copy_x(collections), 8, "Globus says that it is copied")


def test_a_source_that_changes(collections: Collections) -> None:
    def script(task: FakeTask) -> None:
        make(collections.one / "x", 7)
        task.move()

    collections.fake.script = script
    refused(copy_x(collections), 8, "changed while it was copied")


def test_answers_to_a_submission_that_are_lost(collections: Collections) -> None:
    """It is submitted again, and runs once."""
    fake = collections.fake

    def lost(request: Any) -> Answer:
        fake._submit(request, "transfer")
        return Answer(0, then=lambda: None)

    fake.lie("POST /v0.10/transfer", lost, times=2)
    ended = copy_x(collections)
    assert ended.code == 0 and is_there(collections), ended.err
    assert fake.count("POST /v0.10/transfer") == 3 and len(fake.tasks) == 1


@pytest.mark.parametrize("status", [429, 503])
def test_a_busy_service_is_asked_when_it_says(collections: Collections, status: int) -> None:
    busy = error(status, "TooManyRequests", "slow down", headers={"Retry-After": "1"})
    for words in ("/stat", "/submission_id", "POST /v0.10/transfer", "/task/"):
        collections.fake.lie(words, busy)
    ended = copy_x(collections)
    assert ended.code == 0 and is_there(collections), ended.err


def test_a_service_that_is_gone_while_a_task_runs(collections: Collections) -> None:
    """The task goes on, and the next run waits for it."""
    collections.fake.lie("/task/", error(500, "InternalError"), times=9)
    released = threading.Event()

    def script(task: FakeTask) -> None:
        assert released.wait(60)
        task.move()

    collections.fake.script = script
    first = copy_x(collections, "--retries", 1)
    assert first.code == 6 and "goes on" in first.err, first.err
    collections.fake.lies.clear()
    collections.fake.lie("GET /v0.10/task/", lambda _: released.set())
    again = mpx("copy", "-v", f"{collections.one_url}x", f"{collections.other_url}x")
    assert again.code == 0 and is_there(collections), again.err
    assert len(collections.fake.tasks) == 1


def test_a_token_that_expires(collections: Collections) -> None:
    def script(task: FakeTask) -> None:
        collections.fake.tokens.clear()
        task.move()

    collections.fake.script = script
    ended = copy_x(collections)
    assert ended.code == 0 and is_there(collections), ended.err


@pytest.mark.parametrize("form", ["{}", "urn:globus:auth:scope:transfer.api.globus.org:all[*{}]"])
def test_a_client_consents_for_itself(collections: Collections, form: str) -> None:
    scope = "https://auth.globus.org/scopes/22222222-2222-4222-8222-222222222222/data_access"
    asked_for = [form.format(scope)]
    consent = error(403, "ConsentRequired", "Missing required data_access consent", required_scopes=asked_for)
    collections.fake.lie("/stat", consent)
    ended = copy_x(collections)
    assert ended.code == 0, ended.err
    asked = [each.body["scope"] for each in collections.fake.asked if each.path == "/v2/oauth2/token"]
    assert asked[-1] == f"urn:globus:auth:scope:transfer.api.globus.org:all[*{scope}]"


def test_a_service_that_does_not_answer(collections: Collections) -> None:
    silent = threading.Event()
    collections.fake.lie("/stat", Answer(0, then=lambda: silent.wait(60)), times=9)
    refused(copy_x(collections, "--timeout", "1s", "--retries", 0), 7, "Globus does not answer", "--timeout")
    silent.set()


def test_a_task_of_an_earlier_run_that_fails(collections: Collections) -> None:
    """Another one is begun, once."""
    tried: list[FakeTask] = []
    began, fails = threading.Event(), threading.Event()

    def script(task: FakeTask) -> None:
        tried.append(task)
        if len(tried) > 1:
            task.move()
            return
        began.set()
        assert fails.wait(60)
        task.fail("ENDPOINT_ERROR", "broken")

    collections.fake.script = script
    collections.fake.lie("GET /v0.10/task/", error(500, "InternalError"), times=9)
    assert copy_x(collections, "--retries", 1).code == 6 and began.is_set()
    collections.fake.lies.clear()
    collections.fake.lie("GET /v0.10/task/", lambda _: None)
    collections.fake.lie("GET /v0.10/task/", lambda _: fails.set())
    ended = mpx("copy", f"{collections.one_url}x", f"{collections.other_url}x")
    assert ended.code == 0 and is_there(collections) and len(tried) == 2, ended.err


def test_a_task_that_somebody_cancels_is_not_begun_again(collections: Collections) -> None:
    for i in range(5):
        make(collections.one / f"run7/{i}", 10)

    def script(task: FakeTask) -> None:
        task.move_one(task.items[0])
        task.fail("CANCELED", "by its owner")

    collections.fake.script = script
    ended = mpx("copy", "-r", f"{collections.one_url}run7", f"{collections.other_url}run7")
    assert ended.code == 1 and "was cancelled at Globus" in ended.err, ended.err
    assert len(collections.fake.tasks) == 1
