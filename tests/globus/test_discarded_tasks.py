"""Tasks that nobody waits for any more: they are cancelled, and nothing of them is kept on disk."""

import threading

import pytest
from globus.conftest import Collections
from globus.fake_globus import Request, error, until
from globus.fake_task import FakeTask
from mpx_command import mpx, running
from sites import make


def kept(collections: Collections, *suffixes: str) -> list[str]:
    """What the state folder has of copies."""
    state = collections.one.parent / "state"
    return [path.name for path in state.iterdir() if path.suffix in (suffixes or (".tasks", ".journal"))]


def killed_copy(collections: Collections, *, is_known: bool = True) -> FakeTask:
    """The task of a copy that was killed, with the answer that names it or without."""
    collections.fake.script = lambda task: task.cancelled.wait(60) and None
    make(collections.one / "run7/a", 10)
    answers = threading.Event()

    def never_answered(request: Request) -> None:
        collections.fake._submit(request, "transfer")
        answers.wait(60)

    if not is_known:
        collections.fake.lie("POST /v0.10/transfer", never_answered)
    with running("copy", "-r", f"{collections.one_url}run7", f"{collections.other_url}run7") as process:
        until(lambda: bool(collections.fake.tasks))
        until(lambda: not is_known or collections.fake.count("GET /v0.10/task/") > 0)
        process.kill()
        process.wait(60)
    answers.set()
    (task,) = collections.fake.tasks.values()
    assert not task.cancelled.is_set() and len(kept(collections)) == 2
    collections.fake.script = FakeTask.move
    return task


@pytest.mark.parametrize("is_known", [True, False])
def test_discarding_a_copy_cancels_its_task(collections: Collections, is_known: bool) -> None:
    task = killed_copy(collections, is_known=is_known)
    ended = mpx("unfinished", "--discard")
    assert ended.code == 0 and f"Globus task {task.task_id} was cancelled" in ended.out, (
        ended.out,
        ended.err,
    )
    assert task.cancelled.is_set() and kept(collections) == []


def test_one_that_cannot_be_cancelled_is_told(collections: Collections) -> None:
    task = killed_copy(collections)
    collections.fake.lie("/cancel", error(500, "InternalError", "not now"), times=9)
    ended = mpx("unfinished", "--discard")
    assert ended.code == 0 and "discarded" in ended.out, (ended.out, ended.err)
    assert f"Globus task {task.task_id} is not cancelled: " in ended.out and "not now" in ended.out
    assert not task.cancelled.is_set() and kept(collections) == []


def test_one_that_has_ended_is_left_alone(collections: Collections) -> None:
    killed_copy(collections).end()
    ended = mpx("unfinished", "--discard")
    assert ended.code == 0 and "Globus task" not in ended.out, (ended.out, ended.err)
    assert collections.fake.count("/cancel") == 0 and kept(collections) == []


def test_what_is_forgotten_goes_on(collections: Collections) -> None:
    task = killed_copy(collections)
    assert mpx("unfinished", "--forget").code == 0
    assert not task.cancelled.is_set() and kept(collections) == []


@pytest.mark.parametrize("has_ended", [True, False])
def test_a_task_of_which_nothing_is_needed_any_more(collections: Collections, has_ended: bool) -> None:
    task = killed_copy(collections)
    (collections.one / "run7/a").unlink()
    make(collections.one / "run7/b", 20)
    if has_ended:
        task.end()
    ended = mpx("copy", "-r", f"{collections.one_url}run7", f"{collections.other_url}run7")
    assert ended.code == 0 and len(collections.fake.tasks) == 2, ended.err
    assert task.cancelled.is_set() != has_ended and kept(collections, ".tasks") == []


def test_a_copy_that_finds_all_there_keeps_no_task(collections: Collections) -> None:
    task = killed_copy(collections)
    (collections.one / "run7/a").unlink()
    ended = mpx("copy", "-r", f"{collections.one_url}run7", f"{collections.other_url}run7")
    assert ended.code == 0 and task.cancelled.is_set() and kept(collections, ".tasks") == [], ended.err


def of_another_identity(collections: Collections, task: FakeTask) -> None:
    """Have the service tell nothing of a task, as it was begun by somebody else."""
    collections.fake.lie(f"/task/{task.task_id}", error(403, "PermissionDenied", "not yours"), times=99)


def test_a_task_of_another_identity_is_told_and_left(collections: Collections) -> None:
    task = killed_copy(collections)
    of_another_identity(collections, task)
    ended = mpx("copy", "-r", f"{collections.one_url}run7", f"{collections.other_url}run7")
    assert ended.code == 0 and (collections.other / "run7/a").stat().st_size == 10, ended.err
    assert f"Globus task {task.task_id} of an earlier run belongs to another identity" in ended.out, ended.out
    assert not task.cancelled.is_set() and len(collections.fake.tasks) == 2
    assert kept(collections) == []


def test_a_task_of_another_identity_is_kept_for_that(collections: Collections) -> None:
    """As long as the copy is not complete: whoever has begun it goes on with it, or cancels it."""
    task = killed_copy(collections)
    of_another_identity(collections, task)
    collections.fake.script = lambda task: task.fail("ENDPOINT_ERROR", "broken")
    words = "-r", f"{collections.one_url}run7", f"{collections.other_url}run7"
    assert mpx("copy", "--retries", 0, *words).code == 6
    collections.fake.lies.clear()
    ended = mpx("unfinished", "--discard")
    assert ended.code == 0 and task.cancelled.is_set() and kept(collections) == [], ended.err


def test_discarding_a_copy_with_a_task_of_another_identity(collections: Collections) -> None:
    task = killed_copy(collections)
    of_another_identity(collections, task)
    ended = mpx("unfinished", "--discard")
    assert ended.code == 0 and "belongs to another identity" in ended.out, (ended.out, ended.err)
