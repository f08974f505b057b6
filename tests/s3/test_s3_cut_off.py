"""Kills of mpx and of servers, stalls, resets and lost answers, before real servers: nothing is lost."""

import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from interop.mpx_process import Copy, copy
from s3.buckets import Bucket, buckets_of
from s3.lying_s3 import LEAST_BYTES
from s3.scripted_s3 import Answer, Asked, FallSilent, ResetInstead, ScriptedS3
from sites import make
from web.lying import copied
from web.servers.s3_site import S3Site
from web.servers.seaweedfs import seaweedfs_site

import mpx as api
from mpx.errors import Interrupted

SIZE, PARTS = 2 * LEAST_BYTES + 7, 3
MIB = 1 << 20
KEPT = 0.9 if "MPX_KILLS" in os.environ else 0.5  # beside other tests what has arrived is confirmed later
SLOW = api.CopyOptions(rate_bps=80e6, streams=2)


def once(what: str, fault: type[Exception]) -> Callable[..., None]:
    """Fail at the first request of a kind, or at its answer."""
    left = [fault]

    def fail(asked: Asked) -> None:
        if asked.what == what and left:
            raise left.pop()

    return fail


def lost(what: str, fault: type[Exception]) -> Callable[[Asked, Answer], Answer]:
    """The server has done what it was asked for, and its first answer is lost."""
    fail = once(what, fault)

    def after(asked: Asked, answer: Answer) -> Answer:
        fail(asked)
        return answer

    return after


@pytest.mark.parametrize(
    ("what", "fault", "is_done"),
    [
        ("PUT", ResetInstead, True),
        ("begin", ResetInstead, True),
        ("part", ResetInstead, False),
        ("part", FallSilent, True),
        ("complete", ResetInstead, True),
        ("complete", FallSilent, True),
    ],
)
def test_an_upload_is_cut_off(
    any_bucket: Bucket,
    before: ScriptedS3,
    least_parts: None,
    tmp_path: Path,
    what: str,
    fault: type[Exception],
    *,
    is_done: bool,
) -> None:
    """Whether or not the server has done what was asked, which is not known here."""
    if is_done:
        before.after = lost(what, fault)
    else:
        before.instead = once(what, fault)
    source = make(tmp_path / "source", 1000 if what == "PUT" else SIZE)
    timeout_s = 2.0 if fault is FallSilent else 20.0
    done = copied(source, f"{any_bucket.url}key", timeout_s=timeout_s, retries=3)
    assert done.code == 0, done
    assert any_bucket.get("key") == source.read_bytes()
    # Of one nobody has learned the name. moto does not tell when it has begun, SeaweedFS not who began it.
    assert len(any_bucket.uploads()) == (what == "begin")
    if what != "PUT":
        assert before.count("part") == PARTS + (what == "part"), "parts that were stored are sent again"


@pytest.mark.parametrize("what", ["PUT", "part", "complete"])
def test_a_copy_at_the_server_is_cut_off(
    any_bucket: Bucket, before: ScriptedS3, least_parts: None, tmp_path: Path, what: str
) -> None:
    data = make(tmp_path / "x", 1000 if what == "PUT" else SIZE).read_bytes()
    any_bucket.put("key", data)
    before.after = lost(what, ResetInstead)
    done = copied(f"{any_bucket.url}key", f"{any_bucket.url}copy", timeout_s=20.0, retries=3)
    assert done.code == 0, done
    assert any_bucket.get("copy") == data and not any_bucket.uploads()


def test_a_copy_at_the_server_goes_on(
    any_bucket: Bucket, before: ScriptedS3, least_parts: None, tmp_path: Path
) -> None:
    """Parts that the server has copied are not copied again, unless the source is another object by then."""
    for is_changed in (False, True):
        data = make(tmp_path / "x", SIZE).read_bytes()
        any_bucket.put("key", data)
        cancel = threading.Event()

        def stop(asked: Asked, answer: Answer, cancel: threading.Event = cancel) -> Answer:
            if asked.what == "part":
                cancel.set()
            return answer

        before.after = stop
        ends = f"{any_bucket.url}key", f"{any_bucket.url}copy {is_changed}"
        with pytest.raises(Interrupted):
            api.copy(*ends, api.CopyOptions(streams=1, third_party="only"), cancel=cancel)
        before.after = lambda _, answer: answer
        kept = {str(number) for number in any_bucket.parts()}  # one more may be under way
        assert kept
        if is_changed:
            data = data[::-1]
            any_bucket.put("key", data)
        before.asked.clear()
        report = api.copy(*ends, api.CopyOptions(third_party="only"))
        assert any_bucket.get(f"copy {is_changed}") == data and not any_bucket.uploads()
        sent = {asked.query["partNumber"] for asked in before.asked if asked.what == "part"}
        assert len(sent) == PARTS if is_changed else not sent & kept
        assert (report.bytes.resumed > 0) != is_changed


def test_mpx_is_killed_in_an_upload(
    any_bucket: Bucket, before: ScriptedS3, tmp_path: Path, eventually: Callable[..., None]
) -> None:
    """All parts that the server has stored are kept, and no byte of them goes again."""
    source = make(tmp_path / "source", 27 * MIB + 1)
    stored: dict[str, int] = {}

    def note(asked: Asked, answer: Answer) -> Answer:
        if asked.what == "part" and answer[0] == 200:
            stored[asked.query["partNumber"]] = len(asked.body)
        return answer

    before.after = note
    first = Copy(tmp_path, source, f"{any_bucket.url}key", "--rate", "160Mbit/s", "--streams", "2")
    eventually(lambda: len(stored) >= 2)
    first.kill()
    assert first.end().code == -9
    assert any_bucket.keys() == set()
    kept = {str(number) for number in any_bucket.parts()}
    kept_bytes = sum(stored[number] for number in kept)
    assert len(kept) >= 2
    before.asked.clear()
    again = copy(tmp_path, source, f"{any_bucket.url}key")
    assert (again.code, again.stderr) == (0, "")
    assert any_bucket.get("key") == source.read_bytes()
    sent = [asked for asked in before.asked if asked.what == "part"]
    assert not kept & {asked.query["partNumber"] for asked in sent}
    assert again.resumed_bytes >= kept_bytes  # a part may be stored that nobody was told of
    assert again.moved_bytes == sum(len(asked.body) for asked in sent)
    assert again.resumed_bytes + again.moved_bytes == 27 * MIB + 1


def test_mpx_is_killed_in_a_download(
    bucket: Bucket, tmp_path: Path, here: Path, eventually: Callable[..., None]
) -> None:
    data = make(tmp_path / "data", 24 * MIB + 1).read_bytes()
    bucket.put("key", data)
    first = Copy(tmp_path, f"{bucket.url}key", here / "file", "--rate", "80Mbit/s")
    eventually(lambda: _arrived(here) > 0.8 * len(data) or first.process.poll() is not None)
    first.kill()
    arrived = min(len(data), _arrived(here))
    assert first.end().code == -9
    assert not (here / "file").exists()
    again = copy(tmp_path, f"{bucket.url}key", here / "file")
    assert (again.code, again.stderr) == (0, "")
    assert (here / "file").read_bytes() == data
    assert again.resumed_bytes + again.moved_bytes == len(data)
    assert again.resumed_bytes > KEPT * arrived


def _arrived(folder: Path) -> int:
    """How many bytes the files of a folder take on disk."""
    return sum(path.stat().st_blocks * 512 for path in folder.iterdir())


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[S3Site]:
    """A server that the test may kill, and that has on disk what it has stored."""
    (tmp_path / "server").mkdir()
    with seaweedfs_site(tmp_path / "server") as site:
        yield site


def test_a_server_is_killed_and_comes_back(
    own_server: S3Site, least_parts: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """In an upload, whose parts are kept, and in a download."""
    bucket = buckets_of(own_server, monkeypatch)
    source, back = make(tmp_path / "source", SIZE), tmp_path / "back"
    for ends in ((source, f"{bucket.url}key"), (f"{bucket.url}key", back)):
        killed = threading.Event()

        def kill(progress: api.Progress, killed: threading.Event = killed) -> None:
            if progress.bytes_done and not killed.is_set():
                killed.set()
                own_server.kill()
                own_server.start()

        report = api.copy(*map(str, ends), SLOW, on_progress=kill)
        assert killed.is_set() and report.status == "done"
    assert back.read_bytes() == source.read_bytes()
    assert not bucket.uploads()
