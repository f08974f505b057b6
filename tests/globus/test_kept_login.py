"""The login that is kept, while a copy renews its token: it may not be writable, or be given up just then."""

import contextlib
import fcntl
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from globus.conftest import Collections
from globus.fake_globus import CLIENT_ID, until
from globus.fake_task import FakeTask
from globus.test_login import log_in, state
from mpx_command import mpx, running
from sites import make

SERVER = "transfer.api.globus.org"


@pytest.fixture
def expired(service: Collections) -> Collections:
    """A login of which a copy renews the token."""
    assert log_in(service, "--client-id", CLIENT_ID).code == 0
    make(service.one / "x", 10)
    change_token(service, expires=0)
    return service


def change_token(service: Collections, **to: Any) -> None:
    kept = json.loads(state(service).read_text())
    kept["tokens"][SERVER].update(to)
    state(service).write_text(json.dumps(kept))


@contextlib.contextmanager
def locked(service: Collections) -> Iterator[None]:
    """Hold the lock of what is kept."""
    with (state(service).parent / "globus.lock").open("rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def waits_for_lock(pid: int) -> bool:
    lines = [line.split() for line in Path("/proc/locks").read_text().splitlines()]
    return any(words[1] == "->" and words[5] == str(pid) for words in lines)


@pytest.mark.parametrize("in_the_way", ["globus.json.new", "globus.lock"])
def test_a_token_that_cannot_be_kept_ends_no_copy(expired: Collections, in_the_way: str) -> None:
    before = state(expired).read_text()
    (state(expired).parent / "globus.lock").unlink()
    (state(expired).parent / in_the_way).mkdir()
    ended = mpx("copy", f"{expired.one_url}x", f"{expired.other_url}x")
    assert ended.code == 0 and (expired.other / "x").exists(), ended.err
    assert "is not kept: cannot" in ended.out and "run: mpx globus login" in ended.out, ended.out
    assert state(expired).read_text() == before


def test_a_logout_is_not_undone_by_a_copy(expired: Collections) -> None:
    with contextlib.ExitStack() as lock:
        lock.enter_context(locked(expired))
        with running("copy", f"{expired.one_url}x", f"{expired.other_url}x") as process:
            until(lambda: waits_for_lock(process.pid))
            state(expired).unlink()
            lock.close()
            process.wait(60)  # the other end may be told that nobody is logged in
    assert not state(expired).exists()


def test_a_logout_takes_back_what_a_copy_has_renewed(expired: Collections) -> None:
    with contextlib.ExitStack() as lock:
        lock.enter_context(locked(expired))
        with running("globus", "logout") as process:
            until(lambda: waits_for_lock(process.pid))
            renewed = expired.fake.token_for(SERVER)
            change_token(expired, access=renewed)
            lock.close()
            assert process.wait(60) == 0
    assert renewed not in expired.fake.tokens and not state(expired).exists()


def test_a_copy_goes_on_with_a_login_anew(service: Collections) -> None:
    """The tokens that it has begun with are taken back by that."""
    released = threading.Event()

    def script(task: FakeTask) -> None:
        assert released.wait(60)
        task.move()

    service.fake.script = script
    assert log_in(service, "--client-id", CLIENT_ID).code == 0
    make(service.one / "x", 10)
    with running("copy", f"{service.one_url}x", f"{service.other_url}x") as process:
        until(lambda: service.fake.count("GET /v0.10/task/") > 0)
        before = {*service.fake.tokens, *service.fake.refresh_tokens}
        assert log_in(service).code == 0 and not before & {*service.fake.tokens}
        released.set()
        assert process.wait(60) == 0
    kept = json.loads(state(service).read_text())["tokens"][SERVER]
    assert kept["access"] in service.fake.tokens and kept["refresh"] in service.fake.refresh_tokens
