"""When a path counts as lost, and when as back."""

from mpx.path_health import FIRST_REST_S, LONGEST_REST_S, PathHealth, Seen

RTT_S = 0.02


class Watched:
    """Two paths, looked at ten times a second."""

    def __init__(self) -> None:
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
                if self.answers[path]:
                    self.answered_at_s[path] = self.now_s
                silent_s = 0.05 if since_s is None else self.now_s - since_s
                seen[path] = Seen(silent_s, RTT_S, self.answered_at_s[path])
            lost, back = self.health.observe(self.now_s, seen)
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
