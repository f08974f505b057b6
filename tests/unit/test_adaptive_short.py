"""The default tuner where streams carry less than the path did: losses hold each of them, and come late."""

from made_up_paths import Path, drive

from mpx.tuning.adaptive import AutoTuner

ROOM = {"limited_by_receiver": 0.0, "limited_by_sender": 0.0}
OVERSHOOTS_S = 2.0  # new streams fill the path for so long, and then losses come


def held_by_losses(seconds: float) -> list[tuple[float, int]]:
    """When there came to be how many streams on a path that fifteen fill in the long run."""
    path, tuner = Path(lambda n: n, rtt_s=0.09), AutoTuner()
    counts = [(0.0, 4)]
    for i in range(round(10 * seconds)):
        now_s, n = i / 10, len(path.opened)
        if n != counts[-1][1] and n:
            counts.append((now_s, n))
        lost = max(0.0, now_s - counts[-1][0] - OVERSHOOTS_S) / 1.5
        share = min(1.0, max(0.4 * (max(n, 1) / 4) ** 0.7, 1.0 - lost))
        path.curve = lambda _, share=share: share * 1e9
        path.extra = ROOM | {"queue_s": 0.05 * (share == 1.0)}
        drive(tuner, {"p": path}, 0.1, start_s=now_s)
    return counts


def test_who_is_far_below_has_twice_as_many_each_time() -> None:
    assert [n for _, n in held_by_losses(10)][:3] == [4, 8, 16]


def test_a_path_that_carries_far_less_than_it_did_has_more_streams_before_a_rest() -> None:
    assert held_by_losses(5)[1][0] < 3.6


def test_a_queue_soon_after_too_few_streams_is_no_reason_for_fewer() -> None:
    counts = [n for _, n in held_by_losses(15)]
    assert counts == sorted(counts)
