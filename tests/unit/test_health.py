"""When a path counts as lost, and when as back."""

import pytest

from mpx.multipath.health import (
    ALL_ASKED_S,
    FIRST_REST_S,
    LONGEST_REST_S,
    LONGEST_S,
    LOST_S,
    SUSPECT_S,
    PathHealth,
    Seen,
)

RTT_S = 0.02


class Watched:
    """Two paths, looked at ten times a second; `asks`: whether there is anybody who can ask over them."""

    def __init__(self, *, asks: bool = False) -> None:
        self.asks = asks
        self.asked_at_s: dict[str, float | None] = {"0": None, "1": None}
        self.health = PathHealth()
        self.now_s = 1000.0
        self.silent_since_s: dict[str, float | None] = {"0": None, "1": None}
        self.answers = {"0": True, "1": True}
        self.answered_at_s = {"0": 0.0, "1": 0.0}
        self.log: list[tuple[float, str, str]] = []

    def go(self, seconds: float) -> None:
        for _ in range(round(seconds * 10)):
            self.now_s += 0.1
            seen = {}
            for path, since_s in self.silent_since_s.items():
                silent_s = 0.05 if since_s is None else self.now_s - since_s
                asked_s = self.asked_at_s[path]
                if self.answers[path] and (since_s is None or asked_s is not None):
                    self.answered_at_s[path], self.asked_at_s[path], asked_s = self.now_s, None, None
                unanswered_s = self.now_s - asked_s if asked_s is not None else None
                seen[path] = Seen(silent_s, RTT_S, self.answered_at_s[path], unanswered_s)
            lost, back = self.health.observe(self.now_s, seen)
            for path in {*self.health.doubtful, *self.health.lost} if self.asks else ():
                if self.asked_at_s[path] is None:
                    self.asked_at_s[path] = self.now_s
            self.log += [(self.now_s, "lost", path) for path in lost]
            self.log += [(self.now_s, "back", path) for path in back]

    def cut(self, path: str) -> None:
        self.silent_since_s[path], self.answers[path] = self.now_s, False

    def mend(self, path: str) -> None:
        self.silent_since_s[path], self.answers[path] = None, True


def test_a_silent_path_is_lost_within_half_a_second_and_back_when_it_answers() -> None:
    two = Watched()
    two.go(5)
    cut_s = two.now_s
    two.cut("1")
    two.go(5)
    ((lost_s, what, path),) = two.log
    assert (what, path) == ("lost", "1") and lost_s - cut_s < 0.55
    assert two.health.lost == {"1"}
    two.mend("1")
    two.go(1)
    assert [what for _, what, _ in two.log] == ["lost", "back"]
    assert two.health.lost == frozenset()


def test_a_silent_path_that_does_not_answer_is_lost_sooner() -> None:
    two = Watched(asks=True)
    two.go(5)
    cut_s = two.now_s
    two.cut("1")
    two.go(5)
    ((lost_s, what, _),) = two.log
    assert what == "lost" and SUSPECT_S < lost_s - cut_s < LOST_S


def test_a_silent_path_that_answers_is_not_lost_before_it_has_been_silent_for_long() -> None:
    two = Watched(asks=True)
    two.go(5)
    silent_s = two.now_s
    two.silent_since_s["1"] = silent_s  # as where one stream waits for a timeout of TCP
    two.go(5)
    assert two.log[0][0] - silent_s == pytest.approx(LONGEST_S, abs=0.15)


def test_a_path_that_answers_and_carries_nothing_is_left_alone_for_ever_longer() -> None:
    two = Watched(asks=True)
    two.go(5)
    two.silent_since_s["1"] = two.now_s
    two.go(60)
    lost_s = [at_s for at_s, what, _ in two.log if what == "lost"]
    back_s = [at_s for at_s, what, _ in two.log if what == "back"]
    rests = [round(back - lost) for lost, back in zip(lost_s, back_s, strict=False)]
    assert rests[:4] == [2, 4, 8, 16]


def test_a_path_that_was_only_late_is_used_again_at_once_and_waited_for_longer() -> None:
    two = Watched(asks=True)
    two.go(5)
    lasted_s = []
    for _ in range(3):
        cut_s = two.now_s
        two.cut("1")
        while not two.health.lost:
            two.go(0.1)
        lasted_s.append(two.now_s - cut_s)
        two.go(0.1)
        two.mend("1")
        two.go(0.2)
        assert two.health.lost == frozenset()
    assert lasted_s[1] > 1.9 * lasted_s[0] and lasted_s[2] > 1.9 * lasted_s[1]
    assert lasted_s[-1] < LONGEST_S


@pytest.mark.parametrize("asks", [False, True])
def test_what_is_silent_for_no_longer_than_before_is_not_lost(asks: bool) -> None:
    two = Watched(asks=asks)
    two.go(5)
    for _ in range(5):
        two.silent_since_s["1"] = two.now_s
        two.answers["1"] = False  # its server rests
        two.go(0.2)
        two.silent_since_s["1"], two.answers["1"] = None, True
        two.go(0.5)
    assert two.log == []


def test_who_pauses_of_itself_is_waited_for_longer_for_a_while() -> None:
    two = Watched()
    two.go(5)
    for seconds in (0.3, 0.5):  # of a host that is busy
        two.silent_since_s["1"] = two.now_s
        two.go(seconds)
        two.silent_since_s["1"] = None
        two.go(1)
    assert two.log == []
    cut_s = two.now_s
    two.cut("1")
    two.go(3)
    assert 0.7 < two.log[0][0] - cut_s < 1.5


def test_where_nobody_moves_no_path_is_to_blame() -> None:
    two = Watched()
    two.cut("0")
    two.cut("1")
    two.go(20)
    assert two.log == []


def test_a_path_that_dies_when_the_others_have_nothing_left_to_do_is_lost() -> None:
    health = PathHealth()
    found = []
    for look in range(1, 12):
        now_s = 1000 + look / 10
        asked_s = 0.15 if look > 1 else None  # when the first look has found it in doubt
        answered_s = 1000.16 if look > 1 else 990.0
        unanswered_s = look / 10 - asked_s if asked_s else None
        seen = {"0": Seen(None, RTT_S, answered_s), "1": Seen(look / 10 + 0.01, RTT_S, 0.0, unanswered_s)}
        found += [(look, path) for path in health.observe(now_s, seen)[0]]
        if look == 1:
            assert health.doubtful == ["0", "1"]
    assert [path for _, path in found] == ["1"] and found[0][0] <= 4


@pytest.mark.parametrize("lag_s", [0.0, 0.01, 0.04])
def test_a_pause_of_all_is_not_blamed_on_whose_answer_is_read_last(lag_s: float) -> None:
    health = PathHealth()
    seen = {"0": Seen(None, RTT_S, 1000.0 - lag_s), "1": Seen(2.0, RTT_S, 0.0, 1.9)}
    assert health.observe(1000.0, seen) == ([], [])


def test_a_path_that_answers_late_and_carries_nothing_is_left_alone_for_ever_longer() -> None:
    two = Watched(asks=True)
    two.go(5)
    two.silent_since_s["1"] = two.now_s
    for _ in range(300):  # whenever it is lost it answers soon, and carries nothing
        two.answers["1"] = bool(two.health.lost)
        two.go(0.1)
    rests = [
        back_s - lost_s for (lost_s, _, _), (back_s, _, _) in zip(two.log[::2], two.log[1::2], strict=False)
    ]
    assert rests[0] < 0.5 and rests[1] > 1.9 and rests[2] > 3.9


def test_nobody_is_asked_again_and_again_where_nothing_moves() -> None:
    health = PathHealth()
    for look in range(1, 100):
        now_s = 1000 + look / 10
        health.observe(now_s, {path: Seen(look / 10, RTT_S, 0.0) for path in "01"})
        assert look / 10 < ALL_ASKED_S or health.doubtful == []


@pytest.mark.parametrize("looked_at_s", [0.01, 0.05, 0.09])
def test_a_pause_of_all_is_not_blamed_on_who_had_something_last(looked_at_s: float) -> None:
    health = PathHealth()
    for look in range(8):
        paused_s = looked_at_s + look / 10
        silent_s = {"0": paused_s, "1": paused_s + 0.09}
        seen = {path: Seen(each_s, RTT_S, 0.0, each_s) for path, each_s in silent_s.items()}
        assert health.observe(1000 + paused_s, seen) == ([], [])


def test_a_long_path_has_time_to_answer() -> None:
    health = PathHealth()
    seen = {"0": Seen(0.01, 0.3, 0.0), "1": Seen(0.4, 0.3, 0.0, 0.45)}
    assert health.observe(1000.0, seen) == ([], [])
    assert health.observe(1000.1, seen | {"1": Seen(0.5, 0.3, 0.0, 0.55)}) == (["1"], [])


def test_who_has_nothing_under_way_is_not_silent() -> None:
    health = PathHealth()
    for step in range(50):
        now_s = 1000 + step / 10
        seen = {"0": Seen(0.01, RTT_S, now_s), "1": Seen(None, RTT_S, 0.0)}
        assert health.observe(now_s, seen) == ([], [])


def test_a_path_that_comes_and_goes_is_left_alone_for_ever_longer() -> None:
    two = Watched()
    two.go(120)
    for _ in range(9):
        two.cut("1")
        two.go(1)
        two.mend("1")
        two.go(70)
        while two.health.lost:
            two.go(1)
        two.go(1)
    rests = [
        back_s - lost_s for (lost_s, _, _), (back_s, _, _) in zip(two.log[::2], two.log[1::2], strict=True)
    ]
    assert FIRST_REST_S <= rests[0] < FIRST_REST_S + 0.3
    assert max(rests) <= LONGEST_REST_S + 1
