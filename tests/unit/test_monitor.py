"""What is read of the background while a copy runs, when, and what comes of it."""

import threading
from collections.abc import Sequence
from itertools import pairwise

import pytest

from mpx.engine.tuner import Sample
from mpx.errors import UsageError
from mpx.recognition.mix import MIXES, UNKNOWN, Mix, likeliest
from mpx.recognition.monitor import (
    READ_S,
    SETTLES_RTT,
    SETTLES_S,
    BackgroundMonitor,
    Loading,
)
from mpx.recognition.observation import DIPS_CUBIC, TRANSFER_BBR, Own
from mpx.recognition.pulses.pulse import QueueResponse
from mpx.recognition.pulses.rests import AFTER, CHANGED, FIRST_S, LATELY, LATEST_S, LONGEST_S, MORE
from mpx.recognition.switching import IN_A_ROW, UNSURE_READINGS, SwitchHysteresis
from mpx.rtt.series import Probe

WINDOW_S, LONGER_S, RTT_S = 5.0, 8.0, 0.05
SETTLED_S = SETTLES_S + SETTLES_RTT * RTT_S
BEGAN_S, TICK_S = 1000.0, 0.1
BPS = 80e6


def certain(name: str) -> Mix:
    return likeliest([0.99 if each == name else 0.002 for each in MIXES])


class Scripted:
    """A model that says `says`, and who probes for it; remembers what it was asked."""

    base_s = 0.04

    def __init__(self, says: str) -> None:
        self.says = certain(says)
        self.asked: list[tuple[float, Own, list[tuple[float, float]]]] = []  # since when, of whom, goodput
        self.from_s = 0.0
        self.trouble = ""
        self.begun = self.ended = 0
        self.told: list[QueueResponse] | None = None
        self.rests: list[float] = []
        self.now_s = self.probes_from_s = 0.0  # probes are there from then on

    def begin(self) -> None:
        self.begun += 1

    def end(self) -> None:
        self.ended += 1

    def rest(self, until_s: float) -> None:
        self.rests.append(until_s)

    def window_s(self, kind: str) -> float:
        return LONGER_S if kind == TRANSFER_BBR else WINDOW_S

    def series(self, from_s: float) -> list[Probe]:
        self.from_s = from_s
        first_s = max(from_s, self.probes_from_s)
        known = round((self.now_s - RTT_S - first_s) / TICK_S) + 1
        return [Probe(first_s + number * TICK_S, RTT_S) for number in range(known)]

    def responses(self, from_s: float) -> list[QueueResponse] | None:
        return self.told

    def classify(
        self,
        series: Sequence[Probe],
        base_s: float,
        goodput: Sequence[tuple[float, float]] | None = None,
        *,
        own: Own | None = None,
        responses: Sequence[QueueResponse] = (),
    ) -> Mix:
        assert list(responses) == (self.told or [])
        assert series and base_s == self.base_s and goodput is not None and own is not None
        self.asked.append((self.from_s, own, list(goodput)))
        return self.says


class AtOnce(Loading):
    """Loads where it is begun, so that the clock of the copy is the only one."""

    def start(self) -> None:
        self.run()


def permitted(_: str) -> str:
    return ""


class Copy:
    """A copy of so many streams at 80 Mbit/s, looked at ten times a second."""

    def __init__(self, says: str, congestion: str = "cubic") -> None:
        self.model = Scripted(says)
        hysteresis = SwitchHysteresis("fair", congestion, permitted)
        self.selection = BackgroundMonitor(AtOnce(self.load), self.model, hysteresis, congestion)
        self.now_s, self.arrived, self.loaded = BEGAN_S, 0, 0
        self.switches: list[tuple[float, str]] = []
        self.is_permitted = True

    def load(self) -> Scripted:
        self.loaded += 1
        return self.model

    def run(self, seconds: float, streams: int = 4, bps: float = BPS) -> None:
        for _ in range(round(seconds / TICK_S)):
            self.now_s += TICK_S
            self.model.now_s = self.now_s
            self.arrived += round(bps * TICK_S / 8)
            switch = self.selection.observe(self.now_s, Sample(streams, self.arrived, 10**12, RTT_S))
            if switch:
                self.switches.append((self.now_s - BEGAN_S, switch.congestion))
                if self.is_permitted:
                    self.selection.switched(self.now_s, switch.congestion)
                else:
                    self.selection.refused()


def test_the_first_reading_is_of_a_whole_window_after_the_beginning() -> None:
    copy = Copy("none")
    copy.run(SETTLED_S + WINDOW_S)
    assert copy.model.asked == []
    copy.run(2 * TICK_S)
    ((from_s, own, _),) = copy.model.asked
    assert from_s == pytest.approx(BEGAN_S + TICK_S + SETTLED_S)
    assert own == Own("cubic", 4)


def test_nothing_is_read_of_less_than_a_window_of_probes() -> None:
    """They begin when the server has been asked how, and anew where a way of probing was lost."""
    copy = Copy("B")
    copy.model.probes_from_s = BEGAN_S + SETTLED_S + 1.2
    copy.run(SETTLED_S + 1.2 + WINDOW_S - 2 * TICK_S)
    assert copy.model.asked == []
    copy.run(4 * TICK_S)
    assert len(copy.model.asked) == 1
    copy.model.probes_from_s = copy.now_s
    copy.run(WINDOW_S - 2 * TICK_S)
    assert len(copy.model.asked) == 1
    copy.run(4 * TICK_S)
    assert len(copy.model.asked) == 2


def test_what_dips_tell_is_of_another_kind() -> None:
    copy = Copy("none")
    copy.model.told = [QueueResponse(BEGAN_S + 5, 0.5, 0.5)]
    copy.run(20)
    assert {own for _, own, _ in copy.model.asked} == {Own("cubic", 4, dips=True)}
    assert Own("cubic", 4, dips=True).kind == DIPS_CUBIC


@pytest.mark.parametrize(("congestion", "makes_dips"), [("bbr", True), ("bbr", False), ("cubic", True)])
def test_dips_of_bbr_rest_ever_longer_where_nothing_asks_for_a_change(
    congestion: str, makes_dips: bool
) -> None:
    copy = Copy("B" if congestion == "bbr" else "C", congestion)
    copy.model.told = [QueueResponse(BEGAN_S + 5, 0.5, 0.5)] if makes_dips else None
    copy.run(500)
    if congestion == "cubic" or not makes_dips:
        assert copy.model.rests == [] and len(copy.model.asked) > 400
        return
    assert len(copy.model.rests) == len(copy.model.asked) // AFTER == 5
    begins = [from_s for from_s, _, _ in copy.model.asked]
    assert begins[AFTER] == copy.model.rests[0]  # nothing of before is read again
    rests_s = [FIRST_S, MORE * FIRST_S, LONGEST_S, LONGEST_S, LONGEST_S]
    assert [later - earlier for earlier, later in pairwise(copy.model.rests)] == [
        pytest.approx(rest_s + WINDOW_S + (AFTER - 1) * READ_S, abs=2) for rest_s in rests_s[1:]
    ]


@pytest.mark.parametrize("times", [CHANGED + 0.1, 1 / (CHANGED + 0.1)])
def test_a_rest_ends_where_our_goodput_becomes_another(times: float) -> None:
    copy = Copy("B", "bbr")
    copy.model.told = [QueueResponse(BEGAN_S + 5, 0.5, 0.5)]
    copy.run(SETTLED_S + WINDOW_S + AFTER * READ_S + 0.5 * FIRST_S)
    (planned_s,) = copy.model.rests
    changed_s, read = copy.now_s, len(copy.model.asked)
    copy.run(LATEST_S + 0.1, bps=times * BPS)
    _, ended_s = copy.model.rests
    assert changed_s < ended_s <= copy.now_s < planned_s
    copy.run(WINDOW_S + 0.5, bps=times * BPS)
    from_s, _, _ = copy.model.asked[read]
    assert from_s == ended_s
    copy.run(AFTER * READ_S, bps=times * BPS)
    assert 0 < copy.model.rests[-1] - copy.now_s < FIRST_S  # the next is short again


def test_readings_that_ask_for_a_change_need_their_dips() -> None:
    copy = Copy("C", "bbr")
    copy.is_permitted = False
    copy.model.told = [QueueResponse(BEGAN_S + 5, 0.5, 0.5)]
    copy.run(SETTLED_S + WINDOW_S + 3 * READ_S)
    assert copy.model.asked and copy.model.rests == []


def test_without_any_sure_reading_bbr_is_given_up_in_minutes() -> None:
    copy = Copy("B")
    copy.model.told = [QueueResponse(BEGAN_S + 5, 0.5, 0.5)]
    copy.run(100)
    copy.model.says = Mix(UNKNOWN, 0.99, [0, 0, 1, 0, 0, 0])
    since_s = copy.now_s - BEGAN_S
    few_rests_s = LONGEST_S + LATELY / AFTER * (FIRST_S + WINDOW_S + 1)
    most_s = few_rests_s + 1.2 * UNSURE_READINGS * READ_S
    copy.run(most_s)
    (_, to_bbr), (at_s, back), *again = copy.switches  # again if readings on CUBIC still lean to BBR
    assert (to_bbr, back) == ("bbr", "cubic") and at_s - since_s < most_s and len(again) <= 1


def test_time_without_data_is_no_beginning() -> None:
    copy = Copy("none")
    copy.run(60, bps=0)
    assert copy.model.asked == []


def test_one_reading_a_second_until_it_is_sure() -> None:
    copy = Copy("B")
    copy.run(SETTLED_S + WINDOW_S + 0.3 + (IN_A_ROW - 1) * READ_S)
    assert [congestion for _, congestion in copy.switches] == ["bbr"]
    assert len(copy.model.asked) == IN_A_ROW
    assert copy.selection.latest == certain("B")


def test_a_reading_is_of_now_for_some_seconds() -> None:
    """What was there before streams ended, or paths were lost, need not be there any more."""
    copy = Copy("C")
    copy.run(SETTLED_S + WINDOW_S + 1)
    assert copy.selection.lately == "C"
    copy.run(4, streams=0)
    assert copy.selection.lately == "C"
    copy.run(2, streams=0)
    assert copy.selection.lately is None and copy.selection.latest == certain("C")


def test_after_a_switch_everything_is_watched_anew_and_as_what_it_is() -> None:
    copy = Copy("B")
    copy.run(60)
    ((at_s, _),) = copy.switches
    later = copy.model.asked[IN_A_ROW]
    assert later[0] == pytest.approx(BEGAN_S + at_s + SETTLED_S) and later[1] == Own("bbr", 4)
    first_s = at_s + SETTLED_S + LONGER_S
    assert len(copy.model.asked) - IN_A_ROW == pytest.approx(60 - first_s, rel=0.1)


def test_goodput_is_told_for_each_look_on_the_clock_of_the_probes() -> None:
    copy = Copy("none")
    copy.run(20)
    goodput = copy.model.asked[-1][2]
    assert goodput[-1] == (pytest.approx(BEGAN_S + 20, abs=READ_S), pytest.approx(BPS, rel=1e-6))
    assert all(bps == pytest.approx(BPS, rel=1e-6) for _, bps in goodput)


def test_what_was_read_is_told_in_the_end() -> None:
    copy = Copy("C")
    assert copy.selection.summary == ""
    copy.run(20)
    copy.model.says = certain("none")
    copy.run(3)
    said = len(copy.model.asked)
    assert copy.selection.summary == f"background classified {said} times: C {said - 3}, none 3"


def test_what_is_neither_cubic_nor_bbr_is_watched_as_cubic() -> None:
    copy = Copy("none", "reno")
    copy.run(20)
    assert copy.model.asked[0][1] == Own("cubic", 4)


def test_without_streams_nothing_is_read() -> None:
    copy = Copy("none")
    copy.run(30, streams=0)
    assert copy.model.asked == []


def test_a_short_copy_neither_probes_nor_loads() -> None:
    copy = Copy("B")
    copy.run(SETTLED_S - 0.2)
    assert (copy.model.begun, copy.loaded) == (0, 0)
    copy.run(60)
    assert copy.model.begun > 0 and copy.loaded == 1


def test_without_probes_it_says_why_until_there_are_some() -> None:
    copy = Copy("B")
    copy.model.trouble = "nothing answers"
    copy.run(60)
    assert copy.selection.trouble == "nothing answers" and copy.model.asked == copy.switches == []
    copy.model.trouble = ""
    copy.run(5)
    assert copy.selection.trouble == "" and len(copy.switches) == 1


def test_a_switch_that_is_refused_changes_nothing() -> None:
    copy = Copy("B")
    copy.is_permitted = False
    copy.run(60)
    assert 1 < len(copy.switches) < 6 and {own for _, own, _ in copy.model.asked} == {Own("cubic", 4)}


@pytest.mark.parametrize(
    ("error", "said"),
    [(UsageError("it is damaged"), "it is damaged"), (ImportError("no numpy"), "ImportError: no numpy")],
)
def test_without_a_model_it_says_why_and_asks_no_more(error: Exception, said: str) -> None:
    copy = Copy("B")

    def load() -> Scripted:
        copy.loaded += 1
        raise error

    copy.selection = BackgroundMonitor(
        AtOnce(load), copy.model, SwitchHysteresis("fair", "cubic", permitted), "cubic"
    )
    copy.run(60)
    assert copy.selection.trouble == said and copy.loaded == 1 and copy.switches == []
    assert copy.model.begun == 0  # nobody probes for nothing


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (UsageError("it has no part for that"), "it has no part for that"),
        (MemoryError("no room"), "MemoryError: no room"),
    ],
)
@pytest.mark.parametrize("asked", ["window_s", "classify"])
def test_a_model_that_cannot_tell_a_copy_ends_nothing(
    asked: str, error: Exception, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = Copy("B")

    def cannot(*_: object, **__: object) -> Mix:
        raise error

    monkeypatch.setattr(copy.model, asked, cannot)
    copy.run(60)
    assert copy.selection.trouble == said and copy.switches == []
    assert copy.model.ended == 1


class NoThreads(Loading):
    def start(self) -> None:
        raise RuntimeError("can't start new thread")


def test_without_a_thread_to_load_in_the_copy_goes_on() -> None:
    copy = Copy("B")
    hysteresis = SwitchHysteresis("fair", "cubic", permitted)
    copy.selection = BackgroundMonitor(NoThreads(copy.load), copy.model, hysteresis, "cubic")
    copy.run(60)
    assert copy.selection.trouble == "can't start new thread" and copy.switches == []


def test_without_a_descriptor_to_ask_with_the_next_reading_tries_again() -> None:
    copy = Copy("B")
    left = [OSError(24, "Too many open files")]

    def why_not(_: str) -> str:
        if left:
            raise left.pop()
        return ""

    hysteresis = SwitchHysteresis("fair", "cubic", why_not)
    copy.selection = BackgroundMonitor(AtOnce(copy.load), copy.model, hysteresis, "cubic")
    copy.run(60)
    assert copy.selection.trouble == "" and len(copy.switches) == 1


def test_while_a_model_is_loading_the_copy_goes_on() -> None:
    copy = Copy("B")
    may_load = threading.Event()

    def load() -> Scripted:
        may_load.wait()
        return copy.load()

    loading = Loading(load)
    copy.selection = BackgroundMonitor(
        loading, copy.model, SwitchHysteresis("fair", "cubic", permitted), "cubic"
    )
    copy.run(20)
    assert copy.model.asked == [] and copy.selection.trouble == ""
    may_load.set()
    loading.join()
    copy.run(2)
    assert copy.model.asked
