"""`--overwrite never` between collections: what others have stored stays, in later runs of the copy, too."""

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from globus.conftest import Collections
from globus.fake_globus import error, until
from globus.fake_task import FakeTask
from hypothesis import given
from hypothesis import strategies as st
from mpx_command import Ended, mpx, refused, running
from sites import make

from mpx.endpoints.globus.left_behind import CLOCKS_APART_S, Whose, whose
from mpx.endpoints.globus.task_state import TaskState
from mpx.engine.endpoint import FileInfo, Kind

THEIRS = b"of others."


def copy_x(collections: Collections) -> Ended:
    """Copy a file, and make it before where there is none."""
    if not (collections.one / "x").exists():
        make(collections.one / "x", len(THEIRS))
        os.utime(collections.one / "x", (1_700_000_000,) * 2)
    ends = f"{collections.one_url}x", f"{collections.other_url}x"
    return mpx("copy", "--overwrite", "never", "--retries", 0, *ends)


def test_what_has_come_meanwhile_stays_in_the_next_run(collections: Collections) -> None:
    def script(task: FakeTask) -> None:
        (collections.other / "x").write_bytes(THEIRS)
        task.move()

    collections.fake.script = script
    refused(copy_x(collections), 4, "has come into being meanwhile")
    collections.fake.script = FakeTask.move
    ended = copy_x(collections)
    assert ended.code == 0 and (collections.other / "x").read_bytes() == THEIRS, ended.err
    assert len(collections.fake.tasks) == 1 and not list((collections.one.parent / "state").glob("*.journal"))


def test_what_was_begun_stays_in_doubt(collections: Collections) -> None:
    """Also where a run between has failed before it changed anything: it has the right size and time."""
    source, target = make(collections.one / "run7/x", len(THEIRS)), collections.other / "run7/x"
    make(collections.one / "run7/y", 10)
    words = "copy", "-r", "--retries", 0, f"{collections.one_url}run7", f"{collections.other_url}run7"

    def damage(task: FakeTask) -> None:
        target.write_bytes(THEIRS)
        os.utime(target, (source.stat().st_mtime,) * 2)
        task.fail("ENDPOINT_ERROR", "broken")

    def refuse(task: FakeTask) -> None:
        if any(item["destination_path"] == "/run7/x" for item in task.items):
            task.fail("PERMISSION_DENIED", "not now")
        else:
            task.move()

    for script, code in ((damage, 6), (refuse, 10), (FakeTask.move, 0)):
        collections.fake.script = script
        assert mpx(*words).code == code
    assert target.read_bytes() == source.read_bytes()


def leaving(collections: Collections, leave: Callable[[Path], None]) -> Callable[[FakeTask], None]:
    """A task that fails, with something left under the name of the file."""

    def script(task: FakeTask) -> None:
        leave(collections.other / "x")
        task.fail("ENDPOINT_ERROR", "broken")

    return script


def stored(data: bytes, modified_s: float | None = None) -> Callable[[Path], None]:
    """Store a file, as of now unless told otherwise."""

    def leave(path: Path) -> None:
        path.write_bytes(data)
        if modified_s is not None:
            os.utime(path, (modified_s, modified_s))

    return leave


def test_what_a_failed_task_has_left_is_replaced(collections: Collections) -> None:
    """It has the size and the time of the source, so that it was stored by a task to its end."""
    collections.fake.script = leaving(collections, stored(THEIRS, 1_700_000_000))
    assert copy_x(collections).code == 6
    collections.fake.script = FakeTask.move
    ended = copy_x(collections)
    assert ended.code == 0, ended.err
    assert (collections.other / "x").read_bytes() == (collections.one / "x").read_bytes()
    assert not list((collections.one.parent / "state").glob("*.tasks"))


@pytest.mark.parametrize(
    "leave",
    [
        stored(THEIRS + b"!"),
        stored(THEIRS[:4], 1_600_000_000),
        stored(THEIRS, time.time() - CLOCKS_APART_S - 99),
    ],
)
def test_what_no_task_can_have_left_stays(collections: Collections, leave: Callable[[Path], None]) -> None:
    collections.fake.script = leaving(collections, leave)
    assert copy_x(collections).code == 6
    before = (collections.other / "x").read_bytes()
    collections.fake.script = FakeTask.move
    refused(copy_x(collections), 4, "has come into being meanwhile")
    assert copy_x(collections).code == 0  # it is there, and that is all
    assert (collections.other / "x").read_bytes() == before
    assert not [path for path in (collections.one.parent / "state").iterdir() if path.suffix == ".journal"]


@pytest.mark.parametrize(
    "leave", [stored(THEIRS), stored(THEIRS[:4]), stored(b""), stored(THEIRS[:4], 1_700_000_000)]
)
def test_what_a_failed_task_or_others_have_left_is_for_users_to_decide(
    collections: Collections, leave: Callable[[Path], None]
) -> None:
    """Stored while the task ran, or a part with the time of all of it: each run says so."""
    collections.fake.script = leaving(collections, leave)
    assert copy_x(collections).code == 6
    before = (collections.other / "x").read_bytes()
    collections.fake.script = FakeTask.move
    for _ in range(2):
        refused(copy_x(collections), 4, "not known", "remove it, or copy it with --overwrite always")
    assert (collections.other / "x").read_bytes() == before
    (collections.other / "x").unlink()
    assert copy_x(collections).code == 0
    assert (collections.other / "x").read_bytes() == (collections.one / "x").read_bytes()


def test_what_a_failed_task_has_copied_is_its_own(collections: Collections) -> None:
    """The service tells, where a collection keeps no times."""

    def script(task: FakeTask) -> None:
        task.move_one(task.items[0])
        os.utime(collections.other / "x")
        task.fail("ENDPOINT_ERROR", "broken")

    collections.fake.script = script
    collections.fake.lie("/successful_transfers", error(500, "InternalError"))
    assert copy_x(collections).code == 6
    collections.fake.script = FakeTask.move
    ended = copy_x(collections)
    assert ended.code == 0, ended.err


def test_a_part_under_the_name_of_what_a_failed_task_has_copied(collections: Collections) -> None:
    """Others have replaced it since."""

    def script(task: FakeTask) -> None:
        task.move_one(task.items[0])
        (collections.other / "x").write_bytes(THEIRS[:4])
        task.fail("ENDPOINT_ERROR", "broken")

    collections.fake.script = script
    collections.fake.lie("/successful_transfers", error(500, "InternalError"))
    assert copy_x(collections).code == 6
    collections.fake.script = FakeTask.move
    refused(copy_x(collections), 4, "not known")
    assert (collections.other / "x").read_bytes() == THEIRS[:4]


def test_a_task_that_is_forgotten_by_the_service(collections: Collections) -> None:
    """What it has left cannot be told from files of others."""
    collections.fake.script = leaving(collections, stored(THEIRS[:4]))
    assert copy_x(collections).code == 6
    collections.fake.tasks.clear()
    refused(copy_x(collections), 4, "not known")
    assert (collections.other / "x").read_bytes() == THEIRS[:4]


def test_what_a_task_of_a_killed_copy_has_left(collections: Collections) -> None:
    held = collections.other / "x"

    def script(task: FakeTask) -> None:
        held.write_bytes(THEIRS[:4])
        task.cancelled.wait(60)

    collections.fake.script = script
    make(collections.one / "x", len(THEIRS))
    words = "copy", "--overwrite", "never", f"{collections.one_url}x", f"{collections.other_url}x"
    with running(*words) as process:
        until(lambda: held.exists() and collections.fake.count("GET /v0.10/task/") > 0)
        process.kill()
        process.wait(60)
    (task,) = collections.fake.tasks.values()
    task.cancel()
    collections.fake.script = FakeTask.move
    refused(mpx(*words), 4, "not known")
    assert held.read_bytes() == THEIRS[:4]
    held.unlink()
    ended = mpx(*words)
    assert ended.code == 0 and held.read_bytes() == (collections.one / "x").read_bytes(), ended.err


def test_a_task_that_goes_on_and_leaves_out_what_is_there(collections: Collections) -> None:
    """It was begun by a run that was killed: what it has left out is no copy of its own."""
    released: list[int] = []

    def script(task: FakeTask) -> None:
        until(lambda: bool(released))
        (collections.other / "x").write_bytes(THEIRS + b"!")
        task.move()

    collections.fake.script = script
    make(collections.one / "x", len(THEIRS))
    words = "copy", "--overwrite", "never", f"{collections.one_url}x", f"{collections.other_url}x"
    with running(*words) as process:
        until(lambda: collections.fake.count("GET /v0.10/task/") > 0)
        process.kill()
        process.wait(60)
    collections.fake.lie("GET /v0.10/task/", lambda _: None)
    collections.fake.lie("GET /v0.10/task/", lambda _: released.append(1))
    refused(mpx(*words), 4, "has come into being meanwhile")
    assert (collections.other / "x").read_bytes() == THEIRS + b"!"


@given(st.integers(0, 9), st.integers(0, 9), st.floats(0, 5000), st.floats(0, 5000), st.floats(0, 900))
def test_what_is_longer_or_of_another_time_is_of_others(
    there_bytes: int, size_bytes: int, modified_s: float, asked_s: float, lasted_s: float
) -> None:
    item = ("/a", "/b", size_bytes, -9000.0)
    state = TaskState("id", "FAILED", asked_s=asked_s, ended_s=asked_s + lasted_s)
    found = whose(FileInfo(Kind.FILE, there_bytes, modified_s), item, state)
    is_within = asked_s - CLOCKS_APART_S <= modified_s <= asked_s + lasted_s + CLOCKS_APART_S
    assert (found is Whose.OTHERS) == (there_bytes > size_bytes or not is_within)
    assert found is not Whose.OURS
    assert whose(FileInfo(Kind.FOLDER, 0, modified_s), item, state) is Whose.OTHERS
    as_new = whose(FileInfo(Kind.FILE, 5, modified_s), ("/a", "/b", 5, modified_s), state)
    assert as_new is (Whose.UNKNOWN if is_within else Whose.OURS)
