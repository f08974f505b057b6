"""`--overwrite never` between collections: what others have stored stays, in later runs of the copy, too."""

import os

from globus.conftest import Collections
from globus.fake_task import FakeTask
from mpx_command import Ended, mpx, refused
from sites import make

THEIRS = b"of others."


def copy_x(collections: Collections, *words: object, overwrite: str = "never") -> Ended:
    if not (collections.one / "x").exists():
        make(collections.one / "x", len(THEIRS))
    return mpx("copy", "--overwrite", overwrite, *words, f"{collections.one_url}x", f"{collections.other_url}x")


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
