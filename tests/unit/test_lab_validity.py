"""When a run counts."""

import dataclasses

import pytest
from mpx_lab.cpu import CpuUse
from mpx_lab.emulator.accounting import DirectionStats, Histogram, Tally
from mpx_lab.shape import Shape
from mpx_lab.validity import LinkFacts, judge, link_facts

GOOD = LinkFacts("wan a-to-b", 0.0001, 0.008, 0.0001, 0.00024, 100_000, 500, 20, 0, 0, 0, ())


def looks(*busy: float) -> list[CpuUse]:
    return [CpuUse(float(number), "all", share, 0, 0, 0, 1 - share) for number, share in enumerate(busy)]


def test_a_good_run_counts_whatever_its_queue_dropped_and_its_latest_frame() -> None:
    verdict = judge([GOOD], looks(0.9, 0.5, 0.96), {"src eth0 send errors": 0})
    assert verdict.valid
    assert verdict.reasons == ()
    assert verdict.measures["links"][0]["late_max_s"] == 0.008
    assert verdict.measures["links"][0]["pickup_p99_s"] == 0.00024
    assert verdict.measures["cpu_busy"] == pytest.approx(0.787, abs=1e-3)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"late_p99_s": 0.00031}, "late: 1% of the frames of wan a-to-b came over 0.31 ms late"),
        ({"very_late_share": 0.003}, "late: 0.30% of the frames of wan a-to-b came over 1 ms late"),
        ({"pickup_p99_s": 0.0012}, "read late: 1% of the frames of wan a-to-b may have waited over 1.20 ms"),
        ({"dropped_elsewhere": 1}, "lost on wan a-to-b outside of its queue: 1 frames"),
        ({"oversized": 2}, "super-packets on wan a-to-b: 2 frames"),
        ({"unaccounted": -1}, "not accounted for on wan a-to-b: -1 frames"),
    ],
)
def test_a_link_that_went_wrong(change: dict[str, float], reason: str) -> None:
    verdict = judge([GOOD, dataclasses.replace(GOOD, **change)], looks(0.5), {})
    assert not verdict.valid
    assert len(verdict.reasons) == 1
    assert verdict.reasons[0].startswith(reason)


def test_what_made_the_emulator_late_is_in_the_reason_and_alone_is_none() -> None:
    slow = dataclasses.replace(GOOD, hindrances=("the emulator has no real-time priority",))
    assert judge([slow], looks(0.5), {}).valid
    verdict = judge([dataclasses.replace(slow, late_p99_s=0.0005)], looks(0.5), {})
    assert verdict.reasons[0].endswith(" late; the emulator has no real-time priority")
    assert verdict.measures["links"][0]["hindrances"] == ["the emulator has no real-time priority"]


def test_a_saturated_machine() -> None:
    assert judge([GOOD], looks(*[0.5] * 19, 0.99), {}).valid
    verdict = judge([GOOD], looks(*[0.5] * 8, 0.99, 1.0), {})
    assert verdict.reasons == ("saturated: the processors were at least 97% busy in 20% of the seconds",)
    one_core = [CpuUse(0.0, "0", 1, 0, 0, 0, 0)] * 10
    assert judge([GOOD], [*looks(*[0.6] * 10), *one_core], {}).valid


def test_a_loss_on_a_host() -> None:
    verdict = judge([GOOD], [], {"Udp RcvbufErrors": 3, "eth0 send errors": 0})
    assert verdict.reasons == ("lost on a host: 3 at Udp RcvbufErrors",)


def test_a_generator_that_was_kept_waiting() -> None:
    fair = judge([GOOD], [], {}, {"udp": 0.01})
    assert fair.valid
    assert fair.measures["given_up"] == {"udp": 0.01}
    verdict = judge([GOOD], [], {}, {"udp": 0.032, "other": 0.0})
    assert verdict.reasons == (
        "given up: 3.2% of the datagrams of udp were not sent, as its sender was kept waiting",
    )


def test_only_what_happened_during_the_run_counts() -> None:
    def stats(delivered: int, ring: int, late: Histogram, pickup: Histogram) -> DirectionStats:
        zero = Tally()
        gone, through = Tally(ring, ring * 100), Tally(delivered, delivered * 100)
        received = through + gone
        return DirectionStats(
            Shape(), received, through, zero, zero, zero, gone, zero, zero, zero, zero, 0, late, pickup, ()
        )

    before = stats(
        1000,
        5,
        Histogram(((50_000, 900), (9_000_000, 100)), 9_000_000),
        Histogram(((20_000, 905), (5_000_000, 100)), 5_000_000),
    )
    after = stats(
        4000,
        5,
        Histogram(((50_000, 3899), (400_000, 1), (9_000_000, 100)), 9_000_000),
        Histogram(((20_000, 3880), (300_000, 25), (5_000_000, 100)), 5_000_000),
    )
    facts = link_facts("wan", before, after)
    assert (facts.delivered, facts.dropped_elsewhere, facts.unaccounted) == (3000, 0, 0)
    assert facts.late_p99_s == 0.00005
    assert facts.very_late_share == 0
    assert facts.pickup_p99_s == 0.00002
    assert judge([facts], [], {}).valid
