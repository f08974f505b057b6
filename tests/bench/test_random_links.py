"""Links drawn at random: the same for the same seed, all kinds of them, each with a name of its own."""

from collections import Counter

from apt.cell import MPX, Cell
from apt.random_links import LOSSES, RATES_BPS, RTTS_S, draw
from mpx_lab.traffic.spec import parse


def test_draws_have_a_seed_and_all_kinds() -> None:
    drawn = [draw(number, 3) for number in range(300)]
    assert drawn == [draw(number, 3) for number in range(300)] != [draw(number, 4) for number in range(300)]
    for each in drawn:
        link = each.link
        assert RATES_BPS[0] <= link.rate_bps <= RATES_BPS[1] and RTTS_S[0] <= link.rtt_s <= RTTS_S[1]
        assert link.loss == 0 or LOSSES[0] <= link.loss <= LOSSES[1]
        assert (link.burst_bytes is not None) == link.policer
        assert not link.change or link.change_to != link.loss or link.loss == 0
    kinds = Counter((each.down, each.link.server == MPX) for each in drawn)
    assert min(kinds.values()) > 50 and len(kinds) == 4
    for count in (
        sum(bool(each.link.beside) for each in drawn),
        sum(each.link.fair_queue for each in drawn),
        sum(each.link.burst_bytes is not None for each in drawn),
        sum(bool(each.link.change) for each in drawn),
        sum(each.link.window_bytes is not None for each in drawn),
        sum(each.link.congestion == "bbr" for each in drawn),
    ):
        assert 25 < count < 150


def test_each_link_has_a_name_of_its_own() -> None:
    names = {Cell(draw(number, 3).link, "auto", 60.0).name for number in range(300)}
    assert len(names) == 300


def test_the_lab_knows_the_traffic_beside_each() -> None:
    specs = [spec for number in range(300) for spec in draw(number, 3).link.neighbours.values()]
    assert {parse(spec).name for spec in specs} == {"tcp", "udp-bursty", "short-flows"}
