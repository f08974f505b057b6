"""Tasks that succeed, and have not copied what they were given: no file counts as copied by that."""

import os

import pytest
from globus.conftest import Collections
from globus.fake_globus import Answer, Request
from globus.fake_task import FakeTask
from hypothesis import given
from hypothesis import strategies as st
from mpx_command import Ended, mpx, refused
from sites import make

from mpx.endpoints.globus.task_claims import claims
from mpx.endpoints.globus.task_state import TaskState

THEIRS = b"of others."


def copy_x(collections: Collections, *words: object) -> Ended:
    """Copy a file to where an older one is that is as long."""
    make(collections.one / "x", len(THEIRS))
    (collections.other / "x").write_bytes(THEIRS)
    os.utime(collections.other / "x", (1_600_000_000,) * 2)
    return mpx("copy", *words, f"{collections.one_url}x", f"{collections.other_url}x")


def is_there(collections: Collections) -> bool:
    return (collections.other / "x").read_bytes() == (collections.one / "x").read_bytes()


@pytest.mark.parametrize("overwrite", ["always", "different"])
def test_a_task_that_has_copied_nothing(collections: Collections, overwrite: str) -> None:
    collections.fake.script = FakeTask.end
    ended = copy_x(collections, "--overwrite", overwrite)
    refused(ended, 8, "Globus says that it is copied", "does not have it among the files of the task")
    assert len(collections.fake.tasks) == 2


@pytest.mark.parametrize("same", [0, 1])
def test_a_file_that_was_left_out_is_copied_by_another_task(collections: Collections, same: int) -> None:
    """Where all are to be replaced none may be left as it is."""

    def script(task: FakeTask) -> None:
        if len(collections.fake.tasks) > 1:
            task.move()
        else:
            task.same = same
            task.end()

    collections.fake.script = script
    ended = copy_x(collections, "--overwrite", "always")
    assert ended.code == 0 and is_there(collections) and len(collections.fake.tasks) == 2, ended.err


def test_counts_that_do_not_add_up_are_compared_with_the_list(collections: Collections) -> None:
    for name in "abc":
        make(collections.one / f"run7/{name}", 10)

    def script(task: FakeTask) -> None:
        for item in task.items[:1] if len(task.items) > 1 else task.items:
            task.move_one(item)
        task.end()

    collections.fake.script = script
    ended = mpx("copy", "-r", f"{collections.one_url}run7", f"{collections.other_url}run7")
    assert ended.code in (8, 10) and "among the files of the task" in ended.err, ended.err
    assert len(list((collections.other / "run7").iterdir())) == 2


def test_an_answer_about_another_task(collections: Collections) -> None:
    """One that has succeeded."""
    collections.fake.script = lambda task: task.cancelled.wait(60) and None

    def other(request: Request) -> Answer | None:
        (task,) = collections.fake.tasks.values()
        told = {"task_id": "99999999-1111-4111-8111-111111111111", "status": "SUCCEEDED"}
        return Answer(200, task.document() | told) if request.path.endswith(task.task_id) else None

    collections.fake.lie("GET /v0.10/task/", other, times=999)
    refused(copy_x(collections, "--retries", 1), 6, "tells of another one")
    assert not is_there(collections)


@given(st.lists(st.sampled_from(["copied", "same", "skipped", "nothing"]), max_size=9), st.integers(0, 3))
def test_a_file_of_which_nothing_was_done_is_never_taken_for_copied(done: list[str], more: int) -> None:
    """Unless the service counts it as one that was the same."""
    items = [(f"/a/{i}", f"/b/{i}", 1, None) for i in range(len(done))]
    names = {what: {f"/b/{i}" for i, each in enumerate(done) if each == what} for what in done}
    skipped = {name.replace("/b/", "/a/") for name in names.get("skipped", set())}
    state = TaskState(
        "id",
        "SUCCEEDED",
        files_moved=done.count("copied") + more,
        files_same=done.count("same"),
        skipped=len(skipped),
    )
    untold = [
        claims(items, state, skipped, lambda: names.get("copied", set()), may_leave=may, compares=may).untold
        for may in (True, False)
    ]
    if more != done.count("nothing"):
        assert untold[0] >= names.get("nothing", set()) or not names.get("nothing")
        assert untold[1] == names.get("nothing", set()) | names.get("same", set())
    assert all(not each & names.get("copied", set()) for each in untold)
