"""A service that lies, or answers late: nothing counts as copied that is not, and nothing runs on unseen."""

import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest
from globus.conftest import Collections
from globus.fake_globus import CLIENT_ID, Answer, Request, error
from globus.fake_task import FakeTask
from mpx_command import Ended, command, mpx, refused, running
from sites import make

from mpx.endpoints.globus.access import GlobusAccess
from mpx.endpoints.globus.deleting import delete
from mpx.endpoints.web.options import WebOptions
from mpx.errors import DestinationError, MpxError
from mpx.location import parse_location

THEIRS = b"of others."


def copy_x(collections: Collections, *words: object) -> Ended:
    make(collections.one / "x", len(THEIRS))
    return mpx("copy", *words, f"{collections.one_url}x", f"{collections.other_url}x")


@pytest.mark.parametrize("body", [b"<html>", [], {}, {"access_token": "a", "resource_server": 5}])
def test_a_login_service_that_answers_nonsense(collections: Collections, body: Any) -> None:
    collections.fake.lie("/v2/oauth2/token", Answer(200, body), times=99)
    refused(copy_x(collections, "--retries", 0), 6, "Globus answers nonsense")


def test_a_login_that_is_answered_by_nonsense(service: Collections) -> None:
    service.fake.lie("/v2/oauth2/token", Answer(200, b"<html>"), times=9)
    ended = mpx("globus", "login", "--client-id", CLIENT_ID, stdin=b"good-code\n")
    assert ended.code == 6 and "cannot log in: Globus answers nonsense" in ended.err, ended.err


def test_a_login_without_an_input(service: Collections) -> None:
    words = ["sh", "-c", 'exec "$@" <&-', "sh", *command("globus", "login", "--client-id", CLIENT_ID)]
    ended = subprocess.run(words, capture_output=True, timeout=60, check=False)
    assert ended.returncode == 2 and b"no code was given" in ended.stderr, ended.stderr


def test_a_name_that_is_half_a_character(collections: Collections) -> None:
    entry = {"name": "\ud800x", "type": "file", "size": 5}
    collections.fake.lie("/ls", Answer(200, {"DATA": [entry]}), times=99)
    ended = mpx("copy", "-r", "--retries", 0, collections.one_url, collections.other_url)
    refused(ended, 6, "an entry of", "without a name")


def test_files_that_are_told_without_an_end(collections: Collections) -> None:
    page = {"DATA": [], "next_marker": "again"}
    collections.fake.script = lambda task: task.fail("ENDPOINT_ERROR", "broken")
    collections.fake.lie("/successful_transfers", Answer(200, page), times=999)
    refused(copy_x(collections, "--retries", 0), 6, "without an end")


def test_what_others_have_stored_meanwhile_is_no_copy(collections: Collections, tmp_path: Path) -> None:
    """With `--overwrite never`, though it has the same size."""

    def script(task: FakeTask) -> None:
        (collections.other / "x").write_bytes(THEIRS)
        task.move()

    collections.fake.script = script
    refused(copy_x(collections, "--overwrite", "never"), 4, "has come into being meanwhile")
    assert (collections.other / "x").read_bytes() == THEIRS


def test_a_task_that_is_cancelled_and_does_not_end(collections: Collections) -> None:
    collections.fake.script = lambda task: task.fault("PERMISSION_DENIED", "no")
    collections.fake.lie("/cancel", Answer(200, {"code": "CancelAccepted"}), times=9)
    refused(copy_x(collections, "--timeout", "1s"), 4, "has got no further")


def interrupted_task(collections: Collections) -> FakeTask:
    """A task of an earlier run, that goes on after it."""
    collections.fake.script = lambda task: task.cancelled.wait(60) and None
    collections.fake.lie("GET /v0.10/task/", error(500, "InternalError"), times=9)
    assert copy_x(collections, "--retries", 0).code == 6
    collections.fake.lies.clear()
    collections.fake.script = FakeTask.move
    (task,) = collections.fake.tasks.values()
    return task


@pytest.mark.parametrize("words", [["--checksum", "none"], ["--encrypt"], ["--overwrite", "always"]])
def test_a_task_with_other_options_is_not_gone_on_with(collections: Collections, words: list[str]) -> None:
    earlier = interrupted_task(collections)
    ended = copy_x(collections, *words)
    assert ended.code == 0, ended.err
    assert earlier.cancelled.is_set() and len(collections.fake.tasks) == 2
    assert (collections.other / "x").read_bytes() == (collections.one / "x").read_bytes()


def test_a_submission_that_is_refused_once_its_answer_was_lost(collections: Collections) -> None:
    """It may run, so that the next run looks for it."""
    fake = collections.fake
    fake.script = lambda task: task.cancelled.wait(60) and None

    def lost(request: Request) -> Answer:
        fake._submit(request, "transfer")
        return Answer(0, then=lambda: None)

    fake.lie("POST /v0.10/transfer", lost)
    fake.lie("POST /v0.10/transfer", error(403, "PermissionDenied", "not now"))
    fake.lie("/task_list", error(403, "PermissionDenied", "not now"))
    assert copy_x(collections).code == 1
    (task,) = fake.tasks.values()
    assert not task.cancelled.is_set()
    fake.script = FakeTask.move
    fake.lie("GET /v0.10/task/", lambda _: None)  # it is found
    fake.lie("GET /v0.10/task/", lambda _: task.move())
    ended = mpx("copy", f"{collections.one_url}x", f"{collections.other_url}x")
    assert ended.code == 0 and len(fake.tasks) == 1 and len(task.moved) == 1, ended.err


def test_a_submission_that_arrives_after_a_signal(collections: Collections) -> None:
    """Nobody knows of its task then, but the next run, which goes on with it."""
    fake = collections.fake
    asked, goes_on, done = threading.Event(), threading.Event(), threading.Event()

    def late(request: Request) -> Answer:
        asked.set()
        assert goes_on.wait(60)
        fake._submit(request, "transfer")
        done.set()
        return Answer(0, then=lambda: None)

    fake.lie("POST /v0.10/transfer", late)
    make(collections.one / "x", 10)
    with running("copy", f"{collections.one_url}x", f"{collections.other_url}x") as process:
        assert asked.wait(60)
        process.terminate()
        process.wait(60)
    fake.script = lambda task: task.cancelled.wait(60) and None
    goes_on.set()
    assert done.wait(60)
    (task,) = fake.tasks.values()
    fake.lie("GET /v0.10/task/", lambda _: None)
    fake.lie("GET /v0.10/task/", lambda _: task.move())
    ended = mpx("copy", f"{collections.one_url}x", f"{collections.other_url}x")
    assert ended.code == 0 and len(fake.tasks) == 1, ended.err


def test_a_file_is_removed_by_one_task(collections: Collections) -> None:
    """However often the answer is lost: a second one, still to run, would remove what gets the name next."""
    make(collections.other / "x", 10)
    fake = collections.fake

    def lost(request: Request) -> Answer:
        fake._submit(request, "delete")
        return Answer(0, then=lambda: None)

    fake.lie("POST /v0.10/delete", lost)
    access = GlobusAccess(parse_location(collections.other_url), WebOptions())
    with pytest.raises(MpxError):
        delete(access, "/x", DestinationError, lambda: False)
    (first,) = fake.tasks
    delete(access, "/x", DestinationError, lambda: False)
    asked = [each for each in fake.asked if each.path.endswith("/delete")]
    assert len(asked) == 3 and len({each.body["submission_id"] for each in asked}) == 2
    assert fake.tasks[first].status == "SUCCEEDED" and not (collections.other / "x").exists()
    access.close()
