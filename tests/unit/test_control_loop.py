"""The control loop and a carrier that keeps everything in memory: what is decided is done, and recorded."""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pytest
from unit.made_up_context import Onlooker, a_context, a_file
from unit.memory_carrier import BLOCK_BYTES, MemoryCarrier

from mpx.engine.carrier import CarrierContext
from mpx.engine.endpoint import FileInfo, Kind, Rtt
from mpx.engine.file_transfer import FileTransfer
from mpx.engine.path_set import DEFAULT_PATH
from mpx.engine.tuner import Decision, Sample, Tuner
from mpx.errors import Interrupted, MpxError, NoSpace
from mpx.multipath.paths_in_use import Change
from mpx.recognition.switching import Switch
from mpx.report import Progress, Report
from mpx.transfer.background import LONG_S, WORTH_A_SWITCH_S, Background
from mpx.transfer.control_loop import ControlLoop, OnePath
from mpx.transfer.stream_tuning import StreamTuning
from mpx.transfer.timeline import MOST_NOTED, Timeline

BLOCKS = 12
CONTENT = bytes(range(250)) * 4 * BLOCKS
FIRST = [Decision(DEFAULT_PATH, 3, "fixed")]


class Settles(Onlooker):
    """A supervisor that is done with a file as soon as the carrier is."""

    def __init__(self, context: CarrierContext) -> None:
        self._queue = context.queue
        self.lost: list[str] = []

    def whole(self, file: FileTransfer) -> None:
        self._queue.settle(file)

    def given_up(self, file: FileTransfer, error: MpxError) -> None:
        self.lost.append(f"{file.source}: {error}")
        self._queue.settle(file)


class Steps:
    """A tuner that wants another number of streams with each quarter of the file."""

    def observe(self, _now_s: float, samples: Mapping[str, Sample]) -> Sequence[Decision]:
        (sample,) = samples.values()
        wanted = 4 + 4 * sample.arrived_bytes // (len(CONTENT) // 4)
        return [] if sample.streams == wanted else [Decision(DEFAULT_PATH, wanted, f"{wanted} of them")]

    def disturbed(self, now_s: float) -> None: ...


@dataclass
class Chunks:
    """A tuner that lets so many bytes through, and looks what has come of them before it lets more."""

    chunk_bytes: int
    path: str = DEFAULT_PATH
    seen: list[int] = field(default_factory=list)  # what had arrived at each decision

    def observe(self, _now_s: float, samples: Mapping[str, Sample]) -> Sequence[Decision]:
        (sample,) = samples.values()
        if self.seen and not sample.still:
            return []
        self.seen.append(sample.arrived_bytes)
        return [Decision(self.path, len(self.seen), "chunk", chunk_bytes=self.chunk_bytes, barrier=True)]

    def disturbed(self, now_s: float) -> None: ...


class Recorder:
    """A tuner that is content with what there is, and remembers what it was asked and told."""

    def __init__(self) -> None:
        self.asked: list[set[str]] = []
        self.disturbances = 0

    def observe(self, _now_s: float, samples: Mapping[str, Sample]) -> Sequence[Decision]:
        self.asked.append(set(samples))
        return []

    def disturbed(self, _now_s: float) -> None:
        self.disturbances += 1


class Copy:
    """A control loop, its carrier, and a file (or what else is queued) between two dictionaries."""

    def __init__(
        self,
        tuner: Tuner | Mapping[tuple[str, ...], Tuner] | None = None,
        *,
        paths: Sequence[str] = (DEFAULT_PATH,),
        watch: OnePath | None = None,
        journal: Callable[[], None] = lambda: None,
        monitors: Mapping[str, object] | None = None,
    ) -> None:
        self.context = a_context(paths=paths)
        self.supervisor = Settles(self.context)
        self.context = replace(self.context, supervisor=self.supervisor)
        self.failure, self.queue = self.context.failure, self.context.queue
        self.carrier = MemoryCarrier(self.context, {"source": CONTENT}, paths)
        self.report = Report("source", "final")
        self.progress: list[Progress] = []
        self.backgrounds = {
            path: Background(
                self.carrier,
                path,
                "cubic",
                control.congestion_refused,
                self.report.note,
                begin_monitor=(lambda _, path=path: monitors[path]) if monitors else None,  # type: ignore[misc]
            )
            for path, control in self.context.controls.items()
        }
        self.background = next(iter(self.backgrounds.values()))
        tuners = tuner if isinstance(tuner, Mapping) else {tuple(paths): tuner} if tuner else {}
        self.loop = ControlLoop(
            self.carrier,
            self.queue,
            self.failure,
            tuning=StreamTuning(
                self.carrier, self.context.controls, tuners, first=FIRST * (DEFAULT_PATH in paths)
            ),
            backgrounds=self.backgrounds,
            paths=watch or OnePath(lambda: None),
            timeline=Timeline(self.report, self.queue, self.progress.append),
            journal_arrivals=journal,
        )

    def put(self) -> None:
        self.queue.put(a_file(len(CONTENT)))
        self.queue.end_listing()

    def run(self) -> None:
        self.loop.start()
        self.carrier.start()
        self.loop.run()
        if self.failure.cancel.is_set():
            self.carrier.stop()
        self.carrier.join()

    @property
    def reasons(self) -> list[str]:
        return [event.reason for event in self.report.timeline]


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


class LosesPath(OnePath):
    """Two paths, one of which is lost from the start."""

    lost = frozenset({"2"})

    def __init__(self) -> None:
        super().__init__(lambda: Rtt(0.05, None, None, None))
        self.changes = [Change("2", "lost")]

    def observe(self, _now_s: float, _silent_s: Callable[[str], float | None], /) -> Sequence[Change]:
        changes, self.changes = self.changes, []
        return changes


def test_a_lost_path_is_recorded_and_not_tuned() -> None:
    tuner = Recorder()
    copy = Copy(tuner, paths=("1", "2"), watch=LosesPath())
    copy.queue.put(a_file(len(CONTENT)))
    copy.loop.tick(time.monotonic())
    assert copy.reasons == ["lost"] and copy.report.timeline[0].rtt_s == 0.05
    assert tuner.asked == [{"1"}] and tuner.disturbances == 1


class WantsBbr:
    """A monitor that asks for BBR at once, and remembers what became of it."""

    trouble, summary = "", "the background was read once"
    has_no_model = False

    def __init__(self) -> None:
        self.told: list[str] = []

    def observe(self, _now_s: float, _sample: Sample) -> Switch | None:
        return None if self.told else Switch("bbr", "others do")

    def switched(self, _now_s: float, congestion: str) -> None:
        self.told.append(congestion)

    def disturbed(self, _now_s: float) -> None:
        self.told.append("disturbed")

    def refused(self) -> None:
        self.told.append("refused")

    def end(self) -> None:
        self.told.append("ended")


class Content(WantsBbr):
    """A monitor that asks for nothing."""

    def observe(self, _now_s: float, _sample: Sample) -> Switch | None:
        return None


def switching(monitor: WantsBbr, *refused: str) -> tuple[Copy, Recorder, float]:
    """Return a copy that has moved data for long enough to be worth a switch, and the time."""
    tuner = Recorder()
    copy = Copy(tuner, monitors={DEFAULT_PATH: monitor})
    copy.carrier.refuses.update(refused)
    copy.queue.put(a_file(len(CONTENT)))
    began_s = time.monotonic()
    copy.carrier.arrived[DEFAULT_PATH] = BLOCK_BYTES
    copy.loop.tick(began_s)
    assert monitor.told == []  # most copies are over before
    copy.loop.tick(began_s + LONG_S)
    return copy, tuner, began_s + LONG_S


def test_a_switch_is_made_for_all_streams_and_taken_back_where_a_server_refuses_it() -> None:
    monitor = WantsBbr()
    copy, tuner, now_s = switching(monitor)
    assert copy.carrier.congestion == [(DEFAULT_PATH, "bbr")] and tuner.disturbances == 1
    assert copy.report.timeline[-1].congestion == "bbr" and copy.reasons == ["switched to bbr: others do"]
    copy.context.controls[DEFAULT_PATH].congestion_refused.set()
    copy.loop.tick(now_s + 1)
    copy.loop.tick(now_s + 2)
    assert [name for _, name in copy.carrier.congestion] == ["bbr", "cubic"] and monitor.told == [
        "bbr",
        "cubic",
    ]
    assert copy.reasons[1:] == ["the server refused the switch and still uses cubic"]
    copy.background.end()
    assert copy.report.notes == [monitor.summary] and monitor.told[-1] == "ended"


def test_each_path_is_read_and_switched_by_itself() -> None:
    monitors = {"1": WantsBbr(), "2": Content()}
    tuners = {("1",): Recorder(), ("2",): Recorder()}
    copy = Copy(tuners, paths=("1", "2"), monitors=monitors)
    copy.queue.put(a_file(len(CONTENT)))
    began_s = time.monotonic()
    copy.carrier.arrived.update({"1": BLOCK_BYTES, "2": BLOCK_BYTES})
    copy.loop.tick(began_s)
    copy.loop.tick(began_s + LONG_S)
    assert copy.carrier.congestion == [("1", "bbr")]
    assert [tuner.disturbances for tuner in tuners.values()] == [1, 0]
    assert [(event.path, event.congestion) for event in copy.report.timeline] == [("1", "bbr")]
    copy.context.controls["1"].congestion_refused.set()
    copy.loop.tick(began_s + LONG_S + 1)
    assert copy.carrier.congestion == [("1", "bbr"), ("1", "cubic")] and monitors["2"].told == []


def test_a_path_is_not_read_while_others_carry_its_streams() -> None:
    monitors = {"1": Content(), "2": WantsBbr()}
    watch = LosesPath()
    copy = Copy(paths=("1", "2"), monitors=monitors, watch=watch)
    copy.queue.put(a_file(len(CONTENT)))
    began_s = time.monotonic()
    copy.carrier.arrived.update({"1": BLOCK_BYTES, "2": BLOCK_BYTES})
    for second in range(3):
        copy.loop.tick(began_s + second * LONG_S)
    assert copy.carrier.congestion == []
    watch.lost = frozenset()
    copy.loop.tick(began_s + 4 * LONG_S)
    copy.loop.tick(began_s + 5 * LONG_S)
    assert copy.carrier.congestion == [("2", "bbr")]
    watch.changes = [Change("2", "lost again")]
    copy.loop.tick(began_s + 6 * LONG_S)
    assert monitors["1"].told == ["disturbed"] and monitors["2"].told == ["bbr", "disturbed"]


def test_chunks_of_one_path_do_not_wait_for_those_of_another() -> None:
    tuners = {(path,): Chunks(BLOCK_BYTES, path) for path in ("1", "2")}
    copy = Copy(tuners, paths=("1", "2"))
    copy.queue.put(a_file(len(CONTENT)))
    copy.loop.start()
    gates = {path: control.gate for path, control in copy.context.controls.items()}
    began_s = time.monotonic()
    assert gates["1"].take(BLOCK_BYTES) == BLOCK_BYTES  # and it does not arrive for a while
    for chunk in range(1, 4):
        assert gates["2"].take(len(CONTENT)) == BLOCK_BYTES
        copy.carrier.arrived["2"] = chunk * BLOCK_BYTES
        copy.loop.tick(began_s + chunk)
    assert copy.carrier.renewed_at == [0, 0, BLOCK_BYTES, 2 * BLOCK_BYTES, 3 * BLOCK_BYTES]
    assert gates["1"].take(BLOCK_BYTES) == 0
    copy.carrier.arrived["1"] = BLOCK_BYTES
    copy.loop.tick(began_s + 4)
    assert gates["1"].take(len(CONTENT)) == BLOCK_BYTES
    assert [event.path for event in copy.report.timeline] == ["1", "2", "2", "2", "2", "1"]


def test_a_switch_that_is_not_permitted_changes_nothing() -> None:
    monitor = WantsBbr()
    copy, tuner, _ = switching(monitor, "bbr")
    assert monitor.told == ["refused"] and not tuner.disturbances and not copy.reasons
    assert copy.report.notes == ["the streams stay with cubic: bbr is not permitted"]


def test_no_monitor_begins_where_little_is_left() -> None:
    monitor = WantsBbr()
    copy = Copy(monitors={DEFAULT_PATH: monitor})
    copy.put()
    sample = Sample(1, BLOCK_BYTES, 1)
    for now_s in (0.0, 2 * LONG_S):
        assert not list(copy.background.observe(now_s, sample, WORTH_A_SWITCH_S / 2))
    assert monitor.told == []
