"""The control loop and a carrier that keeps everything in memory: what is decided is done, and recorded."""

import threading
import time
from collections.abc import Callable, Mapping, Sequence

import pytest
from unit.made_up_context import a_file
from unit.made_up_copy import BLOCKS, CONTENT, Chunks, Copy, Recorder, Steps
from unit.memory_carrier import BLOCK_BYTES

from mpx.engine.endpoint import FileInfo, Kind
from mpx.engine.file_transfer import FileTransfer
from mpx.engine.path_set import DEFAULT_PATH
from mpx.engine.tuner import Decision, Sample
from mpx.errors import Interrupted, NoSpace
from mpx.multipath.paths_in_use import Change
from mpx.transfer.control_loop import OnePath
from mpx.transfer.stream_tuning import StreamTuning
from mpx.transfer.timeline import MOST_NOTED


def test_without_a_tuner_the_streams_stay_as_they_begin() -> None:
    copy = Copy()
    copy.put()
    copy.run()
    assert copy.carrier.targets["final"] == CONTENT
    assert copy.carrier.asked == [(DEFAULT_PATH, 3)] and copy.reasons == ["fixed"]


def test_what_the_tuner_decides_is_done_and_recorded() -> None:
    copy = Copy(Steps())
    copy.loop.start()
    copy.queue.put(a_file(len(CONTENT)))  # and there may be more, so that the end is not near
    began_s = time.monotonic()
    for quarter in range(4):
        copy.carrier.arrived[DEFAULT_PATH] = quarter * len(CONTENT) // 4
        copy.loop.tick(began_s + quarter)
    assert copy.carrier.asked == [(DEFAULT_PATH, count) for count in (4, 8, 12, 16)]
    assert copy.reasons == ["4 of them", "8 of them", "12 of them", "16 of them"]
    assert copy.progress[-1].reason == "12 of them" and copy.progress[-1].streams == 12


class Says:
    """A tuner that decides on these numbers, one after the other."""

    def __init__(self, *numbers: int) -> None:
        self._numbers = list(numbers)

    def observe(self, _now_s: float, samples: Mapping[str, Sample]) -> Sequence[Decision]:
        (path,) = samples
        return [Decision(path, self._numbers.pop(0), "so many")]

    def disturbed(self, now_s: float) -> None: ...


def test_streams_that_do_not_come_are_wanted_still() -> None:
    """But not those that a tuner closes, which are open when it says so."""
    tuning = StreamTuning(Copy().carrier, Copy().context.controls, {(DEFAULT_PATH,): Says(8, 3, 2)}, first=[])
    three = {DEFAULT_PATH: Sample(3, 0, 0)}
    tuning.begin(three)
    assert tuning.wanted(DEFAULT_PATH) == 8
    tuning.observe(4.0, three)
    assert tuning.wanted(DEFAULT_PATH) == 8
    tuning.observe(8.0, three)
    assert tuning.wanted(DEFAULT_PATH) == 2


def test_an_outage_is_told_only_while_bytes_are_missing() -> None:
    copy = Copy()
    copy.loop.start()
    lost, moving = a_file(1000), a_file(len(CONTENT))
    copy.queue.put(lost)
    copy.queue.settle(lost)  # given up: its bytes never come
    began_s = time.monotonic()
    said = []
    for second in range(8):
        if second == 4:
            copy.queue.put(moving)
        copy.loop.tick(began_s + second)
        said.append(copy.progress[-1].outage)
    assert said == ["", "", "", "", "", "", "no new data for 3 s", "no new data for 4 s"]
    copy.carrier.arrived[DEFAULT_PATH] = 100
    copy.loop.tick(began_s + 8)
    assert copy.progress[-1].outage == ""
    assert copy.report.notes == []  # the first data
    for second in (12, 15):
        copy.carrier.arrived[DEFAULT_PATH] += 100
        copy.loop.tick(began_s + second)
    assert copy.report.notes == ["no new data for 4 s, until 12 s", "no new data for 3 s, until 15 s"]


def test_what_is_waited_for_while_nothing_is_missing_is_no_outage() -> None:
    """Files are verified and named, and then further ones are found."""
    copy = Copy()
    copy.loop.start()
    first = a_file(100)
    copy.queue.put(first)
    began_s = copy.loop._began_s
    copy.carrier.arrived[DEFAULT_PATH] = 50
    copy.loop.tick(began_s)
    copy.queue.settle(first)
    copy.loop.tick(began_s + 1)
    copy.queue.put(a_file(100))
    copy.carrier.arrived[DEFAULT_PATH] = 150
    copy.loop.tick(began_s + 9)
    assert copy.report.notes == []


def test_few_outages_are_noted_one_by_one() -> None:
    copy = Copy()
    copy.loop.start()
    copy.queue.put(a_file(len(CONTENT)))
    for number in range(3 * MOST_NOTED):
        copy.carrier.arrived[DEFAULT_PATH] += 10
        copy.loop.tick(copy.loop._began_s + 5 * number)
        copy.loop.tick(copy.loop._began_s + 5 * number + 4)  # still quiet
    assert len(copy.report.notes) == MOST_NOTED and "further" in copy.report.notes[-1]


def test_progress_ends_with_the_end_whenever_the_last_file_is_settled() -> None:
    file = a_file(len(CONTENT))

    class SettlesMeanwhile(OnePath):
        def observe(self, _now_s: float, _silent_s: Callable[[str], float | None]) -> Sequence[Change]:
            copy.report.files.moved = 1
            copy.queue.settle(file)
            return ()

    copy = Copy(watch=SettlesMeanwhile(lambda: None))
    copy.queue.put(file)
    copy.queue.end_listing()
    copy.loop.start()
    copy.loop.run()
    assert copy.progress[-1].files_done == 1


def test_between_two_chunks_nothing_moves() -> None:
    tuner = Chunks(3 * BLOCK_BYTES)
    copy = Copy(tuner)
    copy.put()
    copy.run()
    assert copy.carrier.targets["final"] == CONTENT
    chunks = [i * 3 * BLOCK_BYTES for i in range(BLOCKS // 3)]
    assert tuner.seen[: len(chunks)] == chunks == copy.carrier.renewed_at[: len(chunks)]


def test_a_file_that_cannot_be_copied_does_not_keep_the_others() -> None:
    copy = Copy()
    for name in ("gone", "source"):
        copy.queue.put(
            FileTransfer(name, f"final {name}", ".part", FileInfo(Kind.FILE, len(CONTENT), 1.0, 0o644))
        )
    copy.queue.end_listing()
    copy.run()
    assert copy.supervisor.lost == ["gone: gone does not exist"]
    assert copy.carrier.targets == {"final source": bytearray(CONTENT)}
    assert copy.failure.error is None


def test_the_user_ends_a_copy_that_stands_still() -> None:
    copy = Copy()
    copy.put()
    copy.carrier.runs.clear()
    threading.Timer(0, copy.failure.by_user.set).start()
    copy.run()
    assert isinstance(copy.failure.error, Interrupted) and copy.carrier.is_stopped


def test_a_journal_without_space_ends_the_copy() -> None:
    def full() -> None:
        raise NoSpace("no space for the journal")

    copy = Copy(journal=full)
    copy.put()
    copy.loop.start()
    with pytest.raises(NoSpace):
        copy.loop.run()


def test_nothing_is_decided_when_the_end_is_near() -> None:
    tuner = Recorder()
    copy = Copy(tuner)
    copy.loop.start()
    copy.put()
    began_s = time.monotonic()
    copy.carrier.arrived[DEFAULT_PATH] = BLOCK_BYTES
    copy.loop.tick(began_s)
    asked = len(tuner.asked)
    copy.carrier.arrived[DEFAULT_PATH] = len(CONTENT) - BLOCK_BYTES  # the rest takes a tenth of this second
    copy.loop.tick(began_s + 1.0)
    assert len(tuner.asked) == asked
    assert copy.progress[-1].bytes_done == 0  # as the report has no file yet
    assert copy.progress[-1].goodput_bps > 0


def test_beside_chunks_the_background_is_not_read_when_the_end_is_near() -> None:
    """A tuner that lets through one chunk at a time is asked to the end, and nobody else."""
    begun = list[float]()

    class Monitors:
        def __getitem__(self, _: str) -> None:
            begun.append(time.monotonic())

    tuner = Chunks(3 * BLOCK_BYTES)
    copy = Copy(tuner, monitors=Monitors())  # type: ignore[arg-type]
    copy.loop.start()
    copy.put()
    began_s = time.monotonic()
    for second in range(4):
        copy.carrier.arrived[DEFAULT_PATH] = (second + 1) * len(CONTENT) // 4  # over within some seconds
        copy.loop.tick(began_s + second)
    assert not begun and copy.loop._tuning.is_chunked
