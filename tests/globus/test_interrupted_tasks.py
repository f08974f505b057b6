"""Copies that are interrupted, or killed: their task is cancelled, or found again by the next run."""

import os
import signal
import threading

import pytest
from globus.conftest import Collections
from globus.fake_globus import error, until
from globus.fake_task import FakeTask
from mpx_command import mpx, running
from sites import make

import mpx as api


def hold(collections: Collections) -> threading.Event:
    """Have tasks wait until the event that is returned is set, or they are cancelled."""
    released = threading.Event()

    def script(task: FakeTask) -> None:
        while not (released.wait(0.02) or task.cancelled.is_set()):
            pass
        task.move()

    collections.fake.script = script
    return released


def places(collections: Collections) -> tuple[str, str]:
    for name in ("a", "b"):
        make(collections.one / f"run7/{name}", 10_000)
    return f"{collections.one_url}run7", f"{collections.other_url}run7"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_cancels_the_task(collections: Collections, number: signal.Signals) -> None:
    hold(collections)
    with running("copy", "-r", *places(collections)) as process:
        until(lambda: bool(collections.fake.tasks))
        process.send_signal(number)
        assert process.wait(60) == 128 + number
        assert process.stderr is not None
        told = process.stderr.read()
    (task,) = collections.fake.tasks.values()
    assert task.cancelled.is_set() and b"interrupted" in told, told
    assert not list((collections.one.parent / "state").glob("*.tasks"))


def notes_of_cancelled_copy(collections: Collections) -> list[str]:
    """What the report of a copy says that is stopped by its event once its task runs."""
    cancel = threading.Event()
    threading.Thread(
        target=lambda: (until(lambda: bool(collections.fake.tasks)), cancel.set()), daemon=True
    ).start()
    with pytest.raises(api.MpxError) as ended:
        api.copy(*places(collections), api.CopyOptions(recursive=True), cancel=cancel)
    assert ended.value.exit_code == 130 and ended.value.report
    return list(ended.value.report.notes)


def test_the_event_of_the_api_cancels_the_task(collections: Collections) -> None:
    hold(collections)
    notes = notes_of_cancelled_copy(collections)
    (task,) = collections.fake.tasks.values()
    assert task.cancelled.is_set()
    assert any("was cancelled, as the copy ended" in note for note in notes)


def test_a_task_that_cannot_be_cancelled_is_found_again(collections: Collections) -> None:
    released = hold(collections)
    collections.fake.lie("/cancel", error(500, "InternalError"), times=99)
    notes = notes_of_cancelled_copy(collections)
    assert any("could not be cancelled, and goes on" in note for note in notes)
    released.set()
    (task,) = collections.fake.tasks.values()
    until(lambda: task.status == "SUCCEEDED")
    assert mpx("copy", "-r", *places_again(collections)).code == 0
    # One that has ended may have failed: what is there is compared at the service, and not moved again.
    assert sum(len(each.moved) for each in collections.fake.tasks.values()) == 2


def places_again(collections: Collections) -> tuple[str, str]:
    return f"{collections.one_url}run7", f"{collections.other_url}run7"


@pytest.mark.parametrize("is_known", [True, False])
def test_one_that_was_killed_goes_on_with_its_task(collections: Collections, is_known: bool) -> None:
    """Also where the answer that named the task never came."""
    released, fake = hold(collections), collections.fake
    began = threading.Event()

    def never_answered(request: object) -> None:
        fake._submit(request, "transfer")  # type: ignore[arg-type]
        began.wait(60)

    if not is_known:
        fake.lie("POST /v0.10/transfer", never_answered)
    with running("copy", "-r", *places(collections)) as process:
        until(lambda: bool(fake.tasks) and (not is_known or fake.count("GET /v0.10/task/") > 0))
        process.kill()
        process.wait(60)
    began.set()
    (task,) = fake.tasks.values()
    assert not task.cancelled.is_set()
    with running("copy", "-r", "-v", *places_again(collections)) as process:
        until(lambda: fake.count("GET /v0.10/task/") > (2 if is_known else 0))
        released.set()
        assert process.wait(60) == 0
    assert len(fake.tasks) == 1
    for name in ("a", "b"):
        there = collections.other / f"run7/{name}"
        assert there.read_bytes() == (collections.one / f"run7/{name}").read_bytes()
    assert not list((collections.one.parent / "state").glob("*.tasks"))


def test_a_file_that_changed_meanwhile_is_copied_by_another_task(collections: Collections) -> None:
    released = hold(collections)
    with running("copy", "-r", *places(collections)) as process:
        until(lambda: collections.fake.count("GET /v0.10/task/") > 0)
        process.kill()
        process.wait(60)
    make(collections.one / "run7/b", 77)
    collections.fake.lie("GET /v0.10/task/", lambda _: None)
    collections.fake.lie("GET /v0.10/task/", lambda _: released.set())
    ended = mpx("copy", "-r", *places_again(collections))
    assert ended.code == 0, ended.err
    assert (collections.other / "run7/b").read_bytes() == (collections.one / "run7/b").read_bytes()
    assert len(collections.fake.tasks) == 2


def test_a_signal_while_the_answer_to_a_submission_is_waited_for(collections: Collections) -> None:
    """The task is found by its label, and cancelled."""
    hold(collections)
    began = threading.Event()

    def never_answered(request: object) -> None:
        collections.fake._submit(request, "transfer")  # type: ignore[arg-type]
        began.wait(60)

    collections.fake.lie("POST /v0.10/transfer", never_answered)
    with running("copy", "-r", *places(collections)) as process:
        until(lambda: bool(collections.fake.tasks))
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
    began.set()
    (task,) = collections.fake.tasks.values()
    assert task.cancelled.is_set()


def test_what_was_interrupted_is_not_discarded_under_its_final_name(collections: Collections) -> None:
    """It may be the older file, that the task has not touched yet."""
    (collections.other / "run7").mkdir()
    (collections.other / "run7/a").write_bytes(b"older")
    hold(collections)
    with running("copy", "-r", *places(collections)) as process:
        until(lambda: bool(collections.fake.tasks))
        process.kill()
        process.wait(60)
    ended = mpx("unfinished", "--discard")
    assert ended.code == 0 and "left as it is" in ended.out, (ended.out, ended.err)
    assert (collections.other / "run7/a").read_bytes() == b"older"


@pytest.mark.parametrize("overwrite", ["never", "different"])
def test_what_an_interrupted_task_has_left_is_not_taken_for_the_file(
    collections: Collections, overwrite: str
) -> None:
    """Although it has its name, size and time: bytes may be missing, or wrong."""
    source, target = make(collections.one / "file", 10_000), collections.other / "file"
    os.utime(source, (1_700_000_000,) * 2)

    def leave_a_part(task: FakeTask) -> None:
        target.write_bytes(b"x" * 10_000)
        os.utime(target, (source.stat().st_mtime,) * 2)
        task.nice = "OK", "half of it"
        task.cancelled.wait(60)

    collections.fake.script = leave_a_part
    ends = f"{collections.one_url}file", f"{collections.other_url}file"
    options = api.CopyOptions(overwrite=overwrite)
    cancel = threading.Event()
    threading.Thread(target=lambda: (until(target.exists), cancel.set()), daemon=True).start()
    with pytest.raises(api.MpxError):
        api.copy(*ends, options, cancel=cancel)
    collections.fake.script = FakeTask.move
    assert api.copy(*ends, options).files.moved == 1
    assert target.read_bytes() == source.read_bytes()
    assert api.copy(*ends, options).files.skipped == 1
