"""A copy in memory for tests of the control loop: made-up tuners, a carrier without connections, a report."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from unit.made_up_context import Onlooker, a_context, a_file
from unit.memory_carrier import MemoryCarrier

from mpx.engine.carrier import CarrierContext
from mpx.engine.file_transfer import FileTransfer
from mpx.engine.path_set import DEFAULT_PATH
from mpx.engine.tuner import Decision, Sample, Tuner
from mpx.errors import MpxError
from mpx.report import Progress, Report
from mpx.transfer.background import Background
from mpx.transfer.control_loop import ControlLoop, OnePath
from mpx.transfer.stream_tuning import StreamTuning
from mpx.transfer.timeline import Timeline

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
            on_measured=lambda *_: None,
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
