"""The control loop and the paths of a copy: each is read, switched and searched by itself."""

import time
from collections.abc import Callable, Sequence

from unit.made_up_context import a_file
from unit.made_up_copy import CONTENT, Chunks, Copy, Recorder
from unit.memory_carrier import BLOCK_BYTES

from mpx.engine.endpoint import Rtt
from mpx.engine.path_set import DEFAULT_PATH
from mpx.engine.tuner import Sample
from mpx.multipath.paths_in_use import Change
from mpx.recognition.policy import Switch
from mpx.transfer.background import LONG_S, WORTH_A_SWITCH_S
from mpx.transfer.control_loop import OnePath


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
    latest = lately = None

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
        assert not list(copy.background.observe(now_s, sample, WORTH_A_SWITCH_S / 2, 1))
    assert monitor.told == []
