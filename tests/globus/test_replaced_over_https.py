"""A file that takes the name of another one by the service: whatever fails, one of the two has its name."""

import threading
from collections.abc import Callable, Iterator

import pytest
from globus.conftest import Collections
from globus.fake_globus import ONE, Answer, Request, error, until
from interop.trees import names
from mpx_command import mpx, running
from sites import make
from web.servers.nginx import nginx_site

from mpx.endpoints.globus.access import GlobusAccess
from mpx.endpoints.globus.endpoint import GlobusEndpoint
from mpx.endpoints.web.options import WebOptions
from mpx.engine.endpoint import Commit
from mpx.errors import ConnectionLost, DestinationError, MpxError, NotRenamed
from mpx.location import parse_location

PARTIAL, ASIDE = ".x.mpx-1234.part", ".x.mpx-1234-old.part"
NO = error(403, "EndpointPermissionDenied", "not now")


@pytest.fixture
def replace(collections: Collections) -> Iterator[Callable[[], Exception | None]]:
    """Give a finished file the name of an older one, as the committer does."""
    make(collections.one / PARTIAL, 100)
    (collections.one / "x").write_bytes(b"older")
    location = parse_location(f"{collections.one_url}x")
    end = GlobusEndpoint(location, GlobusAccess(location, WebOptions()), writing=True)

    def commit() -> Exception | None:
        return end.commit([Commit(f"/{PARTIAL}", "/x", None, None, was_tried=True)], print)[0]

    yield commit
    end.close()


def lie_to_rename(
    collections: Collections, number: int, *answers: Answer | Callable[[Request], Answer]
) -> None:
    """Have the service answer so to renames from that one on, of which it tells that `x` is there first."""
    for _ in range(number):
        collections.fake.lie("/rename", lambda _: None)
    for answer in answers:
        collections.fake.lie("/rename", answer)


def lost(collections: Collections) -> Callable[[Request], Answer]:
    """A rename that is done, and whose answer does not come."""

    def answer(request: Request) -> Answer:
        collections.fake._operation(request, collections.one, "rename")
        return Answer(0, then=lambda: None)

    return answer


def content(collections: Collections) -> bytes:
    return (collections.one / "x").read_bytes()


def test_an_old_file_is_there_until_the_new_one_is(
    collections: Collections, replace: Callable[[], Exception | None]
) -> None:
    seen: list[list[str]] = []

    def look(_: Request) -> None:
        seen.append(names(collections.one))

    collections.fake.lie("/rename", look, times=3)  # type: ignore[arg-type]
    assert replace() is None
    assert seen == [sorted([PARTIAL, "x"])] * 2 + [sorted([PARTIAL, ASIDE])]
    assert names(collections.one) == ["x"] and len(content(collections)) == 100


def test_one_that_is_refused_its_name_leaves_the_old_file(
    collections: Collections, replace: Callable[[], Exception | None]
) -> None:
    lie_to_rename(collections, 2, NO)
    assert isinstance(refusal := replace(), DestinationError) and not isinstance(refusal, NotRenamed)
    assert content(collections) == b"older" and names(collections.one) == sorted([PARTIAL, "x"])


def test_an_old_file_that_does_not_come_back_is_named(
    collections: Collections, replace: Callable[[], Exception | None]
) -> None:
    lie_to_rename(collections, 2, NO, NO)
    refusal = replace()
    assert isinstance(refusal, NotRenamed) and f"the old file is now globus://{ONE}/{ASIDE}" in str(refusal)
    assert names(collections.one) == sorted([PARTIAL, ASIDE])


def test_an_answer_that_is_lost_is_settled_by_the_next_attempt(
    collections: Collections, replace: Callable[[], Exception | None]
) -> None:
    gone = Answer(0, then=lambda: None)
    lie_to_rename(collections, 2, gone, gone)
    assert isinstance(replace(), ConnectionLost)
    assert names(collections.one) == sorted([PARTIAL, ASIDE])
    assert replace() is None
    assert names(collections.one) == ["x"] and len(content(collections)) == 100


def test_a_rename_that_was_done_is_not_undone(
    collections: Collections, replace: Callable[[], Exception | None]
) -> None:
    lie_to_rename(collections, 2, lost(collections))
    assert isinstance(replace(), ConnectionLost)
    assert len(content(collections)) == 100


def test_what_an_earlier_run_has_put_aside_makes_room(
    collections: Collections, replace: Callable[[], Exception | None]
) -> None:
    (collections.one / ASIDE).write_bytes(b"older still")
    assert replace() is None
    assert names(collections.one) == ["x"] and len(content(collections)) == 100


def test_a_folder_is_not_put_aside(collections: Collections, replace: Callable[[], Exception | None]) -> None:
    (collections.one / "x").unlink()
    make(collections.one / "x/y", 1)
    refusal = replace()
    assert isinstance(refusal, MpxError) and "it is a folder" in str(refusal)
    assert names(collections.one) == sorted([PARTIAL, "x/", "x/y"])


@pytest.fixture
def killed_in_between(collections: Collections) -> Iterator[tuple[object, ...]]:
    """A copy, as words, that was killed once it had put the old file aside."""
    make(collections.other / "x", 10_000)
    (collections.one / "x").write_bytes(b"older")
    held, asked = threading.Event(), threading.Event()

    def hold(_: Request) -> Answer:
        asked.set()
        held.wait(60)
        return NO

    lie_to_rename(collections, 2, hold)
    with nginx_site(collections.one, tls=True) as site:
        collections.fake.about[ONE] = {"https_server": f"https://localhost:{site.port}"}
        words = "copy", "--ca", str(site.ca), collections.other / "x", f"{collections.one_url}x"
        with running(*words) as process:
            until(asked.is_set)
            process.kill()
            process.wait(60)
        held.set()
        left = names(collections.one)
        assert "x" not in left and len(left) == 2
        assert b"older" in [(collections.one / name).read_bytes() for name in left]
        yield words


def test_a_copy_that_is_killed_in_between_goes_on(
    collections: Collections, killed_in_between: tuple[object, ...]
) -> None:
    ended = mpx(*killed_in_between)
    assert ended.code == 0 and names(collections.one) == ["x"], (ended.err, names(collections.one))
    assert content(collections) == (collections.other / "x").read_bytes()


@pytest.mark.usefixtures("killed_in_between")
def test_discarding_a_copy_that_is_killed_in_between_brings_the_old_file_back(
    collections: Collections,
) -> None:
    ended = mpx("unfinished", "--discard")
    assert ended.code == 0 and "the old file has its name again" in ended.out, (ended.out, ended.err)
    assert names(collections.one) == ["x"] and content(collections) == b"older"


@pytest.mark.usefixtures("killed_in_between")
def test_what_others_have_stored_meanwhile_is_not_replaced_by_the_old_file(collections: Collections) -> None:
    (collections.one / "x").write_bytes(b"of others")
    ended = mpx("unfinished", "--discard")
    assert ended.code == 0 and "an older file stays, as another one has its name" in ended.out, ended.out
    assert content(collections) == b"of others" and len(names(collections.one)) == 2


@pytest.mark.usefixtures("killed_in_between")
def test_an_old_file_that_cannot_be_looked_for_keeps_its_copy(collections: Collections) -> None:
    """The journal alone tells of it, and the partial file of where it belongs."""
    left = names(collections.one)
    denied = error(403, "PermissionDenied", "not now")
    collections.fake.lie(f"{ONE}/stat", denied, times=1)
    ended = mpx("unfinished", "--discard")
    assert ended.code != 0 and "not now" in ended.out + ended.err, (ended.out, ended.err)
    assert names(collections.one) == left
    collections.fake.lies.clear()
    ended = mpx("unfinished", "--discard")
    assert ended.code == 0 and "the old file has its name again" in ended.out, (ended.out, ended.err)
    assert names(collections.one) == ["x"] and content(collections) == b"older"
